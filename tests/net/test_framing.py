"""Splitting bytes into frames, in chunks of any size."""

import platform
import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.errors import ProtocolError
from sharecons.net.io import framing
from sharecons.net.io.framing import FRAME_LIMIT, MUCH_MISSING, FrameBuffer

MEGABYTE = 1 << 20


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


@pytest.mark.parametrize("size", [4, 5, 4091, 4092, 4093, 4096, 5000, 3 * MEGABYTE])
def test_a_frame_of_any_size(size):
    content = bytes(range(251)) * (size // 251 + 1)
    content = content[:size]

    assert [content] == feed(FrameBuffer(), framed(content))


@given(
    contents=st.lists(st.binary(min_size=4, max_size=50) | st.just(b"x" * 9000)),
    data=st.data(),
)
def test_consecutive_frames_in_chunks_of_any_size(contents, data):
    buffer = FrameBuffer()
    for content in contents:
        rest, got = framed(content), []
        while rest:
            cut = data.draw(st.integers(1, len(rest)))
            got += feed(buffer, rest[:cut])
            rest = rest[cut:]
        assert [content] == got


def test_writable_is_never_empty_during_a_frame():
    buffer = FrameBuffer()
    for byte in framed(b"y" * 5000):
        assert len(buffer.writable()) >= 1
        feed(buffer, bytes((byte,)))


@pytest.mark.parametrize("size", [50, 5000])
def test_frame_with_a_view_is_not_overwritten(size):
    buffer = FrameBuffer()
    (first,) = feed(buffer, framed(b"a" * size))
    part = first[10:20]
    del first

    feed(buffer, framed(b"b" * size))
    feed(buffer, framed(b"c" * size))

    assert b"a" * 10 == part


def test_memory_of_a_frame_without_a_view_is_reused():
    buffer = FrameBuffer()
    (first,) = feed(buffer, framed(b"a" * 100_000))
    memory = id(first.obj)
    del first

    (second,) = feed(buffer, framed(b"b" * 90_000))

    assert memory == id(second.obj)
    assert b"b" * 90_000 == second


def test_memory_of_three_alternating_frames_is_reused():
    buffer = FrameBuffer()
    (first,) = feed(buffer, framed(b"a" * 100_000))
    (second,) = feed(buffer, framed(b"b" * 100_000))
    (third,) = feed(buffer, framed(b"c" * 100_000))
    memory = first.obj  # which is no view of it
    del first

    (fourth,) = feed(buffer, framed(b"d" * 100_000))

    assert memory is fourth.obj
    assert (b"b" * 100_000, b"c" * 100_000) == (second, third)


def test_is_missing_much_only_after_a_part_has_arrived():
    buffer = FrameBuffer()
    content = framed(b"a" * MEGABYTE)
    cuts = [0, 2, 4096, 8192, MEGABYTE - MUCH_MISSING, MEGABYTE, MEGABYTE + 4]
    reported = []
    for start, stop in pairwise(cuts):
        feed(buffer, content[start:stop])
        reported.append(buffer.is_missing_much)

    assert [False, False, True, True, False, False] == reported


VALUES_COME_AND_GO = """
import resource, sys
from sharecons.net.io.framing import FrameBuffer
if sys.argv[1] == "after a frame":
    buffer = FrameBuffer()
    buffer.writable()[:4] = (2 << 20).to_bytes(4, "big")
    buffer.advance(4)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    values = [b"%1024d" % i for i in range(4000)]  # of two answers
    del values
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is glibc's way")
def test_memory_of_record_values_is_reused():
    """It is not returned to the system and mapped again for each response."""

    def page_faults(when):
        command = [sys.executable, "-c", VALUES_COME_AND_GO, when]
        return int(subprocess.check_output(command))

    assert page_faults("after a frame") * 4 < page_faults("before any")


def test_large_length_allocates_only_what_arrives():
    buffer = FrameBuffer()
    feed(buffer, FRAME_LIMIT.to_bytes(4, "big") + b"x" * 10)

    assert len(buffer.writable()) <= framing.PREALLOCATION_LIMIT


def test_frame_longer_than_the_preallocation_limit(monkeypatch):
    monkeypatch.setattr(framing, "PREALLOCATION_LIMIT", 10_000)
    content = bytes(range(256)) * 400

    assert [content] == feed(FrameBuffer(), framed(content))


@pytest.mark.parametrize("length", [-1, 0, 3, FRAME_LIMIT + 1])
def test_invalid_length_raises(length):
    with pytest.raises(ProtocolError, match=f"length {length}"):
        feed(FrameBuffer(), length.to_bytes(4, "big", signed=True))


def test_bytes_after_a_frame_raise():
    with pytest.raises(ProtocolError, match="2 unexpected bytes after a response of 5"):
        feed(FrameBuffer(), framed(b"12345") + b"67")
