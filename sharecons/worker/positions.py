"""The position of a record: its partition, and fields for a log line.

Lines about a copy in a retry topic name its origin as well: the record at its source.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from sharecons._record import TopicPartition
from sharecons.protocol.acknowledge.positions import (
    MAX_POSITIONS,
    OffsetRange,
    ranges_text,
)

__all__ = [
    "item_position",
    "item_text",
    "items_text",
    "partition_of",
    "position",
    "position_of",
    "position_text",
    "written_text",
]


def partition_of(record: Any) -> TopicPartition:
    return TopicPartition(record.topic, record.partition)


def position(record: Any) -> tuple[str, int, int]:
    """Return topic, partition and offset."""
    return record.topic, record.partition, record.offset


def position_of(record: Any) -> dict[str, Any]:
    """Return a record's position, for a log line."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "delivery_count": record.delivery_count,
    }


def item_position(item: Any) -> dict[str, Any]:
    """Return the position of an item's record and of its origin, for a log line."""
    fields = position_of(item.record)
    if item.origin is not None:
        fields["origin"] = position_text(item.origin)
    return fields


def position_text(record: Any) -> str:
    """Return the position of a record, or of an origin, as "orders-2@14"."""
    return f"{record.topic}-{record.partition}@{record.offset}"


def item_text(item: Any) -> str:
    """Return the position as "orders-2@14", or "retry-0@3 (origin orders-2@14)"."""
    text = position_text(item.record)
    if item.origin is None:
        return text
    return f"{text} (origin {position_text(item.origin)})"


def items_text(items: Sequence[Any]) -> str:
    """Return the positions of items, as `ranges_text`; of copies with their origins."""
    if all(item.origin is None for item in items):
        offsets = [position(item.record) for item in items]
        return ranges_text([OffsetRange(*each, each[2]) for each in offsets])
    texts = [item_text(item) for item in islice(items, MAX_POSITIONS)]
    if len(items) > MAX_POSITIONS:
        texts.append("...")
    return ", ".join(texts)


def written_text(written: tuple[str, int, int]) -> str:
    """Return where a copy was written; without the offset if it is not known."""
    topic, partition, offset = written
    return f"{topic}-{partition}" + (f"@{offset}" if offset >= 0 else "")
