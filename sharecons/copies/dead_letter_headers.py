"""The headers of dead letters: which record it was, and why it failed for good.

A worker adds headers whose names begin with `sharecons.`; the record keeps its own. A
broker of Kafka 4.4 or newer writes headers that begin with `__dlq.errors.` (KIP-1191),
without the source's. `read_origin` reads both.

Any producer can write such headers to any topic, and tools copy records with their
headers. So headers of this form are dropped when a source's record becomes a dead
letter, and `read_letter` reads them of a record of a source topic only if they name
this topic as the one to which a worker wrote the record.

A redriven record has such headers as well. A worker reads the number of redrives from
them, as a limit: a forged one can only prevent that a record is redriven. It copies the
first origin to the next dead letter, for people: nothing is decided by it.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from sharecons._record import Headers
from sharecons.error_text import shortened

__all__ = [
    "Origin",
    "RedriveMark",
    "chain_of",
    "earlier_topics",
    "needs_source",
    "origin_headers",
    "read_letter",
    "read_origin",
    "read_redrive_mark",
    "read_redrives",
    "read_retry_origin",
    "redrive_headers",
    "reference_headers",
    "with_first_origin",
    "without_origin",
]

OWN: Final = "sharecons."
BROKER: Final = "__dlq.errors."
BROKER_TOPICS: Final = "dlq."
"""The brokers' default of `errors.deadletterqueue.topic.name.prefix`."""
REFERENCE: Final = f"{OWN}reference"


class Origin(NamedTuple):
    """The source of a dead letter.

    Attributes:
        topic, partition, offset: the record that failed for good.
        group: the share group in which it failed.
        delivery_count: how often it had been delivered.
        reason: why it failed for good.
        timestamp: of the record, in milliseconds since the epoch; None if unknown.
        attempts: how often the handler was called; None if unknown.
        exception: the type of the last exception; None if there was none.
        redrives: how often it was returned to its topic before.
        traceback: the last frames of the last exception; None if there was none.
        dead_lettered: how often it was written to a dead-letter topic, with this time.
        earlier: the origins of earlier dead letters if the record was a dead letter
            itself, the first one first: "orders:0:17,orders.dead:2:5".
        written_to: the dead-letter topic to which a worker wrote it.
        first_origin: where a redriven record failed first, as "orders:0:17"; not to be
            trusted, since any producer can write a record that says so.
        first_failed: when its first dead letter was written, in milliseconds since the
            epoch; not to be trusted either.
    """

    topic: str
    partition: int
    offset: int
    group: str
    delivery_count: int
    reason: str
    timestamp: int | None = None
    attempts: int | None = None
    exception: str | None = None
    redrives: int = 0
    traceback: str | None = None
    dead_lettered: int = 1
    earlier: str | None = None
    written_to: str | None = None
    first_origin: str | None = None
    first_failed: int | None = None


class RedriveMark(NamedTuple):
    """The dead letter that a redriven record is a copy of, and the redrive's name."""

    name: str
    topic: str
    partition: int
    offset: int


_NAMES: Final[Mapping[str, str]] = {
    "topic": f"{OWN}origin.topic",
    "partition": f"{OWN}origin.partition",
    "offset": f"{OWN}origin.offset",
    "group": f"{OWN}origin.group",
    "delivery_count": f"{OWN}origin.delivery-count",
    "reason": f"{OWN}reason",
    "timestamp": f"{OWN}origin.timestamp",
    "attempts": f"{OWN}attempts",
    "exception": f"{OWN}exception",
    "redrives": f"{OWN}redrives",
    "traceback": f"{OWN}traceback",
    "dead_lettered": f"{OWN}dead-lettered",
    "earlier": f"{OWN}earlier-origins",
    "written_to": f"{OWN}dead-letter-topic",
    "first_origin": f"{OWN}first-origin",
    "first_failed": f"{OWN}first-failed",
}
_BROKER_NAMES: Final[Mapping[str, str]] = {
    "topic": f"{BROKER}topic",
    "partition": f"{BROKER}partition",
    "offset": f"{BROKER}offset",
    "group": f"{BROKER}group",
    "delivery_count": f"{BROKER}delivery.count",
    "reason": f"{BROKER}message",
}
_REDRIVE_NAME: Final = f"{OWN}redrive.name"
_REDRIVE_OF: Final = f"{OWN}redrive.of"
_POSITION: Final = re.compile(rb"[a-zA-Z0-9._-]{1,249}:\d{1,10}:\d{1,19}")

_NUMBERS: Final = frozenset(
    [
        "partition",
        "offset",
        "delivery_count",
        "timestamp",
        "attempts",
        "redrives",
        "dead_lettered",
        "first_failed",
    ]
)
_REQUIRED: Final = ("topic", "partition", "offset", "group", "delivery_count", "reason")


def origin_headers(origin: Origin) -> Headers:
    """Return the headers of a dead letter; those without a value are left out."""
    fields = origin._replace(reason=shortened(origin.reason))._asdict()
    return tuple(
        (_NAMES[name], str(value).encode("utf-8", "backslashreplace"))
        for name, value in fields.items()
        if value is not None
    )


