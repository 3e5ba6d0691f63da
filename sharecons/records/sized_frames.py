"""Decompression of single lz4 and zstd frames into bytes of their size, without a copy.

cramjam decompresses into a buffer that grows, which is then copied to bytes, and makes
a new zstd context for each call. With lz4 and zstandard (the extra `compression`), a
batch of 16 KiB takes 0.6 of the time (lz4) and 0.11 (zstd), see
docs/performance/2026-11-28/large-records.md. They are optional: cramjam is sufficient.

The functions return None for what they leave to cramjam: damaged data, several frames,
a size that is above the limit or not plausible, or a missing library.
"""

import threading
from importlib import import_module
from typing import Any, Final

__all__ = ["decompress_lz4", "decompress_zstd"]


def _import_optional(name: str) -> Any:
    """Return a module, or None if it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        return None


lz4_frame: Final[Any] = _import_optional("lz4.frame")
zstandard: Final[Any] = _import_optional("zstandard")

MAX_ESTIMATE: Final = 16 << 20
"""Maximum bytes that are allocated for a zstd frame whose size is not known."""

LZ4_RATIO: Final = 255
"""The maximum ratio of lz4: a byte of a length stands for 255 bytes."""

_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_LZ4_HEADER: Final = 7  # without a content size
_LZ4_HAS_SIZE: Final = 0x08
_LZ4_SIZE: Final = slice(6, 14)
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_HEADER: Final = 18
"""The maximum size of a header, of both formats."""


class _Contexts(threading.local):
    """A zstd context per thread: two threads must not use one at the same time."""

    def __init__(self) -> None:
        self.zstd: Any = zstandard.ZstdDecompressor()


_contexts: Final = _Contexts() if zstandard else None


def decompress_lz4(data: bytes | memoryview, limit: int) -> bytes | None:
    """Return what one lz4 frame contains, at most `limit` bytes; None if unsuitable."""
    header = bytes(data[:_HEADER])
    max_size = len(data) * LZ4_RATIO
    if lz4_frame is None or max_size > limit or header[:4] != _LZ4_MAGIC:
        return None
    # The library allocates the size in the header before it reads the rest.
    if len(header) < _LZ4_HEADER:
        return None
    has_size = header[4] & _LZ4_HAS_SIZE
    if has_size and int.from_bytes(header[_LZ4_SIZE], "little") > max_size:
        return None
    try:
        content, read = lz4_frame.decompress(data, return_bytes_read=True)
    except (RuntimeError, ValueError, MemoryError):
        return None
    return content if read == len(data) else None


def decompress_zstd(
    data: bytes | memoryview, limit: int, max_size: int
) -> bytes | None:
    """Return what one zstd frame contains, at most `limit` bytes; None if unsuitable.

    Args:
        max_size: the maximum that follows from the number of blocks, in bytes.
    """
    if _contexts is None or max_size > limit or data[:4] != _ZSTD_MAGIC:
        return None
    try:
        size = zstandard.frame_content_size(bytes(data[:_HEADER]))
        if size == 0 or size > max_size or (size < 0 and max_size > MAX_ESTIMATE):
            return None
        content: bytes = _contexts.zstd.decompress(
            data, max_output_size=max_size, allow_extra_data=False
        )
    except (zstandard.ZstdError, ValueError, MemoryError):
        return None
    return content
