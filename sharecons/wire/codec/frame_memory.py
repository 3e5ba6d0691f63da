"""Memory for large frames, used again once nothing refers to it.

New memory is filled with zeros, and the system provides its pages one by one. With
records of 10 KiB, a consumer that does without takes 0.93 of the CPU time and reads
1.08 times as many records (docs/performance/2026-11-28/large-records.md).
"""

from threading import Lock
from typing import Final, final

__all__ = ["FrameMemory"]

UNIT: Final = 256 << 10
"""Sizes are multiples of it, so that a frame fits in the memory of a similar one."""

MAX_SLACK: Final = 2
"""The maximum multiple of a frame's size that its memory can have: with
`values="memoryview"`, an application keeps it for as long as it likes."""

LIMIT: Final = 32 << 20
"""Bytes that are kept: four frames of 8 MiB, the default of max_bytes."""

FREED_BLOCK: Final = 16 << 20
"""The size of a block whose release makes glibc keep twice as much freed memory at the
end of its heap (mallopt(3), M_MMAP_THRESHOLD). Frames that are not kept have this
effect by themselves. Without it, glibc returned the memory of values to the system
after each fetch: 350 page faults for 500 records of 10 KiB."""


@final
class FrameMemory:
    """Keeps the memory of frames, in use or not. Safe in any thread."""

    __slots__ = ("_buffers", "_lock", "_size")

    def __init__(self) -> None:
        self._buffers: list[bytearray] = []
        self._size = 0
        self._lock = Lock()

    def take(self, size: int) -> memoryview:
        """Return writable memory of `size` bytes, with any content.

        It is in use until no memoryview of it exists.
        """
        with self._lock:
            buffer = self._find(size)
            if buffer is None:
                buffer = self._allocate(size)
            return memoryview(buffer)[:size]

    def _find(self, size: int) -> bytearray | None:
        for buffer in self._buffers:
            if size <= len(buffer) <= max(UNIT, MAX_SLACK * size) and is_unused(buffer):
                return buffer
        return None

    def _allocate(self, size: int) -> bytearray:
        if not self._buffers:
            bytes(FREED_BLOCK)  # its pages are never touched
        buffer = bytearray(-(-size // UNIT) * UNIT)
        if self._size + len(buffer) > LIMIT:
            # No unused memory has a suitable size: frames are larger or smaller now.
            self._buffers = [each for each in self._buffers if not is_unused(each)]
            self._size = sum([len(each) for each in self._buffers])
        if self._size + len(buffer) <= LIMIT:
            self._buffers.append(buffer)
            self._size += len(buffer)
        return buffer


def is_unused(buffer: bytearray) -> bool:
    """Return whether no memoryview of the buffer exists: resizing raises otherwise."""
    try:
        last = buffer.pop()
    except BufferError:
        return False
    buffer.append(last)
    return True
