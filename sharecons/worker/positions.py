"""The position of a record: its partition, and fields for a log line."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from sharecons._record import TopicPartition
from sharecons.protocol.acknowledge.positions import MAX_POSITIONS

__all__ = ["partition_of", "position", "position_of", "position_text", "positions_text"]


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


def position_text(record: Any) -> str:
    """Return the position of a record, as "orders-2@14"."""
    return f"{record.topic}-{record.partition}@{record.offset}"


def positions_text(records: Sequence[Any]) -> str:
    """Return the positions of records, as "orders-2@14, orders-0@7"."""
    texts = [position_text(record) for record in islice(records, MAX_POSITIONS)]
    if len(records) > MAX_POSITIONS:
        texts.append("...")
    return ", ".join(texts)
