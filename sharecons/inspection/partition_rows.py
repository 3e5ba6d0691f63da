"""The numbers of a partition, under the names that JSON has, and their columns."""

from typing import Final, NamedTuple

from sharecons._record import TopicPartition
from sharecons.group_state.group_states import PartitionState
from sharecons.group_state.offset_states import (
    OffsetStatus,
)
from sharecons.inspection.diagnosis.formats import format_age
from sharecons.inspection.inspect import GroupInspection
from sharecons.inspection.offset_bars import LEGEND

__all__ = ["Column", "columns_of", "numbers_of", "oldest_of", "statuses_of"]


class Column(NamedTuple):
    """A column of a table; `name` is the key in JSON."""

    name: str
    heading: str


_FIRST: Final = (
    Column("topic", "TOPIC"),
    Column("partition", "PART"),
    Column("start_offset", "START"),
    Column("end_offset", "END"),
)

_STATUSES: Final = {
    OffsetStatus.ACKNOWLEDGED: "ACKED",
    OffsetStatus.ARCHIVED: "ARCH",
    OffsetStatus.ARCHIVING: "ARCHIVING",
    OffsetStatus.UNKNOWN: "UNKNOWN",
    OffsetStatus.REMOVED: "REMOVED",
    OffsetStatus.NO_RECORD: "NO RECORD",
    OffsetStatus.OPEN: "OPEN",
    OffsetStatus.ABOVE: "ABOVE",
}

_RARE: Final = {
    OffsetStatus.ARCHIVING,
    OffsetStatus.UNKNOWN,
    OffsetStatus.REMOVED,
    OffsetStatus.NO_RECORD,
}
"""Statuses that have a column only if there are offsets in them."""


def columns_of(group: GroupInspection) -> tuple[Column, ...]:
    """Return the columns of numbers; each offset is counted in one of them."""
    return (*_FIRST, *(Column(s.value, _STATUSES[s]) for s in statuses_of(group)))


def statuses_of(group: GroupInspection) -> tuple[OffsetStatus, ...]:
    """Return the statuses to show, without rare ones that no offset has."""
    partitions = group.partitions.found.values()
    used = {each.status for partition in partitions for each in partition.ranges}
    return tuple(each for each in _STATUSES if each in used or each not in _RARE)


def numbers_of(
    key: TopicPartition, partition: PartitionState
) -> dict[str, str | int | None]:
    """Return the offsets of a partition, and the number of offsets in each status."""
    return {
        "topic": key.topic,
        "partition": key.partition,
        "start_offset": partition.start_offset,
        "end_offset": partition.end_offset,
        **{each.value: partition.count(each) for each in LEGEND},
    }


def oldest_of(partition: PartitionState, at: float) -> str:
    """Return the age of the oldest unsettled record as text, "-" if there is none."""
    return "-" if partition.oldest is None else format_age(partition.oldest, at)
