"""Batches to columns: held against the decoder that makes records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.records.columns import MAX_MILLISECONDS
from sharecons.records.columns_reader import ColumnsReader, next_offset
from sharecons.records.compression import Codec
from sharecons.records.encoder import NewRecord, encode
from sharecons.records.errors import DamagedError
from tests.records.columns_reading import chunks, of, rows
from tests.records.golden import JAVA, LIBRDKAFKA
from tests.records.reading import crafted, read, sealed

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
        for record in read(payload, spans).records
    ]


def offsets(payload, spans=((0, 1 << 40, 1),), **options):
    return [row[0] for row in rows(payload, spans, **options)]


def values(payload, **options):
    return [row[4] for row in rows(payload, **options)]


@pytest.mark.parametrize("batch", GOLDEN)
def test_batches_of_peers_are_read_as_the_other_decoder_does(batch):
    assert expected(batch, ((0, 1 << 40, 1),)) == rows(batch)


# Everything that a batch may hold.

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
    """Batches with holes in and between them."""
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


@given(payload=payloads(), wanted=spans(), max_data=st.sampled_from([1, 100, 1 << 20]))
def test_any_batches_are_read_as_the_other_decoder_does(payload, wanted, max_data):
    assert expected(payload, wanted) == rows(payload, wanted, max_data=max_data)


@given(payload=payloads())
def test_without_headers_all_else_is_the_same(payload):
    with_headers = [row[:5] for row in rows(payload)]

    assert with_headers == [row[:5] for row in rows(payload, with_headers=False)]
    assert all(chunk.headers == 0 for chunk in chunks(payload))


@given(payload=payloads(), cut=st.integers(1, 60))
def test_a_batch_that_is_cut_off_is_left_for_the_next_fetch(payload, cut):
    last = encode([NewRecord(value=b"x")], base_offset=5000)

    whole = rows(payload)

    assert whole == rows(payload + last[:-cut])


# Where to go on.


@given(payload=payloads(), cut=st.integers(1, 60))
def test_the_next_fetch_begins_behind_the_last_whole_batch(payload, cut):
    batch = encode([NewRecord()] * 3, base_offset=5000)

    assert 5003 == next_offset(memoryview(payload + batch), 7)
    assert 5003 == next_offset(memoryview(payload + batch + batch[:-cut]), 7)


def test_without_a_whole_batch_the_next_fetch_is_the_same():
    batch = encode([NewRecord()] * 3, base_offset=5000)

    assert 5001 == next_offset(memoryview(batch[:-1]), 5001)
    assert 5001 == next_offset(memoryview(b""), 5001)


def test_the_next_fetch_lies_behind_what_compaction_and_markers_left():
    for batch, after in ((JAVA["emptied"], 1010), (JAVA["commit"], 1004)):
        assert after == next_offset(memoryview(batch), 0)
        assert [] == rows(batch)


def test_a_length_that_makes_no_sense_does_not_run_on():
    batch = bytearray(encode([NewRecord()]))
    batch[8:12] = (-12 & 0xFFFFFFFF).to_bytes(4, "big")

    assert 3 == next_offset(memoryview(batch), 3)
    with pytest.raises(DamagedError, match="invalid batch length -12"):
        rows(bytes(batch))


# What is wanted.

TEN = encode([NewRecord(value=b"%d" % n) for n in range(10)], base_offset=100)


@pytest.mark.parametrize(
    ("wanted", "got"),
    [
        ([(100, 109, 1)], range(100, 110)),
        ([(0, 104, 1)], range(100, 105)),
        ([(105, 300, 1)], range(105, 110)),
        ([(101, 101, 1), (103, 104, 2), (108, 108, 1)], [101, 103, 104, 108]),
        ([(0, 99, 1), (110, 120, 1)], []),
        ([], []),
    ],
)
def test_only_what_is_wanted_is_read(wanted, got):
    assert list(got) == offsets(TEN, wanted)


def test_each_record_has_its_ranges_delivery_count():
    got = rows(TEN, [(100, 101, 1), (102, 102, 7), (105, 300, 2)])

    assert [1, 1, 7, 2, 2, 2, 2, 2] == [row[6] for row in got]


def test_a_batch_that_is_not_wanted_is_not_looked_into():
    damaged = bytearray(TEN)
    damaged[-1] ^= 1
    good = encode([NewRecord()], base_offset=110)

    assert [110] == offsets(bytes(damaged) + good, [(110, 110, 1)])


# Transactions.


def written(producer, offset, *, control=False, count=2, **kwargs):
    # What a marker's key holds: version 0, and type 0 to abort or 1 to commit.
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
def test_aborted_transactions_are_left_out(codec):
    payload = (
        written(7, 0, compression=codec)
        + written(8, 2, compression=codec)
        + encode([NewRecord(value=b"plain")], base_offset=4)
        + written(7, 5, control=True)
        + written(7, 6, compression=codec)
        + written(7, 8, control=True, kind=1)
        + written(8, 9, control=True, kind=1)
    )

    assert [2, 3, 4, 6, 7] == offsets(payload, aborted=[(7, 0)])
    assert [0, 1, 2, 3, 4, 6, 7] == offsets(payload)


def test_a_transaction_that_began_before_the_answer_is_left_out():
    payload = written(7, 10) + written(7, 12, control=True) + written(7, 13)

    assert [13, 14] == offsets(payload, aborted=[(7, 3)])


def test_a_marker_that_is_not_wanted_ends_its_transaction_all_the_same():
    payload = written(7, 0) + written(7, 2, control=True) + written(7, 3)
    wanted = [(0, 1, 1), (3, 4, 1)]

    assert [3, 4] == offsets(payload, wanted, aborted=[(7, 0)])
    assert [3, 4] == offsets(payload, wanted[1:], aborted=[(7, 0)])


def test_a_producer_that_aborts_twice_is_left_out_twice():
    payload = (
        written(7, 0)
        + written(7, 2, control=True)
        + written(7, 3)
        + written(7, 5, control=True, kind=1)
        + written(7, 6)
        + written(7, 8, control=True)
    )

    assert [3, 4] == offsets(payload, aborted=[(7, 6), (7, 0)])


def test_a_plain_batch_of_an_idempotent_producer_is_nobodys_transaction():
    batch = encode([NewRecord(value=b"x")], producer_id=7, producer_epoch=0)

    assert [0] == offsets(batch, aborted=[(7, 0)])


# How much at once.


def test_what_is_unfolded_is_given_in_parts():
    batches = [
        encode(
            [NewRecord(value=bytes(1000))] * 10,
            base_offset=10 * n,
            compression=Codec.ZSTD,
        )
        for n in range(6)
    ]

    got = chunks(b"".join(batches), max_data=20_000)

    assert [20, 20, 20] == [chunk.rows for chunk in got]
    assert list(range(60)) == [row[0] for chunk in got for row in of(chunk)]


def test_compressed_and_plain_batches_lie_in_chunks_of_their_own():
    def batch(n, codec):
        return encode([NewRecord(value=b"%d" % n)], base_offset=n, compression=codec)

    plain, packed = Codec.NONE, Codec.LZ4
    kinds = [plain, plain, packed, packed, plain]
    payload = b"".join(batch(n, codec) for n, codec in enumerate(kinds))

    assert [2, 2, 1] == [chunk.rows for chunk in chunks(payload)]
    assert [b"0", b"1", b"2", b"3", b"4"] == values(payload)


@pytest.mark.parametrize("first", [Codec.NONE, Codec.ZSTD])
def test_an_empty_batch_of_another_kind_leads_nobody_astray(first):
    empty = encode([], base_offset=0, last_offset_delta=5, compression=first)
    packed = encode([NewRecord(value=b"x")], base_offset=6, compression=Codec.ZSTD)
    plain = encode([NewRecord(value=b"y")], base_offset=7)
    again = encode([NewRecord(value=b"z")], base_offset=8, compression=Codec.ZSTD)

    assert [b"y", b"z"] == values(empty + plain + again)
    assert [b"x", b"y"] == values(empty + packed + plain)
    assert [b"x"] == values(empty + packed)


# Numbers at their limits.


@pytest.mark.parametrize("base", [-(1 << 63), -1, 0, 1 << 50, (1 << 63) - 1])
@pytest.mark.parametrize("delta", [-(1 << 63), -(1 << 54), -1, 0, 5, (1 << 63) - 1])
def test_timestamps_beyond_all_measure_are_moved_to_the_limit(base, delta):
    batch = bytearray(encode([NewRecord(timestamp=delta)], base_timestamp=0))
    batch[27:35] = base.to_bytes(8, "big", signed=True)

    ((_, timestamp, *_),) = rows(sealed(batch))

    limit = 1000 * MAX_MILLISECONDS
    near = 1000 * (base + delta)
    if max(abs(base), abs(delta)) > MAX_MILLISECONDS:
        assert -limit <= timestamp <= limit
    else:
        assert near == timestamp


def test_offsets_near_the_last_one():
    last = (1 << 63) - 2
    batch = encode([NewRecord(), NewRecord()], base_offset=last - 1)

    assert [last - 1, last] == offsets(batch, [(0, last, 1)])
    with pytest.raises(DamagedError, match="invalid offsets"):
        rows(encode([NewRecord(), NewRecord()], base_offset=last))


@pytest.mark.parametrize("size", [0, 1, 63, 64, 127, 128, 8191, 8192, 1 << 21])
def test_lengths_of_one_byte_and_more(size):
    key, value = b"k" * size, b"v" * size
    batch = encode([NewRecord(key=key, value=value), NewRecord(value=b"after")])

    got = rows(batch)

    assert (key, value) == got[0][3:5]
    assert (None, b"after") == got[1][3:5]


# Damage.


@pytest.mark.parametrize("position", range(16, len(TEN)))
def test_every_flipped_bit_is_found(position):
    damaged = bytearray(TEN)
    damaged[position] ^= 0x10

    with pytest.raises(DamagedError):
        rows(bytes(damaged))


@given(cut=st.integers(1, 40), fill=st.binary(max_size=40))
def test_bodies_that_make_no_sense_are_damage_and_nothing_else(cut, fill):
    batch = sealed(TEN[:-cut] + fill)

    try:
        got = rows(batch)
    except DamagedError:
        return
    assert set(range(100, 110)) >= {row[0] for row in got}


@given(body=st.binary(max_size=60), count=st.integers(-1, 5), last=st.integers(-1, 9))
def test_nonsense_with_a_good_checksum_is_damage_and_nothing_else(body, count, last):
    batch = crafted(body, count=count, last_offset_delta=last)

    try:
        got = rows(batch)
    except DamagedError:
        return
    assert len(got) <= max(count, 0)


def test_bytes_behind_the_last_record_are_damage():
    batch = sealed(TEN + b"\0")

    with pytest.raises(DamagedError, match="left over"):
        rows(batch)
    assert [100] == offsets(batch, [(100, 100, 1)])


def test_damage_names_the_batch():
    damaged = bytearray(TEN)
    damaged[-1] ^= 1

    with pytest.raises(DamagedError, match="batch at offset 100"):
        rows(bytes(damaged))


@pytest.mark.parametrize("name", ["magic0", "magic1"])
def test_formats_before_kafka_0_11_are_refused(name):
    with pytest.raises(DamagedError, match="unknown record batch format"):
        rows(JAVA[name] + bytes(40))


def test_nothing_is_kept_of_the_answer():
    frame = bytearray(TEN)
    reader = ColumnsReader(memoryview(frame), [(0, 1000, 1)])
    frame[:] = bytes(len(frame))

    columns = reader.read()

    assert columns is not None
    assert list(range(100, 110)) == [row[0] for row in of(columns)]
