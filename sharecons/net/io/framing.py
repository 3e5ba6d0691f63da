"""Frames out of received bytes, with each byte received where it is to stay.

Pure: whoever receives asks `FrameBuffer` where to, and tells it how much came.
"""

from typing import Final, final

from sharecons.wire.codec import frames
from sharecons.wire.codec.api import Frame

__all__ = ["FRAME_LIMIT", "FrameBuffer"]

FRAME_LIMIT: Final = 256 << 20
"""Longest answer read into memory: max_bytes (8 MiB by default) is a soft limit, and
one record batch may exceed it."""

FIRST_SIZE: Final = 4 << 10
"""Received before the frame's length is known; answers without records fit in."""

PREALLOCATION_LIMIT: Final = 16 << 20
"""What says to be longer gets the room for it as it comes."""

ROUND_TO: Final = 64 << 10
MAX_KEPT: Final = 3
"""Of how many frames: one is worked, one waits for that, one comes."""

MUCH_MISSING: Final = 256 << 10
"""One read of a socket gave that much, on loopback: of less to come a broker may have
sent the last byte already, and nothing would be gained."""

MAX_LOW_WATER_MARK: Final = 64 << 10
"""Of less to come it is better to be woken once. A broker sends each partition's fields
and records by themselves: where six have a few records each that is a dozen pieces."""

MAX_FREED: Final = 31 << 20


@final
class FrameBuffer:
    """One frame after the other, of one connection.

    Small frames are bytes of their own. Large ones are lent: the memory of one is used
    again once nobody has a view of it. New memory for each would have to be cleared,
    and found by the system page by page, which is a tenth of what a large answer takes.
    """

    __slots__ = (
        "_first",
        "_kept",
        "_largest",
        "_length",
        "_missing",
        "_received",
        "_writable",
    )

    def __init__(self) -> None:
        self._first = memoryview(bytearray(FIRST_SIZE))
        self._kept: list[bytearray] = []
        self._largest = 0
        self._begin()

    @property
    def missing(self) -> int:
        """How many bytes are to come of a frame that has begun; 0 if none has, or too
        much is to come to wait for it without receiving."""
        return self._missing

    @property
    def is_missing_much(self) -> bool:
        """Whether some of a frame is here, and more to come than sockets hold."""
        return (
            self._received > FIRST_SIZE and self._length - self._received > MUCH_MISSING
        )

    def writable(self) -> memoryview:
        """Where the next bytes are to be received; never empty."""
        if self._received == len(self._writable):
            self._grow()
        return self._writable[self._received :]

    def advance(self, size: int) -> Frame | None:
        """So many bytes were put into the room; gives the frame if it is whole.

        Raises:
            ProtocolError: no answer has that length, or there is more behind it.
        """
        self._received += size
        if self._length < 0:
            return self._on_first_bytes()
        if self._received < self._length:
            self._set_missing(self._length - self._received)
            return None
        frame = self._writable
        self._begin()
        return frame

    def _begin(self) -> None:
        self._writable = self._first
        self._received = 0
        self._missing = 0
        self._length = -1  # until it has come

    def _on_first_bytes(self) -> Frame | None:
        received = self._received
        if received < frames.LENGTH_SIZE:
            return None
        # Bytes are read faster than a view of them.
        first = self._first[:received].tobytes()
        length = frames.frame_length(first, FRAME_LIMIT)
        size = frames.LENGTH_SIZE + length
        if size > FIRST_SIZE:
            start = first[frames.LENGTH_SIZE :]
            self._length, self._received = length, len(start)
            self._writable = memoryview(self._allocate(length))[:length]
            self._writable[: len(start)] = start
        if received < size:
            self._set_missing(size - received)
            return None
        frames.check_no_extra_bytes(received - frames.LENGTH_SIZE, length)
        self._begin()
        return first[frames.LENGTH_SIZE :]

    def _set_missing(self, size: int) -> None:
        self._missing = size if size <= MAX_LOW_WATER_MARK else 0

    def _allocate(self, length: int) -> bytearray:
        if length > PREALLOCATION_LIMIT:
            return bytearray(PREALLOCATION_LIMIT)
        for kept in self._kept:
            if len(kept) >= length and not _is_viewed(kept):
                return kept
        memory = bytearray(-(-length // ROUND_TO) * ROUND_TO)
        if len(memory) > self._largest:
            self._largest = len(memory)
            _keep_freed_memory(self._largest)
        self._kept = [memory, *self._kept[: MAX_KEPT - 1]]
        return memory

    def _grow(self) -> None:
        """Make room for more of a frame that was not believed to be so long."""
        grown = memoryview(bytearray(min(self._length, 2 * self._received)))
        grown[: self._received] = self._writable
        self._writable = grown


def _keep_freed_memory(size: int) -> None:
    """Have the C library keep so much memory for us when we let go of it.

    The values of an answer's records are about as many bytes, made for each answer and
    let go before the next, or two of them together. glibc gives what is free at the
    heap's end back to the system once it is 128 KiB, and then each page is found anew:
    of values of 1 KiB that was a quarter of all CPU time. It keeps twice the largest
    piece that was ever freed, if that is below 32 MiB (mallopt(3), M_MMAP_THRESHOLD);
    pages never touched cost nothing. Twice the size, as it were to be two answers, and
    each value is some bytes more than the broker sent.
    """
    bytes(min(2 * size, MAX_FREED))


def _is_viewed(buffer: bytearray) -> bool:
    """Tell whether anybody has a view of a buffer: its size cannot be changed then."""
    try:
        buffer.append(0)
    except BufferError:
        return True
    buffer.pop()
    return False
