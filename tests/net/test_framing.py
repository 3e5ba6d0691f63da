"""Splitting bytes into frames, in chunks of any size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.errors import ProtocolError
from sharecons.wire.codec import frames
from sharecons.wire.codec.frames import FRAME_LIMIT, FrameBuffer

MEGABYTE = 1 << 20
FIRST = frames.FIRST_SIZE
MAX_CHUNKS = 12
"""The maximum number of chunks of a frame, since each one takes time to draw."""


def framed(content):
    return len(content).to_bytes(4, "big") + content


def feed(buffer, data):
    """Return the frames that these bytes complete, received as from a socket."""
    found = []
    while data:
        writable = buffer.writable()
        part, data = data[: len(writable)], data[len(writable) :]
        writable[: len(part)] = part
        frame = buffer.advance(len(part))
        if frame is not None:
            found.append(frame)
    return found


@pytest.mark.parametrize(
    "size", [4, 5, 4096, 4097, FIRST - 4, FIRST - 3, FIRST + 1, 3 * MEGABYTE]
)
def test_a_frame_of_any_size(size):
    content = bytes(range(251)) * (size // 251 + 1)
    content = content[:size]

    assert [content] == feed(FrameBuffer(), framed(content))


@given(
    contents=st.lists(
        st.binary(min_size=4, max_size=50) | st.just(b"x" * 9000), max_size=5
    ),
    data=st.data(),
)
def test_consecutive_frames_in_chunks_of_any_size(contents, data):
    buffer = FrameBuffer()
    for content in contents:
        rest, got, chunks = framed(content), [], 0
        while rest:
            chunks += 1
            last = chunks == MAX_CHUNKS
            cut = len(rest) if last else data.draw(st.integers(1, len(rest)))
            got += feed(buffer, rest[:cut])
            rest = rest[cut:]
        assert [content] == got


@pytest.mark.parametrize("cut", [1, 4, 5, FIRST - 1, FIRST, FIRST + 1])
def test_large_frame_in_two_chunks(cut):
    buffer = FrameBuffer()
    content = bytes(range(251)) * 600
    data = framed(content)

    assert [] == feed(buffer, data[:cut])
    assert [content] == feed(buffer, data[cut:])


def test_writable_is_never_empty_during_a_frame():
    buffer = FrameBuffer()
    for byte in framed(b"y" * 5000):
        assert len(buffer.writable()) >= 1
        feed(buffer, bytes((byte,)))


@pytest.mark.parametrize("size", [50, 5000, 2 * FIRST])
def test_frame_with_a_view_is_not_overwritten(size):
    buffer = FrameBuffer()
    (first,) = feed(buffer, framed(b"a" * size))
    part = first[10:20]
    del first

    feed(buffer, framed(b"b" * size))
    feed(buffer, framed(b"c" * size))

    assert b"a" * 10 == part


def test_response_of_many_small_records_takes_one_read():
    buffer = FrameBuffer()
    frame = framed(b"x" * 100_000)

    assert len(buffer.writable()) >= len(frame)


@pytest.mark.parametrize("size", [4097, 2 * FIRST])
def test_records_of_a_large_frame_are_not_copied_out_of_it(size):
    (frame,) = feed(FrameBuffer(), framed(b"x" * size))

    assert isinstance(frame, memoryview)


def test_large_length_allocates_only_what_arrives():
    buffer = FrameBuffer()
    feed(buffer, FRAME_LIMIT.to_bytes(4, "big") + b"x" * 10)

    assert len(buffer.writable()) <= frames.PREALLOCATION_LIMIT


def test_frame_longer_than_the_preallocation_limit(monkeypatch):
    monkeypatch.setattr(frames, "PREALLOCATION_LIMIT", 10_000)
    content = bytes(range(256)) * 400

    assert [content] == feed(FrameBuffer(), framed(content))


@pytest.mark.parametrize("length", [-1, 0, 3, FRAME_LIMIT + 1])
def test_invalid_length_raises(length):
    with pytest.raises(ProtocolError, match=f"length {length}"):
        feed(FrameBuffer(), length.to_bytes(4, "big", signed=True))


def test_bytes_after_a_frame_raise():
    with pytest.raises(ProtocolError, match="2 unexpected bytes after a response of 5"):
        feed(FrameBuffer(), framed(b"12345") + b"67")
