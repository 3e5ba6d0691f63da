"""Collections: all groups of a cluster are looked at, with few questions.

The groups' descriptions, their offsets and their logs' ends are asked for all groups at
once: one request to each coordinator or leader. Only states take a request for each
group, and the oldest record one to its leader, when another one became the oldest.
"""

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar, final

import anyio

from sharecons._record import TopicPartition
from sharecons.admin import (
    ConfigEntry,
    GroupOffset,
    OffsetSpec,
    Outcome,
    Results,
    ShareGroup,
    ShareGroupAdmin,
    SharePartitionState,
)
from sharecons.errors import AuthorizationError, ConnectionFailedError, Error
from sharecons.exporter.snapshot import (
    GroupSnapshot,
    PartitionSnapshot,
    Snapshot,
    is_chosen,
)
from sharecons.exporter.stalls import Stalls
from sharecons.inspection import oldest_records
from sharecons.inspection.inspect import group_facts
from sharecons.protocol.diagnosis.offset_states import (
    OffsetRange,
    Oldest,
    offset_ranges_of,
)

__all__ = ["Collector"]

SIDE_BY_SIDE: Final = 8
"""Groups whose states are asked for at a time."""

K = TypeVar("K")
V = TypeVar("V")
Offsets = Mapping[str, Mapping[TopicPartition, GroupOffset]]
Ends = Mapping[TopicPartition, int]
States = Mapping[str, Mapping[TopicPartition, SharePartitionState]]
Place = tuple[str, TopicPartition]


@dataclass(slots=True)
class _Trouble:
    """What went wrong in one collection."""

    failures: Counter[str] = field(default_factory=Counter)
    complaints: dict[str, None] = field(default_factory=dict)

    def note(self, question: str, errors: Iterable[Error]) -> None:
        for error in errors:
            self.failures[question] += 1
            self.complaints[str(error)] = None

    def found(self, question: str, results: Results[K, V]) -> dict[K, V]:
        """Give what went well, and note the rest."""
        self.note(question, results.errors.values())
        return results.found


