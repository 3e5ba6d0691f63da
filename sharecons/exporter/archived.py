"""Counts of archived offsets, over all collections.

Brokers do not count them. An archived offset is in the state until the start offset
passes it, so the sum of the new ones in each collection is a lower bound.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from sharecons._record import TopicPartition
from sharecons.exporter.snapshot import Snapshot
from sharecons.group_state.offset_states import ARCHIVED

__all__ = ["ArchivedCounts"]

PartitionKey: TypeAlias = tuple[str, TopicPartition]
Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""First and last offsets, ascending."""


@dataclass(frozen=True, slots=True)
class ArchivedCounts:
    """Archived offsets seen so far, by group and partition."""

    totals: Mapping[PartitionKey, int] = field(default_factory=dict)
    _latest: Mapping[PartitionKey, Ranges] = field(default_factory=dict)

    def after(self, snapshot: Snapshot) -> "ArchivedCounts":
        """Return the counts with the new ones of a snapshot added.

        A partition that could not be read keeps its count. One that a readable group
        no longer has is dropped.
        """
        if not snapshot.reached:
            return self
        totals: dict[PartitionKey, int] = {}
        latest: dict[PartitionKey, Ranges] = {}
        for group_id, group in snapshot.groups.items():
            for key, one in group.partitions.items():
                place = group_id, key
                known = self._latest.get(place, ())
                ranges = known
                if one.has_state:
                    ranges = tuple(
                        (each.first_offset, each.last_offset)
                        for each in one.ranges
                        if each.status in ARCHIVED
                    )
                new = _size(ranges) - _overlap(known, ranges)
                latest[place] = ranges
                totals[place] = self.totals.get(place, 0) + new
        return ArchivedCounts(totals, latest)


def _size(ranges: Ranges) -> int:
    return sum(last - first + 1 for first, last in ranges)


def _overlap(ones: Sequence[tuple[int, int]], others: Sequence[tuple[int, int]]) -> int:
    common = one = other = 0
    while one < len(ones) and other < len(others):
        first = max(ones[one][0], others[other][0])
        last = min(ones[one][1], others[other][1])
        common += max(0, last - first + 1)
        if ones[one][1] < others[other][1]:
            one += 1
        else:
            other += 1
    return common
