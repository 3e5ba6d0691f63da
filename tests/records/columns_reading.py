"""Helpers for tests of columns: convert the buffers to rows."""

from collections.abc import Sequence
from typing import Any

from sharecons._record import Headers
from sharecons.records.columns import Columns, Span
from sharecons.records.columns_reader import ColumnsReader

EVERYTHING: tuple[Span, ...] = ((0, 1 << 40, 1),)

Row = tuple[int, int, int, bytes | None, bytes | None, Headers, int]


def read_chunks(
    payload: bytes, spans: Sequence[Span] = EVERYTHING, **options: Any
) -> list[Columns]:
    reader = ColumnsReader(memoryview(payload), spans, **options)
    read: list[Columns] = []
    while (columns := reader.read()) is not None:
        read.append(columns)
    return read


def read_rows(
    payload: bytes, spans: Sequence[Span] = EVERYTHING, **options: Any
) -> list[Row]:
    """Return offset, timestamp, its type, key, value, headers and delivery count."""
    options.setdefault("with_headers", True)
    return [
        row
        for columns in read_chunks(payload, spans, **options)
        for row in rows_of(columns)
    ]


def rows_of(columns: Columns) -> list[Row]:
    count = columns.rows
    headers = _headers(columns)
    starts = [0, *_numbers(columns.header_ends)]
    return list(
        zip(
            _numbers(columns.offsets),
            _numbers(columns.timestamps),
            columns.timestamp_types.getvalue(),
            _split(columns.data, columns.keys, columns.has_key.getvalue()),
            _split(columns.data, columns.values, columns.has_value.getvalue()),
            [tuple(headers[a:b]) for a, b in zip(starts, starts[1:], strict=False)]
            or [()] * count,
            memoryview(columns.delivery_counts.getvalue()).cast("h"),
            strict=True,
        )
    )


def _headers(columns: Columns) -> list[tuple[str, bytes | None]]:
    names = _split(columns.data, columns.header_names, b"\1" * columns.headers)
    values = _split(
        columns.data, columns.header_values, columns.header_has_value.getvalue()
    )
    return [
        ((name or b"").decode("utf-8", "surrogateescape"), value)
        for name, value in zip(names, values, strict=True)
    ]


def _split(data: bytes, ends: Any, there: bytes) -> list[bytes | None]:
    positions = _numbers(ends)
    assert positions == sorted(positions)
    assert len(positions) == 2 * len(there)
    assert set(there) <= {0, 1}
    return [
        data[start:end] if is_there else None
        for start, end, is_there in zip(
            positions[::2], positions[1::2], there, strict=True
        )
    ]


def _numbers(writer: Any) -> list[int]:
    return list(memoryview(writer.getvalue()).cast("q"))