@final
class Collector:
    """Collects readings of the groups whose ids fit one of the patterns.

    Args:
        admin: whom to ask.
        patterns: as in file names: `billing-*`. None of them choose every group.
        limit: seconds that one collection may take.
    """

    def __init__(
        self, admin: ShareGroupAdmin, patterns: Iterable[str] = (), limit: float = 30.0
    ) -> None:
        self._admin = admin
        self._patterns = tuple(patterns)
        self._limit = limit
        # Records do not change: one that is still the oldest is not read again.
        self._oldest: dict[Place, tuple[int, Oldest]] = {}
        self._stalls = Stalls()

    async def collect(self) -> Snapshot:
        """Look at all groups once. What fails is told in the readings; nothing raises.

        May be cancelled at any time.
        """
        began = time.monotonic()
        trouble = _Trouble()
        groups: dict[str, GroupSnapshot] = {}
        reached = False
        with anyio.move_on_after(self._limit) as scope:
            try:
                groups = await self._groups(trouble)
                reached = True
            except Error as error:
                trouble.note("cluster", [error])
                reached = not isinstance(error, ConnectionFailedError)
        if scope.cancelled_caught:
            late = f"looking at the groups took more than {self._limit:g} s"
            trouble.note("cluster", [ConnectionFailedError(late)])
        return Snapshot(
            at=time.time(),
            duration=time.monotonic() - began,
            groups=groups,
            failures=trouble.failures,
            complaints=tuple(trouble.complaints),
            reached=reached,
        )

    async def _groups(self, trouble: _Trouble) -> dict[str, GroupSnapshot]:
        listing = await self._admin.list_groups()
        trouble.note("groups", listing.errors.values())
        ids = [key for key in listing.groups if is_chosen(key, self._patterns)]
        if not ids:
            return {}
        described = trouble.found(
            "groups", await self._admin.describe_share_groups(*ids)
        )
        offsets = await self._offsets(ids, trouble)
        partitions = sorted({key for each in offsets.values() for key in each})
        starts = await self._log(partitions, OffsetSpec.EARLIEST, trouble)
        ends = await self._log(partitions, OffsetSpec.LATEST, trouble)
        states = await self._states(offsets, trouble)
        configs = trouble.found("configs", await self._admin.describe_configs(*ids))
        readings = {
            group_id: _reading(
                described.get(group_id),
                offsets.get(group_id, {}),
                states.get(group_id, {}),
                starts,
                ends,
            )
            for group_id in ids
        }
        return self._with_stalls(
            await self._with_oldest(readings, trouble), described, configs
        )

    def _with_stalls(
        self,
        readings: dict[str, GroupSnapshot],
        described: Mapping[str, ShareGroup],
        configs: Mapping[str, Mapping[str, ConfigEntry]],
    ) -> dict[str, GroupSnapshot]:
        now = time.time()
        places = {(g, key) for g, each in readings.items() for key in each.partitions}
        self._stalls.forget_all_but(places)
        complete = dict(readings)
        for group_id, group in described.items():
            entries = configs.get(group_id, {})
            limit = group_facts(group, entries).record_locks
            partitions = readings[group_id].partitions
            stalls = self._stalls.find(group, entries, partitions, now)
            complete[group_id] = replace(
                readings[group_id],
                partitions={
                    key: replace(
                        one, window_limit=limit, stalled=stalls.get(key, one.stalled)
                    )
                    for key, one in partitions.items()
                },
            )
        return complete

    async def _offsets(self, ids: list[str], trouble: _Trouble) -> Offsets:
        listed = trouble.found(
            "offsets", await self._admin.list_share_group_offsets(*ids)
        )
        return {
            group_id: {
                key: offset
                for key, offset in trouble.found("offsets", offsets).items()
                if offset.start_offset is not None
            }
            for group_id, offsets in listed.items()
        }

    async def _log(
        self, partitions: Iterable[TopicPartition], spec: OffsetSpec, trouble: _Trouble
    ) -> Ends:
        found = await self._admin.list_offsets(partitions, spec)
        return {
            key: one.offset
            for key, one in trouble.found("logs", found).items()
            if one.offset is not None
        }

    # What needs a request for each group.

    async def _states(self, offsets: Offsets, trouble: _Trouble) -> States:
        states: dict[str, Mapping[TopicPartition, SharePartitionState]] = {}
        waiting = iter([key for key, each in offsets.items() if each])
        refused = False

        async def ask() -> None:
            nonlocal refused
            for group_id in waiting:
                if refused:
                    return
                read = await self._outcome(group_id, offsets[group_id])
                if forbidden := _forbidden(read):
                    # The right is the cluster's: without it for one group it is
                    # useless to ask for the others.
                    refused = True
                    trouble.note("states", [forbidden])
                else:
                    states[group_id] = trouble.found("states", read)

        async with anyio.create_task_group() as tasks:
            for _ in range(SIDE_BY_SIDE):
                tasks.start_soon(ask)
        return states

    async def _outcome(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> Results[TopicPartition, SharePartitionState]:
        keys = tuple(partitions)
        try:
            return await self._admin.read_state(group_id, keys)
        except Error as error:
            # Raised here, it would end the other groups' questions.
            return Results({key: Outcome(error=error) for key in keys})

    async def _with_oldest(
        self, readings: dict[str, GroupSnapshot], trouble: _Trouble
    ) -> dict[str, GroupSnapshot]:
        known, self._oldest = self._oldest, {}
        for group_id, reading in readings.items():
            unsettled = {
                key: each.unsettled
                for key, each in reading.partitions.items()
                if each.unsettled
            }
            new = {
                key: each
                for key, each in unsettled.items()
                if known.get((group_id, key), (None,))[0] != each[0].first_offset
            }
            found = await self._oldest_records(new, trouble)
            for key, each in unsettled.items():
                place = (group_id, key)
                if key in found:
                    self._oldest[place] = (each[0].first_offset, found[key])
                elif key not in new:
                    self._oldest[place] = known[place]
        return {
            group_id: self._complete(group_id, reading)
            for group_id, reading in readings.items()
        }

    async def _oldest_records(
        self,
        unsettled: Mapping[TopicPartition, tuple[OffsetRange, ...]],
        trouble: _Trouble,
    ) -> Mapping[TopicPartition, Oldest]:
        if not unsettled:
            return {}
        try:
            return await oldest_records(self._admin, unsettled)
        except Error as error:
            trouble.note("records", [error])
            return {}

    def _complete(self, group_id: str, reading: GroupSnapshot) -> GroupSnapshot:
        partitions = {
            key: replace(one, oldest=self._oldest[group_id, key][1])
            if (group_id, key) in self._oldest
            else one
            for key, one in reading.partitions.items()
        }
        return replace(reading, partitions=partitions)


def _forbidden(
    read: Results[TopicPartition, SharePartitionState],
) -> AuthorizationError | None:
    for error in read.errors.values():
        if isinstance(error, AuthorizationError):
            text = (
                f"states are not read ({error.name}): that takes CLUSTER_ACTION on the "
                "cluster; delivery counts and records in flight are left out"
            )
            return AuthorizationError(text, code=error.code, name=error.name)
    return None


def _reading(
    group: ShareGroup | None,
    offsets: Mapping[TopicPartition, GroupOffset],
    states: Mapping[TopicPartition, SharePartitionState],
    starts: Ends,
    ends: Ends,
) -> GroupSnapshot:
    return GroupSnapshot(
        state=None if group is None else group.state,
        members=None if group is None else len(group.members),
        partitions={
            key: PartitionSnapshot(
                start_offset=one.start_offset,
                end_offset=ends.get(key),
                lag=one.lag,
                stretches=offset_ranges_of(states[key], starts.get(key), ends.get(key))
                if key in states
                else None,
            )
            for key, one in offsets.items()
            if one.start_offset is not None
        },
    )
