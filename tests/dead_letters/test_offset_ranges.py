"""Sets of offsets as ranges, and their text."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from sharecons.dead_letters.offset_ranges import OffsetRanges

OFFSETS = st.sets(st.integers(0, 60))


def ranges_of(offsets: set[int]) -> OffsetRanges:
    return OffsetRanges.of((each, each + 1) for each in offsets)


def offsets_in(ranges: OffsetRanges) -> set[int]:
    return {each for each in range(70) if each in ranges}


@given(OFFSETS)
def test_ranges_contain_the_offsets_they_were_made_of(offsets: set[int]) -> None:
    ranges = ranges_of(offsets).ranges

    assert offsets == offsets_in(ranges_of(offsets))
    gaps = zip(ranges, ranges[1:], strict=False)
    assert all(one.end < other.start for one, other in gaps)


@given(OFFSETS, OFFSETS)
def test_union_and_without_are_those_of_sets(one: set[int], other: set[int]) -> None:
    assert one | other == offsets_in(ranges_of(one).union(ranges_of(other)))
    assert ranges_of(one - other) == ranges_of(one).without(other)


@given(OFFSETS)
def test_low_water_is_the_first_missing_offset(offsets: set[int]) -> None:
    expected = min(set(range(70)) - offsets)

    assert expected == ranges_of(offsets).low_water


@given(st.lists(st.tuples(st.integers(0, 1 << 62), st.integers(0, 1 << 62))))
def test_ranges_are_decoded_as_encoded(pairs: list[tuple[int, int]]) -> None:
    ranges = OffsetRanges.of(pairs)

    assert ranges == OffsetRanges.decode(ranges.encode())
    base = ranges.low_water
    above = OffsetRanges.decode(ranges.encode(base), base)
    assert ranges == above.union(OffsetRanges.of([(0, base)]))


@given(st.text(max_size=40))
def test_damaged_text_is_decoded_or_a_value_error(text: str) -> None:
    try:
        OffsetRanges.decode(text)
    except ValueError:
        return


def test_text_of_one_range_is_short() -> None:
    assert len(OffsetRanges.of([(5, 1_000_000)]).encode()) < 12


def test_cut_off_number_is_rejected() -> None:
    import zlib
    from base64 import b85encode

    deflate = zlib.compressobj(wbits=-15)
    data = deflate.compress(b"\x01\x80") + deflate.flush()
    with pytest.raises(ValueError, match="cut off"):
        OffsetRanges.decode(b85encode(data).decode())


def test_number_of_megabytes_is_rejected() -> None:
    import zlib
    from base64 import b85encode

    deflate = zlib.compressobj(wbits=-15)
    data = deflate.compress(b"\x80" * 1_000_000 + b"\x01") + deflate.flush()
    with pytest.raises(ValueError, match="too long"):
        OffsetRanges.decode(b85encode(data).decode())