def redrive_headers(
    mark: RedriveMark, redrives: int, origin: Origin, written: int
) -> Headers:
    """Return the headers of a redriven record.

    Args:
        redrives: how often it was redriven, with this time.
        origin: of the dead letter.
        written: when the dead letter was written, in milliseconds since the epoch.
    """
    position = f"{mark.topic}:{mark.partition}:{mark.offset}"
    first, failed = origin.first_origin, origin.first_failed
    if first is None:
        first = chain_of(origin).partition(",")[0]
        failed = None if origin.earlier else written
    headers = (
        (_NAMES["redrives"], str(redrives).encode()),
        (_REDRIVE_NAME, mark.name.encode()),
        (_REDRIVE_OF, position.encode()),
        (_NAMES["first_origin"], first.encode()),
    )
    if failed is None:
        return headers
    return (*headers, (_NAMES["first_failed"], str(failed).encode()))


def with_first_origin(origin: Origin, headers: Headers) -> Origin:
    """Return an origin with the first one that a redriven record's headers name."""
    values = _last_values(headers)
    first = values.get(_NAMES["first_origin"])
    if first is None or not _POSITION.fullmatch(first) or not read_redrives(headers):
        return origin
    failed = _number(values.get(_NAMES["first_failed"], b""))
    return origin._replace(first_origin=first.decode(), first_failed=failed)


def read_redrives(headers: Headers) -> int:
    """Return how often a record was redriven; 0 if the header is missing or damaged."""
    value = _last_values(headers).get(_NAMES["redrives"])
    return (_number(value) if value is not None else None) or 0


def read_redrive_mark(headers: Headers) -> RedriveMark | None:
    """Return the mark of a redriven record, or None if it has none."""
    values = _last_values(headers)
    name, position = values.get(_REDRIVE_NAME), values.get(_REDRIVE_OF)
    if name is None or position is None:
        return None
    topic, *numbers = position.split(b":")
    match [_number(each) for each in numbers]:
        case [int() as partition, int() as offset]:
            return RedriveMark(_text(name), _text(topic), partition, offset)
    return None


def without_origin(headers: Headers) -> Headers:
    """Return a record's headers without the headers of this module."""
    return tuple(
        (name, value) for name, value in headers if not name.startswith((OWN, BROKER))
    )


def read_origin(headers: Headers) -> Origin | None:
    """Return the origin of a record in a dead-letter topic, or None if it has none.

    Headers that are damaged, for example a partition that is no number, count as none.
    If a name occurs more than once, the last one counts.
    """
    return _read(headers, _NAMES) or _read(headers, _BROKER_NAMES)


def read_retry_origin(headers: Headers) -> Origin | None:
    """Return the origin of a copy in a retry topic, or None if it has none."""
    return _read(headers, _NAMES)


def read_letter(record: Any) -> Origin | None:
    """Return the origin of a record of a source topic that is a dead letter, or None.

    A dead letter that was copied to another topic, by hand for example, is none there:
    it starts as a new record.
    """
    origin = _read(record.headers, _NAMES)
    if origin is not None and origin.written_to == record.topic:
        return origin
    if record.topic.startswith(BROKER_TOPICS):
        return _read(record.headers, _BROKER_NAMES)
    return None


def chain_of(letter: Origin) -> str:
    """Return `Origin.earlier` for a dead letter of this dead letter."""
    position = f"{letter.topic}:{letter.partition}:{letter.offset}"
    return position if letter.earlier is None else f"{letter.earlier},{position}"


def earlier_topics(origin: Origin) -> frozenset[str]:
    """Return the topics in which a record failed before it was this dead letter."""
    positions = (origin.earlier or "").split(",")
    return frozenset(each.partition(":")[0] for each in positions if each)


def reference_headers(origin: Origin) -> Headers:
    """Return the headers of a dead letter without the key, value and headers."""
    return (*origin_headers(origin), (REFERENCE, b"too large"))


def needs_source(headers: Headers) -> bool:
    """Return whether the source has headers, and perhaps more, that are not copied.

    Brokers copy no headers. Workers write a reference only if a copy is too large.
    """
    if _read(headers, _NAMES) is not None:
        return REFERENCE in _last_values(headers)
    return _read(headers, _BROKER_NAMES) is not None


def _read(headers: Headers, names: Mapping[str, str]) -> Origin | None:
    values = _last_values(headers)
    fields: dict[str, Any] = {}
    for field, name in names.items():
        value = values.get(name)
        if value is None:
            continue
        read: Callable[[bytes], Any] = _number if field in _NUMBERS else _text
        found = read(value)
        if found is None:
            return None
        fields[field] = found
    if any(field not in fields for field in _REQUIRED):
        return None
    return Origin(**fields)


def _last_values(headers: Headers) -> dict[str, bytes]:
    return {name: value for name, value in headers if value is not None}


def _number(value: bytes) -> int | None:
    """Return a number that is not negative and fits in 64 bits, or None."""
    if not 0 < len(value) <= 19 or not value.isdigit():
        return None
    number = int(value)
    return number if number < 1 << 63 else None


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")
