"""Hypothesis settings: short searches, and long ones in the thorough tier."""

from typing import Final, TypeVar

import pytest
from hypothesis import HealthCheck, settings

from tests.tiers import THOROUGH

__all__ = ["EXAMPLES", "MACHINE", "THOROUGH", "search"]

TestT = TypeVar("TestT")

_COMMON: Final = settings(
    # Quick runs repeat the same examples; each thorough run has new ones.
    derandomize=not THOROUGH,
    database=None,
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.data_too_large,
    ],
)

EXAMPLES: Final = settings(_COMMON, max_examples=5_000 if THOROUGH else 50)
"""For tests with @given."""

MACHINE: Final = settings(
    _COMMON,
    max_examples=10_000 if THOROUGH else 100,
    stateful_step_count=80 if THOROUGH else 50,
)
"""For stateful machines, whose tests are marked by `search`."""


def search(test: TestT) -> TestT:
    """Mark a test that takes seconds, and in the thorough tier many minutes."""
    marks = [pytest.mark.slow("a search")]
    if THOROUGH:
        marks.append(pytest.mark.thorough)
    for mark in marks:
        test = mark(test)
    return test
