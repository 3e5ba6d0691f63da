"""Each target, for a second or two, with the same cases each time."""

import pytest

from tests.fuzz.search import search
from tests.fuzz.targets import TARGETS

pytestmark = pytest.mark.slow("a search")


@pytest.mark.parametrize("name", TARGETS)
def test_target_has_no_escape(name):
    target = TARGETS[name]

    report = search(target, seed=0, examples=target.examples)

    assert not report.escapes, report.escapes[0].text
