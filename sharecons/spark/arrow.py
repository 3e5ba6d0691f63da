"""Columns to Arrow: the buffers that `records.columns` wrote, as one record batch.

Bytes are copied once, by Arrow itself: start and end of each value cut `Columns.data`
into pieces of which every second one is a value; taking these makes the column.
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
"""As Spark's own Kafka source has them, and how often the record was delivered."""

SCHEMA_WITH_HEADERS: Final[Any] = SCHEMA.append(pa.field("headers", pa.list_(_HEADER)))

COLUMNS: Final = tuple(SCHEMA_WITH_HEADERS.names)


def record_batch(
    columns: Columns, topic: str, partition: int, schema: Any = SCHEMA
) -> Any:
    """Make a batch that has the columns of `schema`, in its order."""
    rows = int(columns.rows)
    same: dict[str, Callable[[], Any]] = {
        "topic": lambda: pa.repeat(pa.scalar(topic, pa.string()), rows),
        "partition": lambda: pa.repeat(pa.scalar(partition, pa.int32()), rows),
    }
    arrays: list[Any] = [
        same[name]() if name in same else _MAKERS[name](columns)
        for name in schema.names
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _pieces(data: bytes, ends: Any, there: bytes, count: int) -> Any:
    """Make a binary column of what lies between each two positions."""
    missing = there.count(0)
    if missing == count:
        return pa.nulls(count, pa.binary())
    buffers: list[Any] = [None, pa.py_buffer(ends.getvalue()), pa.py_buffer(data)]
    cut = pa.Array.from_buffers(pa.large_binary(), 2 * count - 1, buffers)
    taken = cut.take(_evens(count)).cast(pa.binary())
    if not missing:
        return taken
    validity = _validity(there, count)
    return pa.Array.from_buffers(
        pa.binary(), count, [validity, *taken.buffers()[1:]], missing
    )


def _evens(count: int) -> Any:
    """The numbers of every second piece."""
    global _counted
    if len(_counted) < count:
        _counted = pa.array(range(0, 4 * count, 2), pa.int64())
    return _counted[:count]


_counted: Any = pa.array([], pa.int64())


def _validity(there: bytes, count: int) -> Any:
    """Make Arrow's bits of bytes that are 0 or 1."""
    return _plain(there, pa.uint8(), count).cast(pa.bool_()).buffers()[1]


def _plain(data: bytes, kind: Any, count: int) -> Any:
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(data)])


def _keys(columns: Columns) -> Any:
    there = columns.has_key.getvalue()
    return _pieces(columns.data, columns.keys, there, columns.rows)


def _values(columns: Columns) -> Any:
    there = columns.has_value.getvalue()
    return _pieces(columns.data, columns.values, there, columns.rows)


def _offsets(columns: Columns) -> Any:
    return _plain(columns.offsets.getvalue(), pa.int64(), columns.rows)


def _timestamps(columns: Columns) -> Any:
    kind = pa.timestamp("us", tz="UTC")
    return _plain(columns.timestamps.getvalue(), kind, columns.rows)


def _timestamp_types(columns: Columns) -> Any:
    types = columns.timestamp_types.getvalue()
    return _plain(types, pa.uint8(), columns.rows).cast(pa.int32())


def _delivery_counts(columns: Columns) -> Any:
    counts = columns.delivery_counts.getvalue()
    return _plain(counts, pa.int16(), columns.rows).cast(pa.int32())


def _headers(columns: Columns) -> Any:
    """Null where a record has none, as in Spark's own source."""
    rows, count = columns.rows, columns.headers
    if not count:
        return pa.nulls(rows, SCHEMA_WITH_HEADERS.field("headers").type)
    names = _pieces(columns.data, columns.header_names, b"\1" * count, count)
    there = columns.header_has_value.getvalue()
    values = _pieces(columns.data, columns.header_values, there, count)
    pairs = pa.StructArray.from_arrays([_text(names), values], fields=list(_HEADER))
    ends = _plain(columns.header_ends.getvalue(), pa.int64(), rows)
    starts = pa.concat_arrays([pa.array([0], pa.int64()), ends]).cast(pa.int32())
    some = pc.not_equal(starts[1:], starts[:-1])
    kind = SCHEMA_WITH_HEADERS.field("headers").type
    buffers = [pa.concat_arrays([some]).buffers()[1], starts.buffers()[1]]
    return pa.Array.from_buffers(kind, rows, buffers, children=[pairs])


def _text(names: Any) -> Any:
    """Kafka lets any bytes be a name; columns of text do not."""
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
