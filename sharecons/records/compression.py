"""Compression of record batches, by the numbers in their attributes (KIP-98, KIP-110).

gzip and zstd are what their names say, and several members or frames in a row read as
one; zstd frames need not tell their content's size, since Java writes them as a stream.
lz4 is one frame. snappy comes in two forms: a bare block (librdkafka), or the framing
of the xerial library (Java): a magic of 8 bytes, two versions of 4, then blocks, each
behind its length in 4 bytes.

Decompression is bounded, since a batch of kilobytes can unfold to gigabytes. cramjam
has no bound but the size of a buffer that it is given to write to, which takes twice
the time (measured: 0.9 MB of zstd in 1.4 instead of 0.7 ms). So that is kept for data
that could pass the limit at all, by what its form can unfold to at most. (cramjam's
`output_len` is no bound: too small it is ignored, too large it pads with zeros.)
"""

import enum
import mmap
from collections.abc import Callable
from typing import Final

import cramjam

from sharecons.records.errors import DamagedError

__all__ = ["LIMIT", "Codec", "compress", "decompress", "zstd_most"]

LIMIT: Final = 1 << 30
"""Bytes that one batch may unfold to. Brokers bound a batch as it is compressed, to
1 MiB by default, so that real ones stay far below this. What comes near it holds the
event loop up for a second, and a machine with less memory than that is not protected.
"""

# What a byte can unfold to: deflate gives 258 bytes for two bits, lz4 255 for eight.
_GZIP_RATIO: Final = 1032
_LZ4_RATIO: Final = 255

_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_BLOCK: Final = 128 << 10  # the most that one block holds (RFC 8878, 3.1.1.2.4)
_ANYTHING: Final = 1 << 62

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + b"\x00\x00\x00\x01" * 2
_XERIAL_BLOCK: Final = 32 << 10  # as Java writes them


class Codec(enum.IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def decompress(codec: int, data: bytes, limit: int = LIMIT) -> bytes:
    """Give back what was compressed, if it is no more than `limit` bytes.

    Raises:
        DamagedError: it is more, is damaged, or there is no such codec.
    """
    if codec == Codec.NONE:
        return data
    if codec > Codec.ZSTD:
        raise DamagedError(f"unknown compression codec {codec}")
    try:
        return _decompress(codec, data, limit)
    except (
        cramjam.DecompressionError,
        DamagedError,
        MemoryError,
        OSError,  # of `mmap`: no memory
    ) as error:
        raise DamagedError(f"{Codec(codec).name.lower()}: {error}") from error


def compress(codec: Codec, data: bytes) -> bytes:
    """Compress so that every client and broker reads it."""
    if codec is Codec.NONE:
        return data
    if codec is Codec.GZIP:
        return bytes(cramjam.gzip.compress(data))
    if codec is Codec.SNAPPY:
        return _snap(data)
    if codec is Codec.LZ4:
        return _lz4(data)
    return bytes(cramjam.zstd.compress(data))


def _decompress(codec: int, data: bytes, limit: int) -> bytes:
    if codec == Codec.SNAPPY:
        return _unsnap(data, limit)
    if codec == Codec.GZIP:
        if len(data) * _GZIP_RATIO <= limit:
            return bytes(cramjam.gzip.decompress(data))
        return _within(limit, data, cramjam.gzip.decompress_into)
    if codec == Codec.LZ4:
        if len(data) * _LZ4_RATIO <= limit:
            return bytes(cramjam.lz4.decompress(data))
        return _within(limit, data, cramjam.lz4.decompress_into)
    if zstd_most(data) <= limit:
        return bytes(cramjam.zstd.decompress(data))
    return _within(limit, data, cramjam.zstd.decompress_into)


def _within(
    limit: int, data: bytes, decompress_into: Callable[[bytes, mmap.mmap], int]
) -> bytes:
    # The system gives an anonymous map its memory page by page, as it is written to:
    # a bytearray of this size would be a gigabyte at once.
    space = mmap.mmap(-1, limit)
    try:
        size = decompress_into(data, space)
    except cramjam.DecompressionError as error:
        raise DamagedError(f"damaged, or more than {limit} bytes: {error}") from error
    return space[:size]


def zstd_most(data: bytes) -> int:
    """Bound what zstd frames unfold to, by their number of blocks (RFC 8878, 3.1.1).

    What is no such frame, or a damaged one, may unfold to anything.
    """
    most = 0
    position = 0
    size = len(data)
    while position < size:
        if data[position : position + 4] != _ZSTD_MAGIC or size - position < 6:
            return _ANYTHING
        descriptor = data[position + 4]
        position += _zstd_header_size(descriptor)
        last = 0
        while not last:
            block = int.from_bytes(data[position : position + 3], "little")
            last = block & 1
            # A block of type 1 is a single byte, to be repeated.
            position += 3 + (1 if block & 6 == 2 else block >> 3)
            if position > size:
                return _ANYTHING
            most += _ZSTD_BLOCK
        position += descriptor & 4  # the checksum's size
    return most


def _zstd_header_size(descriptor: int) -> int:
    single = descriptor >> 5 & 1
    dictionary_id = (0, 1, 2, 4)[descriptor & 3]
    content_size = (single, 2, 4, 8)[descriptor >> 6]
    return 5 + (1 - single) + dictionary_id + content_size


def _unsnap(data: bytes, limit: int) -> bytes:
    if not data.startswith(_XERIAL_MAGIC):
        return _unsnap_block(data, limit)
    blocks: list[bytes] = []
    position = 0
    while position < len(data):
        # The header comes again where a stream was appended to another.
        if data.startswith(_XERIAL_MAGIC, position):
            position += len(_XERIAL_HEADER)
            continue
        start = position + 4
        position = start + int.from_bytes(data[position:start], "big")
        blocks.append(_unsnap_block(data[start:position], limit))
        limit -= len(blocks[-1])
    return b"".join(blocks)


def _unsnap_block(data: bytes, limit: int) -> bytes:
    if cramjam.snappy.decompress_raw_len(data) > limit:
        raise DamagedError(f"more than {limit} bytes")
    return bytes(cramjam.snappy.decompress_raw(data))


def _snap(data: bytes) -> bytes:
    framed = bytearray(_XERIAL_HEADER)
    for start in range(0, len(data), _XERIAL_BLOCK):
        block = cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK])
        framed += len(block).to_bytes(4, "big")
        framed += bytes(block)
    return bytes(framed)


def _lz4(data: bytes) -> bytes:
    # Kafka's own lz4 reader refuses blocks that refer to earlier ones, which cramjam
    # writes unless told otherwise.
    compressor = cramjam.lz4.Compressor(block_linked=False)
    compressor.compress(data)
    return bytes(compressor.finish())
