"""The JSON of `sharecons groups inspect`."""

from sharecons._record import TopicPartition
from sharecons.cli.tables import Json, Row
from sharecons.inspection import (
    Finding,
    GroupDeadLetters,
    GroupInspection,
    OffsetRange,
    OldestRecord,
    PartitionState,
)
from sharecons.inspection.partition_rows import numbers_of

__all__ = ["objects"]


def objects(group: GroupInspection) -> list[Row]:
    """Return a JSON object with all facts for each partition, and missing topic.

    The partition of a missing topic is null.
    """
    return [
        *(
            _partition_object(key, partition, group)
            for key, partition in group.partitions.found.items()
        ),
        *(_missing_topic_object(topic, group) for topic in group.missing_topics),
    ]


def _missing_topic_object(topic: str, group: GroupInspection) -> Row:
    return {
        "group": group.group.group_id,
        "topic": topic,
        "partition": None,
        "findings": [_finding_object(group.missing_topics[topic])],
    }


def _oldest_object(oldest: OldestRecord | None, at: float) -> dict[str, Json]:
    age = None if oldest is None else oldest.age(at)
    return {
        "oldest_offset": None if oldest is None else oldest.offset,
        "oldest_timestamp": None if oldest is None or age is None else oldest.timestamp,
        "oldest_age": None if age is None else round(age, 3),
    }


def _partition_object(
    key: TopicPartition, partition: PartitionState, group: GroupInspection
) -> Row:
    oldest = partition.oldest
    return {
        "group": group.group.group_id,
        **numbers_of(key, partition),
        "log_start_offset": partition.log_start_offset,
        "window": partition.window,
        "delivery_counts": {
            str(count): number for count, number in partition.delivery_counts.items()
        },
        **_oldest_object(oldest, group.at),
        "members": list(partition.members),
        "source": group.source.value,
        "dead_letters": _dead_letters_object(group.dead_letters),
        "ranges": [_range_object(each) for each in partition.ranges],
        "findings": [_finding_object(finding) for finding in group.findings[key]],
    }


def _finding_object(finding: Finding) -> dict[str, Json]:
    return {
        "reason": finding.reason.value,
        "severity": finding.severity.name.lower(),
        "text": finding.text,
    }


def _dead_letters_object(
    dead_letters: GroupDeadLetters | None,
) -> dict[str, Json] | None:
    if dead_letters is None:
        return None
    error = dead_letters.error
    return {
        "topic": dead_letters.settings.topic,
        "copy_records": dead_letters.settings.copy_records,
        "count": dead_letters.count,
        "error": None if error is None else str(error),
    }


def _range_object(offset_range: OffsetRange) -> dict[str, Json]:
    return {
        "first_offset": offset_range.first_offset,
        "last_offset": offset_range.last_offset,
        "status": offset_range.status.value,
        "delivery_count": offset_range.delivery_count,
    }
