"""The records that an application writes, and where they were written."""

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple

from sharecons._record import Headers
from sharecons.config import validation
from sharecons.errors import ConfigurationError
from sharecons.records.encoder import NewRecord

__all__ = ["ProducerRecord", "RecordPosition", "check_record"]


@dataclass(frozen=True, slots=True)
class ProducerRecord:
    """A record for `Producer.send_many`.

    Attributes:
        topic: the topic to write to.
        value: bytes; None deletes the key from a compacted topic.
        key: bytes or None; records with equal keys go to one partition.
        headers: pairs of a name and bytes or None.
        partition: None to choose it by the key, as Kafka's producer does.
        timestamp: milliseconds since the epoch; None for now.
    """

    topic: str
    value: bytes | None
    _: KW_ONLY
    key: bytes | None = None
    headers: Iterable[tuple[str, bytes | None]] = ()
    partition: int | None = None
    timestamp: int | None = None


class RecordPosition(NamedTuple):
    """Where a record was written; an offset of -1 is not known.

    It is unknown if a response was lost and the leader no longer knows the offset.
    """

    topic: str
    partition: int
    offset: int


def check_record(record: ProducerRecord, now: int) -> NewRecord:
    """Return the record for the encoder.

    Args:
        now: the timestamp of a record without one.

    Raises:
        ConfigurationError: a field is invalid.
    """
    if not isinstance(record, ProducerRecord):
        raise ConfigurationError(f"records must be ProducerRecord, not {record!r}")
    validation.check_topic("topic", record.topic)
    timestamp = record.timestamp
    if timestamp is None:
        timestamp = now
    else:
        validation.check_count("timestamp", timestamp, 0, validation.INT64_MAX)
    if record.partition is not None:
        validation.check_count("partition", record.partition, 0)
    return NewRecord(
        key=_check_bytes("key", record.key),
        value=_check_bytes("value", record.value),
        headers=_check_headers(record.headers),
        timestamp=timestamp,
    )


def _check_bytes(name: str, value: bytes | None) -> bytes | None:
    if value is not None and not isinstance(value, bytes):
        advice = ""
        if isinstance(value, str):
            advice = "; encode it: .encode()"
        elif isinstance(value, bytearray | memoryview):
            advice = "; copy it: bytes(...)"
        kind = type(value).__name__
        raise ConfigurationError(f"{name} must be bytes or None, not {kind}{advice}")
    return value


def _check_headers(headers: Iterable[tuple[str, bytes | None]]) -> Headers:
    if isinstance(headers, str | bytes) or not isinstance(headers, Iterable):
        kind = type(headers).__name__
        raise ConfigurationError(
            f"headers must be pairs of a name and bytes, not {kind}"
        )
    return tuple(map(_check_header, headers))


def _check_header(header: tuple[str, bytes | None]) -> tuple[str, bytes | None]:
    if not isinstance(header, tuple | list) or len(header) != 2:
        raise ConfigurationError(
            f"headers must be pairs of a name and bytes, not {header!r}"
        )
    name, value = header
    if not isinstance(name, str):
        raise ConfigurationError(f"the name of a header must be a str, not {name!r}")
    try:
        # Consumers return names that are not UTF-8 with surrogates of this kind.
        name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        validation.check_unicode("the name of a header", name)
    return name, _check_bytes(f"header {name!r}", value)
