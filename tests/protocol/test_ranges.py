import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.protocol.acknowledge.ranges import (
    GAP,
    Run,
    coalesce,
    ranges_of,
    runs_of,
    split,
)
from sharecons.protocol.messages import Range
from tests.protocol.hypothesis_profile import EXAMPLES

ACCEPT, RELEASE, REJECT, RENEW = b"\1", b"\2", b"\3", b"\4"

said = st.dictionaries(st.integers(0, 300), st.integers(0, 4), max_size=80)
"""What is to be said of which offset."""


def runs_by_offset(kinds: dict[int, int]) -> list[Run]:
    return [Run(offset, offset, kinds[offset]) for offset in sorted(kinds)]


def kinds_by_offset(ranges: tuple[Range, ...]) -> dict[int, int]:
    kinds: dict[int, int] = {}
    for first, last, each in ranges:
        size = last - first + 1
        spread = each * size if len(each) == 1 else each
        kinds.update(zip(range(first, last + 1), spread, strict=True))
    return kinds


def test_neighbours_of_one_kind_become_one_run():
    runs = [Run(0, 4, 1), Run(5, 5, 1), Run(6, 9, 2), Run(11, 12, 2)]

    assert [Run(0, 5, 1), Run(6, 9, 2), Run(11, 12, 2)] == coalesce(runs)


def test_nothing_said_is_no_range():
    assert () == ranges_of([])


def test_offsets_of_one_kind_are_one_range_with_one_type():
    assert (Range(10, 500, ACCEPT),) == ranges_of([Run(10, 200, 1), Run(201, 500, 1)])


def test_a_hole_ends_a_range():
    assert (Range(0, 4, ACCEPT), Range(6, 9, ACCEPT)) == ranges_of(
        [Run(0, 4, 1), Run(6, 9, 1)]
    )


def test_short_runs_of_changing_kinds_are_one_range_with_a_type_for_each_offset():
    runs = [Run(0, 1, 1), Run(2, 2, GAP), Run(3, 4, 3)]

    assert (Range(0, 4, b"\1\1\0\3\3"),) == ranges_of(runs)


def test_long_runs_of_changing_kinds_are_a_range_each():
    assert (Range(0, 99, ACCEPT), Range(100, 199, RELEASE)) == ranges_of(
        [Run(0, 99, 1), Run(100, 199, 2)]
    )


def test_a_lone_offset_is_a_range():
    assert (Range(7, 7, RENEW),) == ranges_of([Run(7, 7, 4)])


def test_ranges_read_back_as_the_runs_that_they_were_made_of():
    runs = [Run(0, 2, 1), Run(3, 3, 2), Run(8, 9, 3)]

    assert runs == runs_of(ranges_of(runs))


@pytest.mark.parametrize(
    ("ranges", "left", "right"),
    [
        (
            (Range(0, 1, ACCEPT),),
            (Range(0, 0, ACCEPT),),
            (Range(1, 1, ACCEPT),),
        ),
        (
            (Range(0, 8, ACCEPT),),
            (Range(0, 3, ACCEPT),),
            (Range(4, 8, ACCEPT),),
        ),
        (
            (Range(0, 0, ACCEPT), Range(9, 9, REJECT)),
            (Range(0, 0, ACCEPT),),
            (Range(9, 9, REJECT),),
        ),
        (
            (Range(0, 3, b"\1\2\1\2"),),
            (Range(0, 1, b"\1\2"),),
            (Range(2, 3, b"\1\2"),),
        ),
        (
            (Range(0, 9, ACCEPT), Range(20, 20, RELEASE)),
            (Range(0, 4, ACCEPT),),
            (Range(5, 9, ACCEPT), Range(20, 20, RELEASE)),
        ),
    ],
)
def test_a_split_halves_the_offsets(
    ranges: tuple[Range, ...], left: tuple[Range, ...], right: tuple[Range, ...]
):
    assert (left, right) == split(ranges)


@EXAMPLES
@given(said)
def test_ranges_say_of_each_offset_what_was_said(kinds: dict[int, int]):
    assert kinds == kinds_by_offset(ranges_of(runs_by_offset(kinds)))


@EXAMPLES
@given(said)
def test_ranges_are_ascending_and_disjoint(kinds: dict[int, int]):
    ranges = ranges_of(runs_by_offset(kinds))

    for before, after in itertools.pairwise(ranges):
        assert before.last_offset < after.first_offset


@EXAMPLES
@given(said)
def test_a_range_has_one_type_or_one_for_each_of_its_offsets(kinds: dict[int, int]):
    for first, last, each in ranges_of(runs_by_offset(kinds)):
        assert len(each) in (1, last - first + 1)


@EXAMPLES
@given(said)
def test_reading_ranges_back_loses_nothing(kinds: dict[int, int]):
    runs = coalesce(runs_by_offset(kinds))

    assert runs == runs_of(ranges_of(runs))


@EXAMPLES
@given(said.filter(lambda kinds: len(kinds) >= 2))
def test_the_halves_of_a_split_are_the_whole_and_differ_by_one_at_most(
    kinds: dict[int, int],
):
    left, right = split(ranges_of(runs_by_offset(kinds)))

    assert kinds == kinds_by_offset(left) | kinds_by_offset(right)
    assert len(kinds) // 2 == len(kinds_by_offset(left))
    assert len(kinds) - len(kinds) // 2 == len(kinds_by_offset(right))
