"""Acknowledgements as runs and as the ranges of a request."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.protocol.acknowledge.ranges import ranges_of
from sharecons.protocol.acknowledge.runs import GAP, Run, coalesce, split
from sharecons.protocol.share_messages import Range
from tests.protocol.hypothesis_profile import EXAMPLES
from tests.protocol.message_factories import acks_by_offset

ACCEPT, RELEASE, REJECT, RENEW = b"\1", b"\2", b"\3", b"\4"

TYPES = st.integers(0, 4)
types_by_offset = st.dictionaries(st.integers(0, 300), TYPES, max_size=40)


def runs_by_offset(kinds: dict[int, int]) -> list[Run]:
    return [Run(offset, offset, kinds[offset]) for offset in sorted(kinds)]


def test_adjacent_runs_of_one_type_are_joined():
    runs = [Run(0, 4, 1), Run(5, 5, 1), Run(6, 9, 2), Run(11, 12, 2)]

    assert [Run(0, 5, 1), Run(6, 9, 2), Run(11, 12, 2)] == coalesce(runs)


def test_missing_offset_ends_a_range():
    assert (Range(0, 4, ACCEPT), Range(6, 9, ACCEPT)) == ranges_of(
        [Run(0, 4, 1), Run(6, 9, 1)]
    )


def test_short_runs_are_one_range_with_a_type_per_offset():
    runs = [Run(0, 1, 1), Run(2, 2, GAP), Run(3, 4, 3)]

    assert (Range(0, 4, b"\1\1\0\3\3"),) == ranges_of(runs)


def test_long_runs_are_one_range_each():
    assert (Range(0, 99, ACCEPT), Range(100, 199, RELEASE)) == ranges_of(
        [Run(0, 99, 1), Run(100, 199, 2)]
    )


@pytest.mark.parametrize(
    ("runs", "left", "right"),
    [
        ([Run(0, 1, 1)], [Run(0, 0, 1)], [Run(1, 1, 1)]),
        ([Run(0, 8, 1)], [Run(0, 3, 1)], [Run(4, 8, 1)]),
        ([Run(0, 0, 1), Run(9, 9, 3)], [Run(0, 0, 1)], [Run(9, 9, 3)]),
        ([Run(0, 3, 1), Run(4, 4, 2)], [Run(0, 1, 1)], [Run(2, 3, 1), Run(4, 4, 2)]),
        (
            [Run(0, 9, 1), Run(20, 20, 2)],
            [Run(0, 4, 1)],
            [Run(5, 9, 1), Run(20, 20, 2)],
        ),
    ],
)
def test_split_halves_the_offsets(runs: list[Run], left: list[Run], right: list[Run]):
    assert (left, right) == split(runs)


@EXAMPLES
@given(types_by_offset)
def test_ranges_have_the_types_of_the_runs(kinds: dict[int, int]):
    assert kinds == acks_by_offset(ranges_of(runs_by_offset(kinds)))


@EXAMPLES
@given(types_by_offset)
def test_ranges_are_ascending_and_disjoint(kinds: dict[int, int]):
    ranges = ranges_of(runs_by_offset(kinds))

    for before, after in itertools.pairwise(ranges):
        assert before.last_offset < after.first_offset


@EXAMPLES
@given(types_by_offset)
def test_range_has_one_type_or_one_per_offset(kinds: dict[int, int]):
    for first, last, each in ranges_of(runs_by_offset(kinds)):
        assert len(each) in (1, last - first + 1)


@EXAMPLES
@given(st.dictionaries(st.integers(0, 300), TYPES, min_size=2, max_size=40))
def test_halves_of_a_split_differ_by_at_most_one_offset(kinds: dict[int, int]):
    left, right = split(coalesce(runs_by_offset(kinds)))

    assert kinds == acks_by_offset(ranges_of(left)) | acks_by_offset(ranges_of(right))
    assert len(kinds) // 2 == sum(run.last - run.first + 1 for run in left)
    assert len(kinds) - len(kinds) // 2 == sum(r.last - r.first + 1 for r in right)
