"""Compression of record batches, by the codec in their attributes (KIP-98, KIP-110).

gzip and zstd data can consist of several members or frames. zstd frames can omit their
content's size, since Java writes them as a stream. lz4 data is one frame. snappy data
is either a raw block (librdkafka), or has the framing of the xerial library (Java):
8 bytes of magic, two versions of 4 bytes, then blocks with a length of 4 bytes each.
`sized_frames` decompresses the usual lz4 and zstd frames faster, if its libraries are
installed; cramjam decompresses all others.

The decompressed size is limited, since a batch of kilobytes can decompress to
gigabytes. The only limit in cramjam is the size of an output buffer, which takes twice
the time (measured: 1.4 instead of 0.7 ms for 0.9 MB of zstd). So a buffer is used only
for data that could exceed the limit, by the maximum ratio of its format. (cramjam's
`output_len` does not limit: a value too small is ignored, one too large pads with
zeros.)
"""

import enum
import mmap
from collections.abc import Callable
from typing import Final

import cramjam

from sharecons.records.errors import UNREADABLE, DamagedError
from sharecons.records.sized_frames import decompress_lz4, decompress_zstd

__all__ = ["LIMIT", "Codec", "compress", "decompress", "zstd_max_size"]

LIMIT: Final = 1 << 30
"""Maximum decompressed size of a batch in bytes. Brokers limit the compressed size, to
1 MiB by default, so real batches stay far below this. A batch near the limit blocks the
event loop for a second, and needs that much memory.
"""

# Maximum ratios: deflate produces 258 bytes from two bits, lz4 255 from eight.
_GZIP_RATIO: Final = 1032
_LZ4_RATIO: Final = 255

_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_BLOCK: Final = 128 << 10  # the maximum of a block (RFC 8878, 3.1.1.2.4)
_UNBOUNDED: Final = 1 << 62

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + b"\x00\x00\x00\x01" * 2
_XERIAL_BLOCK: Final = 32 << 10  # as Java writes them


class Codec(enum.IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def decompress(codec: int, data: bytes | memoryview, limit: int = LIMIT) -> bytes:
    """Decompress data to at most `limit` bytes.

    Raises:
        DamagedError: the data is damaged or too large, or the codec is unknown.
    """
    if codec == Codec.NONE:
        return bytes(data)
    if codec > Codec.ZSTD:
        raise DamagedError(f"{UNREADABLE}unknown compression codec {codec}")
    try:
        return _decompress(codec, data, limit)
    except (MemoryError, OSError) as error:  # OSError is of `mmap`
        name = Codec(codec).name.lower()
        raise DamagedError(f"{UNREADABLE}out of memory: {name}: {error}") from error
    except (cramjam.DecompressionError, DamagedError) as error:
        raise DamagedError(f"{Codec(codec).name.lower()}: {error}") from error


def compress(codec: Codec, data: bytes) -> bytes:
    """Compress data in the form that all clients and brokers can read."""
    if codec is Codec.NONE:
        return data
    if codec is Codec.GZIP:
        return bytes(cramjam.gzip.compress(data))
    if codec is Codec.SNAPPY:
        return _compress_snappy(data)
    if codec is Codec.LZ4:
        return _compress_lz4(data)
    return bytes(cramjam.zstd.compress(data))


def _decompress(codec: int, data: bytes | memoryview, limit: int) -> bytes:
    if codec == Codec.SNAPPY:
        return _decompress_snappy(bytes(data), limit)
    if codec == Codec.GZIP:
        if len(data) * _GZIP_RATIO <= limit:
            return bytes(cramjam.gzip.decompress(data))
        return _decompress_bounded(limit, data, cramjam.gzip.decompress_into)
    if codec == Codec.LZ4:
        content = decompress_lz4(data, limit)
        if content is not None:
            return content
        if len(data) * _LZ4_RATIO <= limit:
            return bytes(cramjam.lz4.decompress(data))
        return _decompress_bounded(limit, data, cramjam.lz4.decompress_into)
    max_size = zstd_max_size(data)
    content = decompress_zstd(data, limit, max_size)
    if content is not None:
        return content
    if max_size <= limit:
        return bytes(cramjam.zstd.decompress(data))
    return _decompress_bounded(limit, data, cramjam.zstd.decompress_into)


def _decompress_bounded(
    limit: int,
    data: bytes | memoryview,
    decompress_into: Callable[[bytes | memoryview, mmap.mmap], int],
) -> bytes:
    # An anonymous map gets its memory page by page when it is written; a bytearray of
    # this size would allocate a gigabyte immediately.
    buffer = mmap.mmap(-1, limit)
    try:
        size = decompress_into(data, buffer)
    except cramjam.DecompressionError as error:
        raise DamagedError(f"damaged, or more than {limit} bytes: {error}") from error
    return buffer[:size]


def zstd_max_size(data: bytes | memoryview) -> int:
    """Return the maximum decompressed size of zstd frames (RFC 8878, 3.1.1).

    It follows from the number of blocks. Invalid frames have no maximum.
    """
    max_size = 0
    position = 0
    size = len(data)
    while position < size:
        if data[position : position + 4] != _ZSTD_MAGIC or size - position < 6:
            return _UNBOUNDED
        descriptor = data[position + 4]
        position += _zstd_header_size(descriptor)
        last = 0
        while not last:
            block = int.from_bytes(data[position : position + 3], "little")
            last = block & 1
            # A block of type 1 is a single byte that is repeated.
            position += 3 + (1 if block & 6 == 2 else block >> 3)
            if position > size:
                return _UNBOUNDED
            max_size += _ZSTD_BLOCK
        position += descriptor & 4  # the checksum's size
    return max_size


def _zstd_header_size(descriptor: int) -> int:
    single = descriptor >> 5 & 1
    dictionary_id = (0, 1, 2, 4)[descriptor & 3]
    content_size = (single, 2, 4, 8)[descriptor >> 6]
    return 5 + (1 - single) + dictionary_id + content_size


def _decompress_snappy(data: bytes, limit: int) -> bytes:
    if not data.startswith(_XERIAL_MAGIC):
        return _decompress_snappy_block(data, limit)
    blocks: list[bytes] = []
    position = 0
    while position < len(data):
        # The header is repeated where one stream was appended to another.
        if data.startswith(_XERIAL_MAGIC, position):
            position += len(_XERIAL_HEADER)
            continue
        start = position + 4
        position = start + int.from_bytes(data[position:start], "big")
        blocks.append(_decompress_snappy_block(data[start:position], limit))
        limit -= len(blocks[-1])
    return b"".join(blocks)


def _decompress_snappy_block(data: bytes, limit: int) -> bytes:
    if cramjam.snappy.decompress_raw_len(data) > limit:
        raise DamagedError(f"more than {limit} bytes")
    return bytes(cramjam.snappy.decompress_raw(data))


def _compress_snappy(data: bytes) -> bytes:
    framed = bytearray(_XERIAL_HEADER)
    for start in range(0, len(data), _XERIAL_BLOCK):
        block = cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK])
        framed += len(block).to_bytes(4, "big")
        framed += bytes(block)
    return bytes(framed)


def _compress_lz4(data: bytes) -> bytes:
    # Kafka's lz4 reader rejects linked blocks, which are cramjam's default.
    compressor = cramjam.lz4.Compressor(block_linked=False)
    compressor.compress(data)
    return bytes(compressor.finish())
