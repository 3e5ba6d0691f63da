"""Records in lines and in JSON."""

import json
from datetime import UTC, datetime, timedelta

from sharecons._record import Record
from sharecons.cli.columns import Row
from sharecons.cli.output import encoding
from sharecons.escaping import Json, escape, json_text

__all__ = ["line", "record_object"]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def line(record: Record, form: str) -> str:
    """Show a record in one line, escaped for stdout, whatever its bytes are."""
    parts = [
        _escaped(f"{record.topic}-{record.partition}@{record.offset}"),
        _time(record.timestamp),
        f"key={_shown(record.key, form)}",
    ]
    if record.headers:
        headers = (
            f"{_escaped(name)}={_shown(value, form)}" for name, value in record.headers
        )
        parts.append(f"headers={{{', '.join(headers)}}}")
    parts.append(f"value={_shown(record.value, form)}")
    return "  ".join(parts)


def record_object(record: Record, form: str) -> Row:
    """Make an object of a record."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestamp_type": record.timestamp_type.name.lower(),
        "key": _made(record.key, form),
        "value": _made(record.value, form),
        "headers": [
            {"name": _decodable(name), "value": _made(value, form)}
            for name, value in record.headers
        ],
    }


def _time(milliseconds: int) -> str:
    try:
        time = EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms"  # producers may write any number
    return time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{milliseconds % 1000:03d}Z"


def _shown(data: bytes | None, form: str) -> str:
    if data is None:
        return "null"
    if form == "hex":
        return data.hex()
    if form == "json":
        return json_text(_parsed(data), encoding())
    return _escaped(data.decode("utf-8", "backslashreplace"))


def _made(data: bytes | None, form: str) -> Json:
    if data is None:
        return None
    if form == "hex":
        return data.hex()
    return _parsed(data) if form == "json" else _text(data)


def _parsed(data: bytes) -> Json:
    """Take JSON for what it is, and anything else for text."""
    try:
        parsed: Json = json.loads(data)
        # What is nested too deep to be written again is text as well.
        json_text([[[parsed]]])
    except (ValueError, RecursionError):
        return _text(data)
    return parsed


def _text(data: bytes) -> Json:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"hex": data.hex()}


def _escaped(text: str) -> str:
    return escape(text, encoding())


def _decodable(name: str) -> str:
    """Escape the bytes of a header's name that are not UTF-8."""
    raw = name.encode("utf-8", "surrogateescape")
    return raw.decode("utf-8", "backslashreplace")
