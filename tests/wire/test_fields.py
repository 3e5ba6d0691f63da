"""Fields of frames, both bytes (small frames) and memoryviews (large frames)."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.wire.codec.fields import CHUNK_SIZE, FieldReader, varint

OPERATIONS = ("int16", "int32", "int64", "varint", "text", "data", "skip_tags")

steps = st.lists(
    st.sampled_from(OPERATIONS) | st.integers(0, 3 * CHUNK_SIZE),
    min_size=1,
    max_size=30,
)


def outcome(reader, step):
    """Return the result of a step and the position after it, or "no such field"."""
    try:
        if isinstance(step, int):
            reader.position = step
            return step
        return getattr(reader, step)(), reader.position
    except ValueError:
        return "no such field"


@given(data=st.binary(max_size=40).map(lambda some: some * 20), steps=steps)
def test_view_and_bytes_are_decoded_alike(data, steps):
    of_bytes, of_view = FieldReader(data, 0), FieldReader(memoryview(data), 0)

    for step in steps:
        expected = outcome(of_bytes, step)
        assert expected == outcome(of_view, step)
        if expected == "no such field":
            break  # the position after an error is undefined


@pytest.mark.parametrize("kind", [bytes, memoryview])
@given(
    before=st.integers(0, 2 * CHUNK_SIZE),
    number16=st.integers(-(1 << 15), (1 << 15) - 1),
    number32=st.integers(-(1 << 31), (1 << 31) - 1),
    number64=st.integers(-(1 << 63), (1 << 63) - 1),
    number=st.integers(0, (1 << 31) - 1),
)
def test_numbers_at_any_position(kind, before, number16, number32, number64, number):
    packed = struct.pack(">hiq", number16, number32, number64)
    data = bytes(before) + packed + varint(number)
    reader = FieldReader(kind(data), 0)
    reader.int16() if before > 1 else None  # so that a chunk begins before them
    reader.position = before

    assert number16 == reader.int16()
    assert number32 == reader.int32()
    assert number64 == reader.int64()
    assert number == reader.varint()
    assert len(data) == reader.position


@pytest.mark.parametrize("kind", [bytes, memoryview])
@pytest.mark.parametrize(
    "at", [0, 1, CHUNK_SIZE, 2 * CHUNK_SIZE - 3, 2 * CHUNK_SIZE - 4]
)
def test_position_can_be_moved_back(kind, at):
    data = b"".join(n.to_bytes(2, "big") for n in range(2 * CHUNK_SIZE))
    reader = FieldReader(kind(data), 2 * CHUNK_SIZE)
    reader.int16()

    reader.position = at

    assert struct.unpack_from(">i", data, at)[0] == reader.int32()


@pytest.mark.parametrize("kind", [bytes, memoryview])
@pytest.mark.parametrize("step", ["int16", "int32", "int64", "varint"])
def test_truncated_number_is_rejected(kind, step):
    for size in range(2):
        with pytest.raises(ValueError, match="message is truncated"):
            getattr(FieldReader(kind(b"\xff" * size), 0), step)()
