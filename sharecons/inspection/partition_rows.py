"""The numbers of a partition, under the names that JSON has, and their columns."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from sharecons._record import TopicPartition
from sharecons.group_state.group_states import PartitionState
from sharecons.group_state.offset_states import OffsetRange, OffsetStatus
from sharecons.inspection.diagnosis.formats import format_age
from sharecons.inspection.inspect import GroupInspection
from sharecons.inspection.offset_bars import LEGEND, STYLES

__all__ = [
    "RANGE_HEADINGS",
    "TEXTS",
    "Column",
    "columns_of",
    "numbers_of",
    "oldest_of",
    "ranges_of",
    "statuses_of",
    "texts_of",
]

TEXTS: Final = frozenset({"TOPIC", "OLDEST", "STATUS"})
"""Headings of columns that are not numbers."""

RANGE_HEADINGS: Final = (
    "TOPIC",
    "PARTITION",
    "FIRST",
    "LAST",
    "OFFSETS",
    "STATUS",
    "DELIVERIES",
)


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


def texts_of(
    key: TopicPartition,
    partition: PartitionState,
    columns: Sequence[Column],
    at: float,
    escaped: Callable[[str], str],
) -> dict[str, str]:
    """Return the texts of a partition's row, by heading."""
    numbers = numbers_of(key, partition)
    texts = {each.heading: escaped(_text(numbers[each.name])) for each in columns}
    return {**texts, "OLDEST": oldest_of(partition, at)}


def ranges_of(
    group: GroupInspection, escaped: Callable[[str], str]
) -> Iterator[tuple[OffsetRange, tuple[str, ...]]]:
    """Yield each range of offsets, and the texts under RANGE_HEADINGS."""
    for key, partition in group.partitions.found.items():
        for each in partition.ranges:
            numbers = (key.partition, each.first_offset, each.last_offset, each.count)
            yield (
                each,
                (
                    escaped(key.topic),
                    *map(str, numbers),
                    STYLES[each.status].label,
                    _text(each.delivery_count),
                ),
            )


def _text(value: str | int | None) -> str:
    return "-" if value is None else str(value)
