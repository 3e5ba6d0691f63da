"""Reasons why partitions are stalled, by the rules of `sharecons groups inspect`."""

from collections.abc import Mapping
from typing import Final, final

from sharecons._record import TopicPartition
from sharecons.admin import ConfigEntry, ShareGroup
from sharecons.exporter.snapshot import ExportedPartition
from sharecons.inspection.diagnosis.findings import Reason, findings_of
from sharecons.inspection.diagnosis.group_facts import (
    acknowledged_state,
    group_facts,
)
from sharecons.inspection.diagnosis.offset_states import (
    UNSETTLED,
    OffsetRange,
    OffsetStatus,
    PartitionInspection,
)

__all__ = ["Stalls"]

WITHOUT_STATE: Final = (Reason.NO_MEMBERS, Reason.UNASSIGNED)
"""Reasons that are known without the state."""

WITH_STATE: Final = (Reason.WINDOW_FULL, Reason.NO_PROGRESS, Reason.HELD)

PartitionKey = tuple[str, TopicPartition]
AcknowledgedState = tuple[int | None, tuple[OffsetRange, ...]]


@final
class Stalls:
    """Finds the reasons; remembers since when each partition is unchanged."""

    def __init__(self) -> None:
        self._unchanged: dict[PartitionKey, tuple[AcknowledgedState, float]] = {}

    def find(
        self,
        group: ShareGroup,
        configs: Mapping[str, ConfigEntry],
        partitions: Mapping[TopicPartition, ExportedPartition],
        now: float,
    ) -> dict[TopicPartition, Mapping[str, bool]]:
        """Return for each partition and reason whether it is stalled.

        A reason is left out if the data for it could not be read.
        """
        facts = group_facts(group, configs)
        stalls: dict[TopicPartition, Mapping[str, bool]] = {}
        for key, one in partitions.items():
            if one.unsettled is None:
                continue
            partition = _inspection(one)
            unchanged = self._seconds((group.group_id, key), partition, now)
            found = {
                each.reason
                for each in findings_of(
                    partition, facts, now=now, unchanged_for=unchanged
                )
            }
            known = [*WITHOUT_STATE]
            if one.ranges is not None and facts.record_locks is not None:
                known += WITH_STATE
            stalls[key] = {reason.value: reason in found for reason in known}
        return stalls

    def keep_only(self, places: set[PartitionKey]) -> None:
        """Forget partitions and groups that no longer exist."""
        self._unchanged = {k: v for k, v in self._unchanged.items() if k in places}

    def _seconds(
        self, place: PartitionKey, partition: PartitionInspection, now: float
    ) -> float:
        current = acknowledged_state(partition)
        known, since = self._unchanged.get(place, (None, now))
        if known != current:
            since = now
        self._unchanged[place] = current, since
        return now - since


def _inspection(one: ExportedPartition) -> PartitionInspection:
    ranges = one.ranges
    if ranges is None:
        # Without the state it is unknown which offsets were delivered.
        ranges = tuple(
            OffsetRange(
                first_offset=each.first_offset,
                last_offset=each.last_offset,
                status=OffsetStatus.ABOVE,
            )
            for each in one.unsettled or ()
            if each.status in UNSETTLED
        )
    return PartitionInspection(
        start_offset=one.start_offset,
        end_offset=one.end_offset,
        ranges=ranges,
        oldest=one.oldest,
        members=one.members,
        first_offset=one.first_offset,
    )
