"""Splitting received bytes into frames, without copying large ones.

No I/O: the receiver writes into `FrameBuffer.writable()` and calls `advance()`.
"""

from typing import Final, final

from sharecons.wire.codec import frames
from sharecons.wire.codec.api import Frame

__all__ = ["FRAME_LIMIT", "FrameBuffer"]

FRAME_LIMIT: Final = 256 << 20
"""Longest response in bytes: max_bytes (8 MiB by default) is a soft limit, and one
record batch may exceed it."""

FIRST_SIZE: Final = 4 << 10
"""Bytes received before the frame's length is known. Responses without records fit."""

PREALLOCATION_LIMIT: Final = 16 << 20
"""Largest buffer allocated from the length alone. It grows as more bytes arrive."""

ROUND_TO: Final = 64 << 10
MAX_KEPT: Final = 3
"""Buffers to reuse: of a frame in process, one that is ready and one in flight."""

MUCH_MISSING: Final = 256 << 10
"""Bytes that one read of a loopback socket returned. If less is missing, the broker may
have sent the last byte already, and a pipelined request would gain nothing."""

MAX_LOW_WATER_MARK: Final = 64 << 10
"""If at most this many bytes are missing, one wakeup for all of them is better. A
broker sends each partition's fields and records separately: a response with six
partitions of a few records each arrives in a dozen parts."""

MAX_FREED: Final = 31 << 20


@final
class FrameBuffer:
    """The frames of one connection, one after the other.

    Small frames are copied. Large ones are views of a buffer that is reused once no
    view of it is left: clearing new memory and mapping its pages for each frame is a
    tenth of the cost of a large response.
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
        """Bytes to wait for before receiving again.

        0 if no frame has begun, or if more than MAX_LOW_WATER_MARK are missing.
        """
        return self._missing

    @property
    def is_missing_much(self) -> bool:
        """True if a frame has begun and more than a socket buffers is missing."""
        return (
            self._received > FIRST_SIZE and self._length - self._received > MUCH_MISSING
        )

    def writable(self) -> memoryview:
        """Return the memory for the next bytes; never empty."""
        if self._received == len(self._writable):
            self._grow()
        return self._writable[self._received :]

    def advance(self, size: int) -> Frame | None:
        """Count `size` bytes written to `writable()`; return the frame once complete.

        Raises:
            ProtocolError: the length is invalid, or more bytes follow the frame.
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
        self._length = -1  # unknown

    def _on_first_bytes(self) -> Frame | None:
        received = self._received
        if received < frames.LENGTH_SIZE:
            return None
        # Reading bytes is faster than reading a memoryview.
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
        """Enlarge the buffer of a frame longer than PREALLOCATION_LIMIT."""
        grown = memoryview(bytearray(min(self._length, 2 * self._received)))
        grown[: self._received] = self._writable
        self._writable = grown


def _keep_freed_memory(size: int) -> None:
    """Make the C library keep `2 * size` bytes of freed memory for reuse.

    The record values of a response take about as many bytes as the response, and those
    of one or two responses are freed at a time. glibc returns free memory at the end of
    the heap to the system from 128 KiB on, and the next response maps each page again:
    with values of 1 KiB that was a quarter of all CPU time. glibc keeps twice the size
    of the largest block ever freed, if that block is below 32 MiB (mallopt(3),
    M_MMAP_THRESHOLD). Pages that are never touched cost nothing.
    """
    bytes(min(2 * size, MAX_FREED))


def _is_viewed(buffer: bytearray) -> bool:
    """Return whether a view of the buffer exists: its size cannot be changed then."""
    try:
        buffer.append(0)
    except BufferError:
        return True
    buffer.pop()
    return False
