"""Records as lines of text and as JSON."""

import json
from datetime import UTC, datetime, timedelta
from typing import Final

from sharecons._record import Headers, Record
from sharecons.cli.columns import Row
from sharecons.cli.output import encoding
from sharecons.escaping import Json, escape, json_text

__all__ = [
    "format_bytes",
    "format_time",
    "headers_object",
    "json_time",
    "json_value",
    "record_line",
    "record_object",
]

NO_TIMESTAMP: Final = -1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def record_line(record: Record, data_format: str) -> str:
    """Return a record as one line, escaped for stdout, for any bytes."""
    parts = [
        _escaped(f"{record.topic}-{record.partition}@{record.offset}"),
        format_time(record.timestamp),
        f"key={format_bytes(record.key, data_format)}",
    ]
    if record.headers:
        headers = (
            f"{_escaped(name)}={format_bytes(value, data_format)}"
            for name, value in record.headers
        )
        parts.append(f"headers={{{', '.join(headers)}}}")
    parts.append(f"value={format_bytes(record.value, data_format)}")
    return "  ".join(parts)


def record_object(record: Record, data_format: str) -> Row:
    """Return a record as a JSON object."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": json_time(record.timestamp),
        "timestamp_type": record.timestamp_type.name.lower(),
        "key": json_value(record.key, data_format),
        "value": json_value(record.value, data_format),
        "headers": headers_object(record.headers, data_format),
    }


def headers_object(headers: Headers, data_format: str) -> Json:
    """Return headers as JSON objects."""
    return [
        {"name": _escape_undecodable(name), "value": json_value(value, data_format)}
        for name, value in headers
    ]


def json_time(milliseconds: int) -> int | None:
    """Return a timestamp of a record as a JSON value; null if it has none."""
    return None if milliseconds == NO_TIMESTAMP else milliseconds


def format_time(milliseconds: int) -> str:
    """Return a timestamp of a record, in UTC, or that it has none."""
    if milliseconds == NO_TIMESTAMP:
        return "no timestamp"
    try:
        time = EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms"  # producers can set any timestamp
    return time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{milliseconds % 1000:03d}Z"


def format_bytes(data: bytes | None, data_format: str) -> str:
    """Return bytes as text that is escaped for stdout."""
    if data is None:
        return "null"
    if data_format == "hex":
        return data.hex()
    if data_format == "json":
        return json_text(_parse_json(data), encoding())
    return _escaped(data.decode("utf-8", "backslashreplace"))


def json_value(data: bytes | None, data_format: str) -> Json:
    """Return bytes as a JSON value."""
    if data is None:
        return None
    if data_format == "hex":
        return data.hex()
    return _parse_json(data) if data_format == "json" else _text_or_hex(data)


def _parse_json(data: bytes) -> Json:
    """Parse JSON; return anything else as text."""
    try:
        parsed: Json = json.loads(data)
        # JSON that is nested too deeply to be written again is text as well.
        json_text([[[parsed]]])
    except (ValueError, RecursionError):
        return _text_or_hex(data)
    return parsed


def _text_or_hex(data: bytes) -> Json:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"hex": data.hex()}


def _escaped(text: str) -> str:
    return escape(text, encoding())


def _escape_undecodable(name: str) -> str:
    """Escape the bytes of a header name that are not UTF-8."""
    raw = name.encode("utf-8", "surrogateescape")
    return raw.decode("utf-8", "backslashreplace")
