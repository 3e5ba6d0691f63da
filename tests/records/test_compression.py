"""Every codec in the forms that Kafka's clients write, bombs, and damaged data."""

import contextlib
import gzip

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.records.compression import Codec, compress, decompress, zstd_max_size
from sharecons.records.errors import DamagedError

COMPRESSING = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
codecs = pytest.mark.parametrize("codec", COMPRESSING)

ZEROS = bytes(1 << 20)
TEXT = b"".join(b"line %d\n" % i for i in range(50_000))


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("data", [b"x", b"x" * 32768, b"x" * 32769, ZEROS, TEXT])
def test_compression_round_trip(codec, data):
    assert data == decompress(codec, compress(codec, data))


@given(st.sampled_from(Codec), st.binary())
def test_compression_round_trip_of_any_bytes(codec, data):
    assert data == decompress(codec, compress(codec, data))


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codec_is_rejected(codec):
    with pytest.raises(DamagedError, match=f"unknown compression codec {codec}"):
        decompress(codec, b"data")


@codecs
def test_damaged_data_names_its_codec(codec):
    with pytest.raises(DamagedError, match=f"^{codec.name.lower()}: "):
        decompress(codec, b"garbage!")


@codecs
def test_truncated_data_is_damaged(codec):
    data = compress(codec, b"spam and eggs " * 10)
    header = 16 if codec is Codec.SNAPPY else 0
    for size in range(header + 1, len(data)):
        with pytest.raises(DamagedError):
            decompress(codec, data[:size])


@codecs
def test_empty_data_is_damaged(codec):
    with pytest.raises(DamagedError):
        decompress(codec, b"")


@given(st.sampled_from(COMPRESSING), st.binary(), st.integers(1, 100))
def test_random_bytes_are_decompressed_or_damaged(codec, data, limit):
    with contextlib.suppress(DamagedError):
        assert len(decompress(codec, data, limit)) <= limit


@given(st.sampled_from(COMPRESSING), st.integers(0), st.integers(0, 255))
def test_a_changed_byte_is_decompressed_or_damaged(codec, position, byte):
    data = bytearray(compress(codec, b"spam and eggs " * 10))
    data[position % len(data)] = byte
    with contextlib.suppress(DamagedError):
        assert len(decompress(codec, bytes(data), 200)) <= 200


@codecs
@pytest.mark.parametrize("data", [TEXT, ZEROS], ids=["text", "zeros"])
def test_the_limit_is_exact(codec, data):
    compressed = compress(codec, data)

    assert data == decompress(codec, compressed, len(data))
    with pytest.raises(DamagedError, match=r"more than \d+ bytes"):
        decompress(codec, compressed, len(data) - 1)


def test_several_gzip_members_are_concatenated():
    data = gzip.compress(b"spam") + gzip.compress(b"eggs")

    assert b"spameggs" == decompress(Codec.GZIP, data)


@pytest.mark.parametrize("limit", [8, 1 << 20])
def test_several_zstd_frames_are_concatenated(limit):
    data = compress(Codec.ZSTD, b"spam") + compress(Codec.ZSTD, b"eggs")

    assert b"spameggs" == decompress(Codec.ZSTD, data, limit)


def streamed(data):
    compressor = cramjam.zstd.Compressor()
    compressor.compress(data)
    return bytes(compressor.finish())


@pytest.mark.parametrize("data", [b"", b"x", TEXT, ZEROS])
@pytest.mark.parametrize("write", [streamed, cramjam.zstd.compress])
def test_zstd_frame_without_content_size(data, write):
    assert data == decompress(Codec.ZSTD, bytes(write(data)))


def zstd_frame(descriptor, fields, *blocks, checksum=b""):
    return (
        b"\x28\xb5\x2f\xfd" + bytes([descriptor]) + fields + b"".join(blocks) + checksum
    )


def zstd_block(kind, size, content, *, last=True):
    return (size << 3 | kind << 1 | last).to_bytes(3, "little") + content


