"""Decoding into columns, compared with the decoder of records."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.records.columns import MAX_MILLISECONDS
from sharecons.records.columns_reader import ColumnsReader, next_offset
from sharecons.records.compression import Codec
from sharecons.records.encoder import NewRecord, encode
from sharecons.records.errors import DamagedError
from tests.records.columns_reading import read_chunks, read_rows, rows_of
from tests.records.golden import JAVA, LIBRDKAFKA
from tests.records.reading import batch_with_body, decode_payload, with_checksum

GOLDEN = [
    pytest.param(batch, id=f"{writer}-{name}")
    for writer, batches in (("java", JAVA), ("librdkafka", LIBRDKAFKA))
    for name, batch in batches.items()
    if not name.startswith("magic")
]


def expected(payload, spans):
    return [
        (
            record.offset,
            record.timestamp * 1000,
            record.timestamp_type,
            record.key,
            record.value,
            record.headers,
            record.delivery_count,
        )
        for record in decode_payload(payload, spans).records
    ]


def offsets(payload, spans=((0, 1 << 40, 1),), **options):
    return [row[0] for row in read_rows(payload, spans, **options)]


def values(payload, **options):
    return [row[4] for row in read_rows(payload, **options)]


@pytest.mark.parametrize("batch", GOLDEN)
def test_batches_of_other_clients_match_the_record_decoder(batch):
    assert expected(batch, ((0, 1 << 40, 1),)) == read_rows(batch)


# Strategies for all contents of a batch.

texts = st.text(max_size=6)
blobs = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(texts, st.none() | st.binary(max_size=5)), max_size=3)
records = st.builds(
    NewRecord,
    key=blobs,
    value=blobs,
    headers=headers.map(tuple),
    timestamp=st.integers(0, 1 << 42),
)
codecs = st.sampled_from(Codec)


@st.composite
def payloads(draw):
    """Draw batches with gaps in and between them."""
    payload = b""
    offset = draw(st.integers(0, 200))
    for _ in range(draw(st.integers(0, 5))):
        delta, held = -1, []
        for record in draw(st.lists(records, max_size=6)):
            delta += draw(st.integers(1, 3))
            held.append(record._replace(offset_delta=delta))
        last = max(delta, 0) + draw(st.integers(0, 3))
        payload += encode(
            held,
            base_offset=offset,
            last_offset_delta=last,
            compression=draw(codecs),
            append_timestamp=draw(st.none() | st.integers(0, 1 << 42)),
        )
        offset += last + 1 + draw(st.integers(0, 4))
    return payload


@st.composite
def spans(draw):
    bounds = sorted(draw(st.sets(st.integers(0, 260), max_size=10)))
    pairs = zip(bounds[::2], bounds[1::2], strict=False)
    return [(first, last, draw(st.integers(1, 25))) for first, last in pairs]


@given(
    payload=payloads(), acquired=spans(), max_data=st.sampled_from([1, 100, 1 << 20])
)
def test_any_batches_match_the_record_decoder(payload, acquired, max_data):
    assert expected(payload, acquired) == read_rows(
        payload, acquired, max_data=max_data
    )


@given(payload=payloads())
def test_without_headers_other_columns_are_the_same(payload):
    with_headers = [row[:5] for row in read_rows(payload)]

    assert with_headers == [row[:5] for row in read_rows(payload, with_headers=False)]
    assert all(chunk.headers == 0 for chunk in read_chunks(payload))


@given(payload=payloads(), cut=st.integers(1, 60))
def test_truncated_batch_is_left_for_the_next_fetch(payload, cut):
    last = encode([NewRecord(value=b"x")], base_offset=5000)

    whole = read_rows(payload)

    assert whole == read_rows(payload + last[:-cut])


# The next offset.


@given(payload=payloads(), cut=st.integers(1, 60))
def test_next_offset_is_after_the_last_complete_batch(payload, cut):
    batch = encode([NewRecord()] * 3, base_offset=5000)

    assert 5003 == next_offset(memoryview(payload + batch), 7)
    assert 5003 == next_offset(memoryview(payload + batch + batch[:-cut]), 7)


def test_next_offset_without_a_complete_batch_is_unchanged():
    batch = encode([NewRecord()] * 3, base_offset=5000)

    assert 5001 == next_offset(memoryview(batch[:-1]), 5001)
    assert 5001 == next_offset(memoryview(b""), 5001)


def test_next_offset_is_after_compacted_batches_and_markers():
    for batch, after in ((JAVA["emptied"], 1010), (JAVA["commit"], 1004)):
        assert after == next_offset(memoryview(batch), 0)
        assert [] == read_rows(batch)


def test_invalid_length_ends_the_search_for_batches():
    batch = bytearray(encode([NewRecord()]))
    batch[8:12] = (-12 & 0xFFFFFFFF).to_bytes(4, "big")

    assert 3 == next_offset(memoryview(batch), 3)
    with pytest.raises(DamagedError, match="invalid batch length -12"):
        read_rows(bytes(batch))


# Requested offsets.

TEN = encode([NewRecord(value=b"%d" % n) for n in range(10)], base_offset=100)


def test_batch_that_is_not_requested_is_not_decoded():
    damaged = bytearray(TEN)
    damaged[-1] ^= 1
    good = encode([NewRecord()], base_offset=110)

    assert [110] == offsets(bytes(damaged) + good, [(110, 110, 1)])


# Transactions.


def transaction_batch(producer, offset, *, control=False, count=2, **kwargs):
    # A marker's key contains version 0, and type 0 (abort) or 1 (commit).
    kind = kwargs.pop("kind", 0)
    marker = NewRecord(key=bytes((0, 0, 0, kind)), value=bytes(6))
    return encode(
        [marker] if control else [NewRecord(value=b"%d" % producer)] * count,
        base_offset=offset,
        producer_id=producer,
        producer_epoch=0,
        transactional=True,
        control=control,
        **kwargs,
    )


@pytest.mark.parametrize("codec", Codec)
def test_aborted_transactions_are_skipped(codec):
    payload = (
        transaction_batch(7, 0, compression=codec)
        + transaction_batch(8, 2, compression=codec)
        + encode([NewRecord(value=b"plain")], base_offset=4)
        + transaction_batch(7, 5, control=True)
        + transaction_batch(7, 6, compression=codec)
        + transaction_batch(7, 8, control=True, kind=1)
        + transaction_batch(8, 9, control=True, kind=1)
    )

    assert [2, 3, 4, 6, 7] == offsets(payload, aborted=[(7, 0)])
    assert [0, 1, 2, 3, 4, 6, 7] == offsets(payload)


def test_aborted_transaction_that_began_before_the_response_is_skipped():
    payload = (
        transaction_batch(7, 10)
        + transaction_batch(7, 12, control=True)
        + transaction_batch(7, 13)
    )

    assert [13, 14] == offsets(payload, aborted=[(7, 3)])


def test_marker_that_is_not_requested_ends_its_transaction():
    payload = (
        transaction_batch(7, 0)
        + transaction_batch(7, 2, control=True)
        + transaction_batch(7, 3)
    )
    acquired = [(0, 1, 1), (3, 4, 1)]

    assert [3, 4] == offsets(payload, acquired, aborted=[(7, 0)])
    assert [3, 4] == offsets(payload, acquired[1:], aborted=[(7, 0)])


def test_second_aborted_transaction_of_a_producer_is_skipped():
    payload = (
        transaction_batch(7, 0)
        + transaction_batch(7, 2, control=True)
        + transaction_batch(7, 3)
        + transaction_batch(7, 5, control=True, kind=1)
        + transaction_batch(7, 6)
        + transaction_batch(7, 8, control=True)
    )

    assert [3, 4] == offsets(payload, aborted=[(7, 6), (7, 0)])


@pytest.mark.parametrize("aborted", [*itertools.permutations([(7, 0), (8, 2), (7, 7)])])
def test_list_of_aborted_transactions_can_be_in_any_order(aborted):
    payload = (
        transaction_batch(7, 0)
        + transaction_batch(8, 2)
        + encode([NewRecord(value=b"plain")], base_offset=4)
        + transaction_batch(7, 5, control=True)
        + transaction_batch(8, 6, control=True)
        + transaction_batch(7, 7)
        + transaction_batch(8, 9)
        + transaction_batch(7, 11, control=True)
        + transaction_batch(8, 12, control=True, kind=1)
    )

    assert [4, 9, 10] == offsets(payload, aborted=aborted)


def test_batch_of_an_idempotent_producer_is_not_transactional():
    batch = encode([NewRecord(value=b"x")], producer_id=7, producer_epoch=0)

    assert [0] == offsets(batch, aborted=[(7, 0)])


# The size of a read.


def test_decompressed_data_is_returned_in_parts():
    batches = [
        encode(
            [NewRecord(value=bytes(1000))] * 10,
            base_offset=10 * n,
            compression=Codec.ZSTD,
        )
        for n in range(6)
    ]

    got = read_chunks(b"".join(batches), max_data=20_000)

    assert [20, 20, 20] == [chunk.rows for chunk in got]
    assert list(range(60)) == [row[0] for chunk in got for row in rows_of(chunk)]


def test_compressed_and_plain_batches_are_in_separate_columns():
    def batch(n, codec):
        return encode([NewRecord(value=b"%d" % n)], base_offset=n, compression=codec)

    plain, packed = Codec.NONE, Codec.LZ4
    kinds = [plain, plain, packed, packed, plain]
    payload = b"".join(batch(n, codec) for n, codec in enumerate(kinds))

    assert [2, 2, 1] == [chunk.rows for chunk in read_chunks(payload)]
    assert [b"0", b"1", b"2", b"3", b"4"] == values(payload)


@pytest.mark.parametrize("first", [Codec.NONE, Codec.ZSTD])
def test_empty_batch_of_another_codec_is_skipped(first):
    empty = encode([], base_offset=0, last_offset_delta=5, compression=first)
    packed = encode([NewRecord(value=b"x")], base_offset=6, compression=Codec.ZSTD)
    plain = encode([NewRecord(value=b"y")], base_offset=7)
    again = encode([NewRecord(value=b"z")], base_offset=8, compression=Codec.ZSTD)

    assert [b"y", b"z"] == values(empty + plain + again)
    assert [b"x", b"y"] == values(empty + packed + plain)
    assert [b"x"] == values(empty + packed)


# Limits of numbers.


@pytest.mark.parametrize("base", [-(1 << 63), -1, 0, 1 << 50, (1 << 63) - 1])
@pytest.mark.parametrize("delta", [-(1 << 63), -(1 << 54), -1, 0, 5, (1 << 63) - 1])
def test_extreme_timestamps_are_clamped(base, delta):
    batch = bytearray(encode([NewRecord(timestamp=delta)], base_timestamp=0))
    batch[27:35] = base.to_bytes(8, "big", signed=True)

    ((_, timestamp, *_),) = read_rows(with_checksum(batch))

    limit = 1000 * MAX_MILLISECONDS
    near = 1000 * (base + delta)
    if max(abs(base), abs(delta)) > MAX_MILLISECONDS:
        assert -limit <= timestamp <= limit
    else:
        assert near == timestamp


def test_offsets_near_the_maximum():
    last = (1 << 63) - 2
    batch = encode([NewRecord(), NewRecord()], base_offset=last - 1)

    assert [last - 1, last] == offsets(batch, [(0, last, 1)])
    with pytest.raises(DamagedError, match="invalid offsets"):
        read_rows(encode([NewRecord(), NewRecord()], base_offset=last))


@pytest.mark.parametrize("size", [0, 1, 63, 64, 127, 128, 8191, 8192, 1 << 21])
def test_lengths_of_one_byte_and_more(size):
    key, value = b"k" * size, b"v" * size
    batch = encode([NewRecord(key=key, value=value), NewRecord(value=b"after")])

    got = read_rows(batch)

    assert (key, value) == got[0][3:5]
    assert (None, b"after") == got[1][3:5]


# Damage.


@pytest.mark.parametrize("position", range(16, len(TEN)))
def test_every_flipped_bit_is_found(position):
    damaged = bytearray(TEN)
    damaged[position] ^= 0x10

    with pytest.raises(DamagedError):
        read_rows(bytes(damaged))


@given(cut=st.integers(1, 40), fill=st.binary(max_size=40))
def test_invalid_bodies_raise_damaged_error_only(cut, fill):
    batch = with_checksum(TEN[:-cut] + fill)

    try:
        got = read_rows(batch)
    except DamagedError:
        return
    assert set(range(100, 110)) >= {row[0] for row in got}


@given(body=st.binary(max_size=60), count=st.integers(-1, 5), last=st.integers(-1, 9))
def test_invalid_body_with_a_correct_checksum_raises_damaged_error_only(
    body, count, last
):
    batch = batch_with_body(body, count=count, last_offset_delta=last)

    try:
        got = read_rows(batch)
    except DamagedError:
        return
    assert len(got) <= max(count, 0)


def test_bytes_after_the_last_record_are_damage():
    batch = with_checksum(TEN + b"\0")

    with pytest.raises(DamagedError, match="left over"):
        read_rows(batch)
    assert [100] == offsets(batch, [(100, 100, 1)])


def test_damage_names_the_batch():
    damaged = bytearray(TEN)
    damaged[-1] ^= 1

    with pytest.raises(DamagedError, match="batch at offset 100"):
        read_rows(bytes(damaged))


@pytest.mark.parametrize(("name", "timestamp"), [("magic0", -1), ("magic1", 1.7e12)])
def test_message_of_a_format_before_kafka_0_11_is_decoded(name, timestamp):
    assert [(1000, timestamp * 1000, 0, b"k", b"v", (), 1)] == read_rows(JAVA[name])


def test_unknown_format_is_rejected():
    unknown = bytearray(TEN)
    unknown[16] = 9

    with pytest.raises(DamagedError, match="unknown record batch format 9"):
        read_rows(bytes(unknown))


def test_columns_hold_no_reference_to_the_response():
    frame = bytearray(TEN)
    reader = ColumnsReader(memoryview(frame), [(0, 1000, 1)])
    frame[:] = bytes(len(frame))

    columns = reader.read()

    assert columns is not None
    assert list(range(100, 110)) == [row[0] for row in rows_of(columns)]
