"""Records in the responses of ShareFetch and Fetch: all formats and codecs."""

import struct
import zlib
from collections.abc import Sequence
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from sharecons.record import DETACHED
from sharecons.records.batch import Decoded, decode
from sharecons.records.columns_reader import next_offset
from sharecons.records.compression import Codec, compress
from sharecons.records.encoder import NewRecord, encode
from sharecons.records.errors import DamagedError
from tests.fuzz.drawing import changed, integers
from tests.fuzz.target import Case, Target
from tests.records import golden, golden_messages
from tests.records.columns_reading import read_rows
from tests.records.message_sets import message, wrapper
from tests.records.reading import all_offsets, batch_with_body, offsets, with_checksum

__all__ = ["TARGETS", "payloads"]

LAST: Final = 60
"""The last offset of most payloads."""

MAGIC_AT: Final = 16


def payloads() -> SearchStrategy[bytes]:
    """Return up to three batches; their checksums are mostly correct."""
    batches = st.tuples(_batches(), st.integers(0, LAST), st.booleans()).map(_placed)
    whole = st.lists(batches, max_size=3).map(b"".join)
    return whole | changed(whole, max_changes=1)


def _batches() -> SearchStrategy[bytes]:
    recorded = (
        *golden.JAVA.values(),
        *golden.LIBRDKAFKA.values(),
        *golden_messages.JAVA.values(),
    )
    valid = st.sampled_from(recorded) | _encoded() | _messages()
    return valid | changed(valid) | _nonsense() | changed(_nonsense())


def _encoded() -> SearchStrategy[bytes]:
    return st.builds(
        lambda records, codec, more: encode(records, compression=codec, **more),
        st.lists(_RECORDS, max_size=4),
        st.sampled_from(Codec),
        st.fixed_dictionaries(
            {},
            optional={
                "append_timestamp": st.integers(0, 1 << 50),
                "transactional": st.booleans(),
                "control": st.booleans(),
                "producer_id": st.integers(-1, 3),
            },
        ),
    )


def _messages() -> SearchStrategy[bytes]:
    single = st.builds(
        lambda offset, value, key, magic: message(offset, value, key, magic=magic),
        st.integers(0, LAST),
        _BYTES,
        _BYTES,
        st.integers(0, 1),
    )
    return single | st.builds(
        lambda offset, inner, codec, magic: wrapper(offset, inner, codec, magic=magic),
        st.integers(0, LAST),
        st.lists(single | single.map(lambda one: one[:-1]), max_size=3),
        st.sampled_from([Codec.GZIP, Codec.SNAPPY, Codec.LZ4]),
        st.integers(0, 1),
    )


def _nonsense() -> SearchStrategy[bytes]:
    """Return batches whose checksum is correct, and whose records are nonsense."""
    records = encode([NewRecord(b"k", b"v" * 9, (("h", b"x"),))] * 3)[61:]
    bodies = st.binary(max_size=40) | changed(st.just(records))
    return st.builds(
        lambda body, codec, compressed, more: batch_with_body(
            compress(Codec(codec), body) if compressed and codec <= 4 else body,
            attributes=codec,
            **more,
        ),
        bodies | st.integers(1, 1 << 20).map(bytes),
        st.integers(0, 7),
        st.booleans(),
        st.fixed_dictionaries(
            {"count": integers(32), "last_offset_delta": integers(32)}
        ),
    )


_BYTES: Final = st.none() | st.binary(max_size=20) | st.just(b"v" * 5000)
_RECORDS: Final = st.builds(
    NewRecord,
    _BYTES,
    _BYTES,
    st.lists(st.tuples(st.text(max_size=5), _BYTES), max_size=2).map(tuple),
    st.integers(0, 1 << 50),
    st.none() | st.integers(0, 9),
)


def _placed(drawn: tuple[bytes, int, bool]) -> bytes:
    """Return a batch at an offset; make its length and its checksum correct."""
    batch, offset, is_correct = drawn
    if len(batch) <= MAGIC_AT or not is_correct:
        return batch
    batch = struct.pack(">q", offset) + batch[8:]
    if batch[MAGIC_AT] == 2:
        return with_checksum(batch.ljust(21, b"\0"))
    # A message of format 0 or 1, of which there can be several: the first one.
    size = len(batch) - 12
    (length,) = struct.unpack_from(">i", batch, 8)
    end = 12 + (length if 4 < length <= size else size)
    crc = struct.pack(">I", zlib.crc32(batch[16:end]))
    return batch[:8] + struct.pack(">i", end - 12) + crc + batch[16:]


def _spans(bounds: Sequence[int]) -> list[tuple[int, int, int]]:
    pairs = zip(bounds[::2], bounds[1::2], strict=False)
    return [(first, last - 1, 1 + first % 3) for first, last in pairs]


def _check(case: Case) -> None:
    payload, bounds = case
    acquired = _spans(bounds)
    decoded = decode(payload, acquired, "orders", 3, DETACHED)
    assert all_offsets(decoded) == offsets(acquired), "each offset is in one part"
    views = decode(
        memoryview(payload), acquired, "orders", 3, DETACHED, value_views=True
    )
    assert _facts(views) == _facts(decoded), "with views of values"
    _check_columns(payload, acquired)


def _facts(decoded: Decoded) -> Any:
    return [record.offset for record in decoded.records], decoded.gaps, decoded.unseen


def _check_columns(payload: bytes, spans: Sequence[tuple[int, int, int]]) -> None:
    assert next_offset(memoryview(payload), 5) >= 5
    requested = set(offsets(spans))
    for aborted in ((), [(1, 0), (77, 3)]):
        try:
            rows = read_rows(payload, spans, aborted=aborted)
        except DamagedError:
            continue
        assert {row[0] for row in rows} <= requested, "only requested offsets"


TARGETS: Final = (
    Target(
        name="batches",
        cases=st.tuples(
            payloads(),
            st.lists(st.integers(0, LAST + 20), unique=True, max_size=6).map(sorted)
            | st.just([0, LAST + 20]),
        ),
        check=_check,
        modules=("records",),
        # zstd and lz4: a small batch can contain megabytes.
        memory=256 << 20,
        examples=400,
    ),
)
