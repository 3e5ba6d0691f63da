"""The position of a record: its partition, and fields for a log line."""

from typing import Any

from sharecons._record import TopicPartition

__all__ = ["partition_of", "position", "position_of"]


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