ZSTD_FRAMES = [
    zstd_frame(0x20, b"\x04", zstd_block(0, 4, b"spam")),
    zstd_frame(0x60, b"\0\0", zstd_block(1, 256, b"x")),
    zstd_frame(0xA0, b"\x04\0\0\0", zstd_block(0, 4, b"spam")),
    zstd_frame(0xE0, b"\x04" + bytes(7), zstd_block(0, 4, b"spam")),
    zstd_frame(0x00, b"\x58", zstd_block(0, 4, b"spam")),
    zstd_frame(0x01, b"\x58\0", zstd_block(0, 4, b"spam")),
    zstd_frame(0x02, b"\x58\0\0", zstd_block(0, 4, b"spam")),
    zstd_frame(0x03, b"\x58\0\0\0\0", zstd_block(0, 4, b"spam")),
]


@pytest.mark.parametrize("frame", ZSTD_FRAMES)
def test_zstd_block_is_found_after_any_header(frame):
    assert 128 << 10 == zstd_max_size(frame)
    assert len(decompress(Codec.ZSTD, frame)) <= 128 << 10


def test_zstd_max_size_counts_blocks_of_all_frames():
    frame = streamed(TEXT)

    # TEXT is 538,890 bytes: four full blocks and a partial one.
    assert 5 * (128 << 10) == zstd_max_size(frame)
    assert 10 * (128 << 10) == zstd_max_size(frame * 2)


def test_zstd_checksums_are_skipped():
    frame = zstd_frame(0x04, b"\x58", zstd_block(0, 4, b"spam"), checksum=b"\xff" * 4)

    assert 2 * (128 << 10) == zstd_max_size(frame * 2)


@given(st.binary(max_size=1 << 12), st.integers(1, 40))
def test_zstd_max_size_is_an_upper_bound(data, times):
    for frame in (streamed(data * times), compress(Codec.ZSTD, data * times)):
        assert len(data) * times <= zstd_max_size(frame)


@pytest.mark.parametrize("size", [4, 5, 6, 8])
def test_truncated_zstd_has_no_max_size(size):
    assert zstd_max_size(streamed(TEXT)[:size]) > 1 << 60


def test_zstd_bomb_is_rejected():
    # 16 GiB in half a megabyte: repeated bytes, 128 KiB in each block of four.
    block = zstd_block(1, 128 << 10, b"\0", last=False)
    bomb = zstd_frame(0x00, b"\x58", block * (1 << 17), zstd_block(0, 0, b""))

    with pytest.raises(DamagedError, match="more than 1048576 bytes"):
        decompress(Codec.ZSTD, bomb, 1 << 20)


def test_zstd_skippable_frames_are_skipped():
    skippable = b"\x50\x2a\x4d\x18\x03\0\0\0abc"

    assert b"spam" == decompress(
        Codec.ZSTD, skippable + compress(Codec.ZSTD, b"spam"), 100
    )


def test_raw_snappy_is_decompressed():
    data = bytes(cramjam.snappy.compress_raw(TEXT))

    assert TEXT == decompress(Codec.SNAPPY, data)


def test_snappy_is_compressed_with_xerial_framing():
    data = compress(Codec.SNAPPY, TEXT)

    assert b"\x82SNAPPY\0\0\0\0\1\0\0\0\1" == data[:16]


def test_several_xerial_streams_are_concatenated():
    data = compress(Codec.SNAPPY, b"spam") + compress(Codec.SNAPPY, b"eggs")

    assert b"spameggs" == decompress(Codec.SNAPPY, data)


def test_limit_applies_to_all_snappy_blocks_together():
    data = compress(Codec.SNAPPY, bytes(40_000))

    assert bytes(40_000) == decompress(Codec.SNAPPY, data, 40_000)
    with pytest.raises(DamagedError, match="more than"):
        decompress(Codec.SNAPPY, data, 39_999)


def test_lz4_blocks_are_independent():
    # Kafka: "Dependent block stream is unsupported".
    independent = 0x20

    assert compress(Codec.LZ4, ZEROS)[4] & independent
