"""Hypothesis settings: SHARECONS_HYPOTHESIS=quick (default) or thorough."""

import os
from typing import Final

from hypothesis import HealthCheck, settings

__all__ = ["EXAMPLES", "MACHINE", "THOROUGH"]

THOROUGH: Final = os.environ.get("SHARECONS_HYPOTHESIS", "quick") == "thorough"

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

EXAMPLES: Final = settings(_COMMON, max_examples=5_000 if THOROUGH else 100)
"""For tests with @given."""

MACHINE: Final = settings(
    _COMMON,
    max_examples=10_000 if THOROUGH else 100,
    stateful_step_count=80 if THOROUGH else 50,
)
"""For stateful machines, whose tests are marked `slow`."""
