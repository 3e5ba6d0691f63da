"""The batch encoder, checked by an independent decoder."""

from hypothesis import given
from hypothesis import strategies as st
from kio.records.readers import read_batch

from sharecons.testing.broker.batch_writer import (
    NewRecord,
    encode_batch,
    encode_batches,
)

BYTES = st.none() | st.binary(max_size=300)
RECORDS = st.builds(
    NewRecord, BYTES, BYTES, st.lists(st.tuples(st.text(), BYTES), max_size=3)
)


def read(batch):
    return read_batch(batch, 0)[0]


@given(st.lists(RECORDS, min_size=1, max_size=200))
def test_encoded_records_are_decoded_unchanged(records):
    found = read(encode_batch(records, 1_700_000_000_000)).records

    assert [
        (
            record.value,
            record.key,
            [(name.encode(), value) for name, value in record.headers],
        )
        for record in records
    ] == [
        (record.value, record.key, [(h.key, h.value) for h in record.headers])
        for record in found
    ]
    assert list(range(len(records))) == [record.offset for record in found]


def test_batches_have_max_records_and_target_size():
    few = [NewRecord(b"x") for _ in range(10)]
    large = [NewRecord(bytes(100_000)) for _ in range(10)]

    assert [4, 4, 2] == [
        len(read(batch).records) for batch in encode_batches(few, 0, 4)
    ]
    sizes = [len(batch) for batch in encode_batches(large, 0)]
    assert 4 == len(sizes)
    assert max(sizes) < 1 << 20
