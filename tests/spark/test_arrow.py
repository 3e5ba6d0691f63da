"""Conversion of columns to Arrow."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.records.columns_reader import ColumnsReader
from sharecons.records.compression import Codec
from sharecons.records.encoder import NewRecord, encode
from sharecons.spark.arrow import (
    COLUMNS,
    SCHEMA,
    SCHEMA_WITH_HEADERS,
    record_batch,
)

texts = st.text(max_size=6)
blobs = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(texts, st.none() | st.binary(max_size=5)), max_size=3)
records = st.builds(
    NewRecord,
    key=blobs,
    value=blobs,
    headers=headers.map(tuple),
    timestamp=st.integers(0, 1 << 41),
    offset_delta=st.none(),
)


def arrow(batch, schema=SCHEMA_WITH_HEADERS, spans=((0, 1000, 4),)):
    with_headers = "headers" in schema.names
    reader = ColumnsReader(memoryview(batch), spans, with_headers=with_headers)
    made = record_batch(reader.read(), "orders", 7, schema)
    made.validate(full=True)
    return made


def names(*given_):
    batch = encode([NewRecord(headers=tuple((n, b"") for n in given_))])
    (row,) = arrow(batch).to_pylist()
    return [header["key"] for header in row["headers"]]


@given(encoded=st.lists(records, min_size=1, max_size=8), codec=st.sampled_from(Codec))
def test_record_batch_has_the_encoded_records(encoded, codec):
    batch = arrow(encode(encoded, base_offset=50, compression=codec))

    micros = batch["timestamp"].cast(pa.int64()).to_pylist()
    assert [record.timestamp * 1000 for record in encoded] == micros
    rows = batch.drop_columns(["timestamp"]).to_pylist()
    assert [
        {
            "key": record.key,
            "value": record.value,
            "topic": "orders",
            "partition": 7,
            "offset": 50 + n,
            "timestampType": 0,
            "deliveryCount": 4,
            "headers": [{"key": name, "value": value} for name, value in record.headers]
            or None,
        }
        for n, record in enumerate(encoded)
    ] == rows


def test_columns_follow_the_schema():
    batch = encode([NewRecord(value=b"v")])
    few = pa.schema([SCHEMA.field(name) for name in ("offset", "value")])

    assert SCHEMA == arrow(batch, SCHEMA).schema
    assert SCHEMA_WITH_HEADERS == arrow(batch).schema
    assert [{"offset": 0, "value": b"v"}] == arrow(batch, few).to_pylist()
    assert (*SCHEMA.names, "headers") == COLUMNS


def test_header_names_replace_invalid_utf8():
    assert ["a", "\ufffd\ufffdb", "c"] == names("a", "\udcff\udcfeb", "c")


def test_timestamp_type_of_log_append_time_is_1():
    batch = encode([NewRecord(), NewRecord()], append_timestamp=77)

    rows = arrow(batch)

    assert [1, 1] == rows["timestampType"].to_pylist()
    assert [77_000] * 2 == rows["timestamp"].cast(pa.int64()).to_pylist()


@pytest.mark.parametrize("size", [1, 2, 100, 5000, 3])
def test_batches_of_different_sizes_are_converted(size):
    encoded = [
        NewRecord(key=None if n % 3 else b"k", value=b"%d" % n) for n in range(size)
    ]

    batch = arrow(encode(encoded), spans=((0, size, 1),))

    assert [record.value for record in encoded] == batch["value"].to_pylist()
    assert [record.key for record in encoded] == batch["key"].to_pylist()


def test_values_are_copied_without_the_rest_of_the_response():
    # The batch does not keep the rest of the response in memory.
    batch = encode([NewRecord(value=bytes(1000)) for _ in range(100)])

    made = arrow(batch, SCHEMA, spans=((3, 3, 1),))

    assert made.num_rows == 1
    assert made.get_total_buffer_size() < 2000
