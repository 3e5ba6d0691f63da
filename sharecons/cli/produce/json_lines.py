r"""Lines with one JSON object each, as `sharecons consume --json` writes them.

    {"key": "k", "value": "v", "headers": {"trace": "1"}, "timestamp": 1764201600000}

Strings become UTF-8. Bytes that are not UTF-8 are {"hex": "00ff"}. A `value` is
required, since a record without one deletes its key from a compacted topic; it can be
null. Headers can also be a list of {"name": ..., "value": ...}.
"""

import json
from typing import Any, Final

from sharecons._record import Headers
from sharecons.cli.produce.new_line import LineError, NewLine

__all__ = ["parse_json_line"]

KNOWN: Final = frozenset({"key", "value", "headers", "timestamp"})
IGNORED: Final = frozenset(
    {"topic", "partition", "offset", "timestamp_type", "delivery_count"}
)
"""Where the record came from. It is written elsewhere."""

MAX_TIMESTAMP: Final = (1 << 63) - 1


def parse_json_line(line: bytes) -> NewLine:
    """Return the record in a line.

    Raises:
        LineError: it is no JSON object, or has an invalid field.
    """
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise LineError(f"not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise LineError("not a JSON object")
    if unknown := fields.keys() - KNOWN - IGNORED:
        names = ", ".join(map(repr, sorted(unknown)))
        raise LineError(f"unknown field {names}; known are {', '.join(sorted(KNOWN))}")
    if "value" not in fields:
        raise LineError("no field 'value'; it can be null")
    return NewLine(
        value=_parse_bytes("value", fields["value"]),
        key=_parse_bytes("key", fields.get("key")),
        headers=_parse_headers(fields.get("headers")),
        timestamp=_parse_timestamp(fields.get("timestamp")),
    )


def _parse_bytes(field: str, value: Any) -> bytes | None:
    match value:
        case None:
            return None
        case str():
            return _encode(field, value)
        case {"hex": str(digits), **more} if not more:
            try:
                return bytes.fromhex(digits)
            except ValueError as error:
                raise LineError(f"{field}: {digits!r} is not hexadecimal") from error
    raise LineError(f'{field} must be a string, null or {{"hex": "..."}}')


def _encode(field: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise LineError(f"{field} has a lone surrogate, which is no text") from error


def _parse_headers(headers: Any) -> Headers:
    match headers:
        case None:
            return ()
        case dict():
            pairs = list(headers.items())
        case list():
            pairs = [_parse_pair(each) for each in headers]
        case _:
            raise LineError("headers must be an object or a list")
    for name, _ in pairs:
        _encode("a header's name", name)
    return tuple((name, _parse_bytes(f"header {name!r}", v)) for name, v in pairs)


def _parse_pair(header: Any) -> tuple[str, Any]:
    match header:
        case {"name": str(name), "value": value, **more} if not more:
            return name, value
    raise LineError('a header in a list must be {"name": ..., "value": ...}')


def _parse_timestamp(timestamp: Any) -> int | None:
    if timestamp is None:
        return None
    if type(timestamp) is not int or not 0 <= timestamp <= MAX_TIMESTAMP:
        raise LineError("timestamp must be milliseconds since the epoch")
    return timestamp
