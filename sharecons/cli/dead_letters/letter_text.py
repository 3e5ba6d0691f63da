"""Dead letters as text and as JSON."""

from typing import Final

from sharecons.cli.columns import Column, Row
from sharecons.cli.record_text import (
    format_bytes,
    format_time,
    headers_object,
    json_time,
    json_value,
)
from sharecons.copies.dead_letter_headers import Origin
from sharecons.dead_letters import DeadLetterRecord
from sharecons.escaping import Json

__all__ = ["COLUMNS", "letter_lines", "letter_object", "letter_row"]

MAX_CELL: Final = 80
"""Characters of a reason and a key in a table; `show` and JSON have all of them."""

COLUMNS: Final = (
    Column("position"),
    Column("written"),
    Column("origin"),
    Column("group"),
    Column("deliveries", align_right=True),
    Column("redrives", align_right=True),
    Column("redriven"),
    Column("duplicate_of"),
    Column("source"),
    Column("key"),
    Column("exception"),
    Column("reason"),
)


def letter_row(letter: DeadLetterRecord) -> Row:
    """Return a row of the table."""
    origin = letter.origin
    return {
        "position": f"{letter.partition}:{letter.offset}",
        "written": format_time(letter.timestamp),
        "origin": origin and f"{origin.topic}-{origin.partition}@{origin.offset}",
        "group": origin and origin.group,
        "deliveries": origin and origin.delivery_count,
        "redrives": letter.redrives,
        "redriven": "yes" if letter.redriven_by else "no",
        "duplicate_of": letter.duplicate_of and str(letter.duplicate_of),
        "source": letter.status.value,
        "key": None if letter.key is None else _short(_text(letter.key)),
        "exception": origin and origin.exception,
        "reason": origin and _short(origin.reason),
    }


def letter_object(letter: DeadLetterRecord, data_format: str) -> Row:
    """Return a dead letter as a JSON object."""
    origin = letter.origin
    return {
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "timestamp": json_time(letter.timestamp),
        "origin": None if origin is None else _origin_object(letter),
        "redrives": letter.redrives,
        "redriven_by": list(letter.redriven_by),
        "duplicate_of": letter.duplicate_of and letter.duplicate_of._asdict(),
        "source": letter.status.value,
        "source_problem": _problem(letter),
        "key": json_value(letter.key, data_format),
        "value": json_value(letter.value, data_format),
        "headers": headers_object(letter.headers, data_format),
    }


def letter_lines(letter: DeadLetterRecord, data_format: str) -> list[str]:
    """Return a dead letter as lines that are escaped for stdout."""
    origin = letter.origin
    rows: list[tuple[str, str]] = [
        ("position", letter.position),
        ("written", format_time(letter.timestamp)),
    ]
    if origin is not None:
        rows += [
            ("origin", f"{origin.topic}-{origin.partition}@{origin.offset}"),
            *[("earlier", each) for each in (origin.earlier or "").split(",") if each],
            *_first_origin(origin),
            ("group", origin.group),
            ("deliveries", str(origin.delivery_count)),
            ("reason", origin.reason),
        ]
        if origin.timestamp is not None:
            rows.append(("timestamp", format_time(origin.timestamp)))
        if origin.attempts is not None:
            rows.append(("attempts", str(origin.attempts)))
        if origin.exception is not None:
            rows.append(("exception", origin.exception))
    problem = _problem(letter)
    source = letter.status.value + (f" ({problem})" if problem else "")
    rows.append(("redrives", str(letter.redrives)))
    rows.append(("redriven", ", ".join(letter.redriven_by) or "no"))
    rows.append(("source", source))
    lines = [f"{name:<11}{text}" for name, text in rows]
    lines.append(f"{'key':<11}{format_bytes(letter.key, data_format)}")
    for name, value in letter.headers:
        lines.append(f"{'header':<11}{name}={format_bytes(value, data_format)}")
    lines.append(f"{'value':<11}{format_bytes(letter.value, data_format)}")
    return lines


def _origin_object(letter: DeadLetterRecord) -> Json:
    origin = letter.origin
    assert origin is not None
    fields = origin._asdict()
    del fields["redrives"], fields["written_to"]
    for name in ("timestamp", "first_failed"):
        if fields[name] is not None:
            fields[name] = json_time(fields[name])
    return fields


def _first_origin(origin: Origin) -> list[tuple[str, str]]:
    if origin.first_origin is None:
        return []
    failed = origin.first_failed
    time = "" if failed is None else f", dead letter written {format_time(failed)}"
    return [("first", f"{origin.first_origin}{time}")]


def _problem(letter: DeadLetterRecord) -> str | None:
    return letter.reason if letter.error is None else str(letter.error)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


def _short(text: str) -> str:
    return text if len(text) <= MAX_CELL else f"{text[: MAX_CELL - 3]}..."
