"""lz4 and zstd frames that are decompressed without cramjam."""

import threading

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.records import sized_frames
from sharecons.records.compression import Codec, compress, decompress, zstd_max_size
from sharecons.records.errors import DamagedError
from sharecons.records.sized_frames import decompress_lz4, decompress_zstd

lz4_frame = pytest.importorskip("lz4.frame")
zstandard = pytest.importorskip("zstandard")

LIMIT = 1 << 30
TEXT = b"".join(b"line %d\n" % i for i in range(50_000))
CONTENTS = [b"x", b"x" * 200_000, TEXT]


def lz4_of(data, *, sized=True, linked=False):
    return lz4_frame.compress(data, store_size=sized, block_linked=linked)


def zstd_of(data, *, sized=True, checksum=False):
    return zstandard.ZstdCompressor(
        write_content_size=sized, write_checksum=checksum
    ).compress(data)


def unlz4(data, limit=LIMIT):
    return decompress_lz4(data, limit)


def unzstd(data, limit=LIMIT):
    return decompress_zstd(data, limit, zstd_max_size(data))


@pytest.mark.parametrize("data", CONTENTS)
@pytest.mark.parametrize("sized", [True, False])
@pytest.mark.parametrize("linked", [True, False])
def test_lz4_frame_is_decompressed(data, sized, linked):
    frame = lz4_of(data, sized=sized, linked=linked)

    assert data == unlz4(frame)
    assert data == unlz4(memoryview(bytearray(frame)))
    assert type(unlz4(frame)) is bytes


@pytest.mark.parametrize("data", CONTENTS)
@pytest.mark.parametrize("sized", [True, False])
@pytest.mark.parametrize("checksum", [True, False])
def test_zstd_frame_is_decompressed(data, sized, checksum):
    frame = zstd_of(data, sized=sized, checksum=checksum)

    assert data == unzstd(frame)
    assert data == unzstd(memoryview(bytearray(frame)))
    assert type(unzstd(frame)) is bytes


@pytest.mark.parametrize(
    ("codec", "compressed", "fast"),
    [
        (Codec.LZ4, lz4_of, unlz4),
        (Codec.ZSTD, zstd_of, unzstd),
    ],
    ids=["lz4", "zstd"],
)
class TestBoth:
    @given(data=st.binary())
    def test_frames_of_cramjam_are_the_same(self, codec, compressed, fast, data):
        frame = compress(codec, data)

        assert fast(frame) in (data, None)
        assert data == decompress(codec, frame)

    def test_damaged_frame_is_left_to_cramjam(self, codec, compressed, fast):
        frame = bytearray(compressed(TEXT))
        del frame[-5:]

        assert fast(frame) is None
        with pytest.raises(DamagedError):
            decompress(codec, bytes(frame))

    def test_several_frames_are_left_to_cramjam(self, codec, compressed, fast):
        assert fast(compressed(b"spam") * 2) is None

    def test_content_above_the_limit_is_rejected(self, codec, compressed, fast):
        frame = compressed(TEXT)

        assert fast(frame, len(TEXT) - 1) is None
        assert TEXT == decompress(codec, frame, len(TEXT))
        with pytest.raises(DamagedError, match=r"more than \d+ bytes"):
            decompress(codec, frame, len(TEXT) - 1)

    def test_any_changed_byte_keeps_the_limit(self, codec, compressed, fast):
        frame = compressed(b"spam and eggs " * 10)
        for position in range(len(frame)):
            for byte in (0, 0x7F, 0xFF, frame[position] ^ 1):
                changed = bytearray(frame)
                changed[position] = byte
                content = fast(changed, 1 << 17)
                assert content is None or len(content) <= 1 << 17

    def test_threads_do_not_disturb_each_other(self, codec, compressed, fast):
        frames = [
            (bytes([n]) * 300_000, compressed(bytes([n]) * 300_000)) for n in (1, 2)
        ]
        wrong = []

        def run(content, frame):
            wrong.extend(n for n in range(50) if fast(frame) != content)

        threads = [threading.Thread(target=run, args=each) for each in frames]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert [] == wrong


def test_lz4_frame_with_an_impossible_size_allocates_nothing():
    frame = bytearray(lz4_of(b"spam" * 100))
    frame[6:14] = (1 << 40).to_bytes(8, "little")

    assert unlz4(frame, 1 << 50) is None


def test_zstd_frame_with_an_impossible_size_allocates_nothing():
    # Descriptor: content size of 8 bytes, a single segment; one raw block.
    frame = b"\x28\xb5\x2f\xfd\xe0" + (1 << 40).to_bytes(8, "little") + b"\x21\0\0spam"

    assert unzstd(frame, 1 << 50) is None


def test_zstd_frame_of_unknown_size_above_the_estimate_is_left_to_cramjam(monkeypatch):
    monkeypatch.setattr(sized_frames, "MAX_ESTIMATE", 4 * (128 << 10))
    data = b"x" * (5 * (128 << 10))
    frame = zstd_of(data, sized=False)

    assert unzstd(frame) is None
    assert data == unzstd(zstd_of(data))
    assert data == decompress(Codec.ZSTD, frame)


@pytest.mark.parametrize("codec", [Codec.LZ4, Codec.ZSTD])
def test_without_the_libraries_cramjam_decompresses(codec, monkeypatch):
    monkeypatch.setattr(sized_frames, "lz4_frame", None)
    monkeypatch.setattr(sized_frames, "_contexts", None)
    frame = compress(codec, TEXT)

    assert unlz4(bytes(cramjam.lz4.compress(TEXT))) is None
    assert unzstd(bytes(cramjam.zstd.compress(TEXT))) is None
    assert TEXT == decompress(codec, memoryview(frame))
