"""Converts the buffers of `sharecons.records.columns` to Arrow record batches.

Bytes are copied once, by Arrow. The starts and ends of the values divide `Columns.data`
into slices, of which every second one is a value; `take` copies these.
"""

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from sharecons.records.columns import Columns

__all__ = ["COLUMNS", "SCHEMA", "SCHEMA_WITH_HEADERS", "record_batch"]

_HEADER: Final[Any] = pa.struct([("key", pa.string()), ("value", pa.binary())])

_FIELDS: Final[Any] = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "deliveryCount": pa.int32(),
}
SCHEMA: Final[Any] = pa.schema(_FIELDS)
"""The columns of Spark's own Kafka source, and the record's delivery count."""

SCHEMA_WITH_HEADERS: Final[Any] = SCHEMA.append(pa.field("headers", pa.list_(_HEADER)))

COLUMNS: Final = tuple(SCHEMA_WITH_HEADERS.names)


def record_batch(
    columns: Columns, topic: str, partition: int, schema: Any = SCHEMA
) -> Any:
    """Return a batch with the columns of `schema`, in its order."""
    rows = int(columns.rows)
    constant: dict[str, Callable[[], Any]] = {
        "topic": lambda: pa.repeat(pa.scalar(topic, pa.string()), rows),
        "partition": lambda: pa.repeat(pa.scalar(partition, pa.int32()), rows),
    }
    arrays: list[Any] = [
        constant[name]() if name in constant else _MAKERS[name](columns)
        for name in schema.names
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _binary_column(data: bytes, ends: Any, is_valid: bytes, count: int) -> Any:
    """Return a binary column of every second slice between the positions `ends`."""
    null_count = is_valid.count(0)
    if null_count == count:
        return pa.nulls(count, pa.binary())
    buffers: list[Any] = [None, pa.py_buffer(ends.getvalue()), pa.py_buffer(data)]
    cut = pa.Array.from_buffers(pa.large_binary(), 2 * count - 1, buffers)
    values = cut.take(_even_numbers(count)).cast(pa.binary())
    if not null_count:
        return values
    validity = _validity(is_valid, count)
    return pa.Array.from_buffers(
        pa.binary(), count, [validity, *values.buffers()[1:]], null_count
    )


def _even_numbers(count: int) -> Any:
    """Return 0, 2, 4 … as an Arrow array."""
    global _cached_evens
    if len(_cached_evens) < count:
        _cached_evens = pa.array(range(0, 4 * count, 2), pa.int64())
    return _cached_evens[:count]


_cached_evens: Any = pa.array([], pa.int64())


def _validity(is_valid: bytes, count: int) -> Any:
    """Return Arrow's bitmap for bytes that are 0 or 1."""
    return _primitive_column(is_valid, pa.uint8(), count).cast(pa.bool_()).buffers()[1]


def _primitive_column(data: bytes, kind: Any, count: int) -> Any:
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(data)])


def _keys(columns: Columns) -> Any:
    is_valid = columns.has_key.getvalue()
    return _binary_column(columns.data, columns.keys, is_valid, columns.rows)


def _values(columns: Columns) -> Any:
    is_valid = columns.has_value.getvalue()
    return _binary_column(columns.data, columns.values, is_valid, columns.rows)


def _offsets(columns: Columns) -> Any:
    return _primitive_column(columns.offsets.getvalue(), pa.int64(), columns.rows)


def _timestamps(columns: Columns) -> Any:
    kind = pa.timestamp("us", tz="UTC")
    return _primitive_column(columns.timestamps.getvalue(), kind, columns.rows)


def _timestamp_types(columns: Columns) -> Any:
    types = columns.timestamp_types.getvalue()
    return _primitive_column(types, pa.uint8(), columns.rows).cast(pa.int32())


def _delivery_counts(columns: Columns) -> Any:
    counts = columns.delivery_counts.getvalue()
    return _primitive_column(counts, pa.int16(), columns.rows).cast(pa.int32())


def _headers(columns: Columns) -> Any:
    """Return the column of headers: null for records without any, as in Spark."""
    rows, count = columns.rows, columns.headers
    if not count:
        return pa.nulls(rows, SCHEMA_WITH_HEADERS.field("headers").type)
    names = _binary_column(columns.data, columns.header_names, b"\1" * count, count)
    is_valid = columns.header_has_value.getvalue()
    values = _binary_column(columns.data, columns.header_values, is_valid, count)
    pairs = pa.StructArray.from_arrays(
        [_text_column(names), values], fields=list(_HEADER)
    )
    ends = _primitive_column(columns.header_ends.getvalue(), pa.int64(), rows)
    starts = pa.concat_arrays([pa.array([0], pa.int64()), ends]).cast(pa.int32())
    has_headers = pc.not_equal(starts[1:], starts[:-1])
    kind = SCHEMA_WITH_HEADERS.field("headers").type
    buffers = [pa.concat_arrays([has_headers]).buffers()[1], starts.buffers()[1]]
    return pa.Array.from_buffers(kind, rows, buffers, children=[pairs])


def _text_column(names: Any) -> Any:
    """Return names as text. Kafka allows any bytes; invalid UTF-8 is replaced."""
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [name.decode("utf-8", "replace") for name in names.to_pylist()]
        return pa.array(texts, pa.string())


_MAKERS: Final[dict[str, Callable[[Columns], Any]]] = {
    "key": _keys,
    "value": _values,
    "offset": _offsets,
    "timestamp": _timestamps,
    "timestampType": _timestamp_types,
    "deliveryCount": _delivery_counts,
    "headers": _headers,
}
