"""The oldest record of each partition, which is read only when it changes."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import NamedTuple, final

from sharecons._record import TopicPartition
from sharecons.admin import ShareGroupAdmin
from sharecons.errors import Error
from sharecons.exporter.snapshot import ExportedGroup, ExportedPartition
from sharecons.inspection import FoundRecords, find_records
from sharecons.inspection.diagnosis.offset_states import (
    UNSETTLED,
    OffsetRange,
    without_records,
)

__all__ = ["OldestRecords", "ReadGroups"]


class ReadGroups(NamedTuple):
    """Groups with the oldest record of each partition, and errors of reading them."""

    groups: dict[str, ExportedGroup]
    errors: tuple[Error, ...]


class _Known(NamedTuple):
    """The records found when this was the first unsettled offset."""

    first_offset: int
    found: FoundRecords


@final
class OldestRecords:
    """Reads the oldest records; one that is still the oldest is not read again.

    Args:
        admin: sends the requests.
    """

    def __init__(self, admin: ShareGroupAdmin) -> None:
        self._admin = admin
        self._known: dict[tuple[str, TopicPartition], _Known] = {}

    async def read(
        self, groups: Mapping[str, ExportedGroup], committed: Collection[str]
    ) -> ReadGroups:
        """Add the oldest record, and offsets without records before it.

        Args:
            committed: the groups that read committed records.
        """
        before, self._known = self._known, {}
        errors: list[Error] = []
        complete: dict[str, ExportedGroup] = {}
        for group_id, group in groups.items():
            unsettled = {
                key: each.unsettled
                for key, each in group.partitions.items()
                if each.unsettled
            }
            rest = {
                key: _after(each, before.get((group_id, key)))
                for key, each in unsettled.items()
            }
            found, error = await self._find(rest, is_committed=group_id in committed)
            errors += error
            for key, each in unsettled.items():
                first = each[0].first_offset
                known = before.get((group_id, key))
                if known is not None and known.first_offset != first:
                    known = None
                if (now := _joined(known, found.get(key))) is not None:
                    self._known[group_id, key] = _Known(first, now)
            complete[group_id] = replace(
                group,
                partitions={
                    key: _completed(one, self._known.get((group_id, key)))
                    for key, one in group.partitions.items()
                },
            )
        return ReadGroups(complete, tuple(errors))

    async def _find(
        self,
        unsettled: Mapping[TopicPartition, tuple[OffsetRange, ...]],
        *,
        is_committed: bool,
    ) -> tuple[Mapping[TopicPartition, FoundRecords], tuple[Error, ...]]:
        wanted = {key: each for key, each in unsettled.items() if each}
        if not wanted:
            return {}, ()
        committed = tuple(wanted) if is_committed else ()
        try:
            return await find_records(self._admin, wanted, committed=committed), ()
        except Error as error:
            return {}, (error,)


def _after(
    unsettled: tuple[OffsetRange, ...], known: _Known | None
) -> tuple[OffsetRange, ...]:
    """Return what is still to be searched."""
    if known is None or known.first_offset != unsettled[0].first_offset:
        return unsettled
    if known.found.oldest is not None:
        return ()
    start = known.found.next_offset
    return tuple(
        replace(each, first_offset=max(start, each.first_offset))
        for each in unsettled
        if each.last_offset >= start
    )


def _joined(known: _Known | None, found: FoundRecords | None) -> FoundRecords | None:
    """Return what was found before and now."""
    if known is None or found is None:
        return found if known is None else known.found
    missing = (*known.found.without_record, *found.without_record)
    return found._replace(without_record=missing)


def _completed(one: ExportedPartition, known: _Known | None) -> ExportedPartition:
    if known is None or not one.unsettled:
        return one
    oldest, _, missing = known.found
    if one.ranges is None:
        # The lag is all that is known. It is 0 if the log has no record to deliver.
        sizes = sum(last - first + 1 for first, last in missing)
        total = sum(each.count for each in one.unsettled)
        lag = 0 if oldest is None and sizes == total else one.lag
        return replace(one, oldest=oldest, lag=lag)
    ranges = without_records(one.ranges, _within(missing, one.unsettled))
    left = sum(each.count for each in ranges if each.status in UNSETTLED)
    lag = None if one.lag is None else min(one.lag, left)
    return replace(one, oldest=oldest, ranges=ranges, lag=lag)


def _within(
    missing: tuple[tuple[int, int], ...], unsettled: tuple[OffsetRange, ...]
) -> tuple[tuple[int, int], ...]:
    """Return the parts that are still unsettled, each within one range."""
    return tuple(
        (max(first, each.first_offset), min(last, each.last_offset))
        for each in unsettled
        for first, last in missing
        if first <= each.last_offset and last >= each.first_offset
    )
