"""OffsetSet behaves like a plain set of offsets."""

from hypothesis import given
from hypothesis import strategies as st

from sharecons.records.offset_set import OffsetSet
from tests.protocol.hypothesis_profile import EXAMPLES

ranges = st.tuples(st.integers(0, 40), st.integers(0, 8)).map(
    lambda drawn: (drawn[0], drawn[0] + drawn[1])
)
changes = st.lists(st.tuples(st.sampled_from(["add", "remove"]), ranges), max_size=20)


def set_and_plain(changes):
    offset_set, plain = OffsetSet(), set()
    for what, (first, last) in changes:
        getattr(offset_set, what)(first, last)
        offsets = range(first, last + 1)
        plain = plain.union(offsets) if what == "add" else plain.difference(offsets)
    return offset_set, plain


def offsets_of(parts):
    return [offset for first, last in parts for offset in range(first, last + 1)]


@EXAMPLES
@given(changes)
def test_ranges_equal_a_set_and_are_sorted_and_disjoint(changes):
    offset_set, plain = set_and_plain(changes)
    parts = list(offset_set)

    assert sorted(plain) == offsets_of(parts)
    assert all(
        before[1] + 1 < after[0]
        for before, after in zip(parts, parts[1:], strict=False)
    )
    assert all(first <= last for first, last in parts)
    assert bool(plain) == bool(offset_set)


@EXAMPLES
@given(changes, ranges)
def test_missing_returns_offsets_outside_the_set(changes, requested):
    offset_set, plain = set_and_plain(changes)
    first, last = requested

    assert sorted({*range(first, last + 1)} - plain) == offsets_of(
        offset_set.missing(first, last)
    )


def test_offsets_added_in_order_are_one_range():
    offset_set = OffsetSet()
    for offset in range(0, 1000, 10):
        offset_set.add(offset, offset + 9)

    assert [(0, 999)] == list(offset_set)


@EXAMPLES
@given(changes, ranges)
def test_without_does_not_change_the_original(changes, removed):
    offset_set, plain = set_and_plain(changes)
    first, last = removed
    copy = offset_set.without(first, last)

    assert sorted(plain) == offsets_of(offset_set)
    assert sorted(plain - {*range(first, last + 1)}) == offsets_of(copy)


@given(st.sets(st.integers(0, 60)))
def test_set_of_ascending_offsets_has_these_offsets(offsets):
    assert sorted(offsets) == offsets_of(OffsetSet.of(sorted(offsets)))
