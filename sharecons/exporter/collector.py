"""The collector: reads all groups of a cluster with few requests.

Descriptions, offsets and log ends are requested for all groups together: one request to
each coordinator or leader. Only states take a request per group, and the oldest record
one to its leader, if it is another record than before.
"""

import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar, final

import anyio

from sharecons._record import TopicPartition
from sharecons.admin import (
    ConfigEntry,
    GroupOffset,
    OffsetSpec,
    Result,
    Results,
    ShareGroup,
    ShareGroupAdmin,
    SharePartitionState,
)
from sharecons.errors import AuthorizationError, ConnectionFailedError, Error
from sharecons.exporter.group_snapshot import Logs, group_snapshot
from sharecons.exporter.ledgers import Ledgers
from sharecons.exporter.oldest_records import OldestRecords
from sharecons.exporter.snapshot import (
    ErrorSource,
    ExportedGroup,
    Snapshot,
    is_chosen,
)
from sharecons.exporter.stalls import Stalls
from sharecons.inspection.diagnosis.group_facts import group_facts, reads_committed
from sharecons.inspection.missing_topics import find_missing_topics, subscribers_of
from sharecons.spark.backlog import LedgerBacklog

__all__ = ["Collector"]

MAX_CONCURRENT: Final = 8
"""Groups whose states are read concurrently."""

K = TypeVar("K")
V = TypeVar("V")
Offsets = Mapping[str, Mapping[TopicPartition, GroupOffset]]
Ends = Mapping[TopicPartition, int]
States = Mapping[str, Mapping[TopicPartition, SharePartitionState]]


@dataclass(slots=True)
class _Errors:
    """The errors of one collection."""

    counts: Counter[ErrorSource] = field(default_factory=Counter)
    messages: dict[str, None] = field(default_factory=dict)

    def add(self, source: ErrorSource, errors: Iterable[Error]) -> None:
        for error in errors:
            self.counts[source] += 1
            self.messages[str(error)] = None

    def found(self, source: ErrorSource, results: Results[K, V]) -> dict[K, V]:
        """Return the values, and add the errors."""
        self.add(source, results.errors.values())
        return results.found


@final
class Collector:
    """Reads snapshots of the groups whose ids match one of the patterns.

    Args:
        admin: sends the requests.
        patterns: like file names: `billing-*`. None means all groups.
        limit: seconds for one collection.
        ledgers: the ledgers of Spark queries to read as well.
    """

    def __init__(
        self,
        admin: ShareGroupAdmin,
        patterns: Iterable[str] = (),
        limit: float = 30.0,
        *,
        ledgers: Ledgers | None = None,
    ) -> None:
        self._admin = admin
        self._ledgers = ledgers or Ledgers()
        self._patterns = tuple(patterns)
        self._limit = limit
        self._records = OldestRecords(admin)
        self._stalls = Stalls()
        self._before: Mapping[str, ExportedGroup] = {}

    async def collect(self) -> Snapshot:
        """Read all groups once. Errors are in the snapshot; nothing is raised.

        Can be cancelled at any time.
        """
        began = time.monotonic()
        errors = _Errors()
        groups: dict[str, ExportedGroup] = {}
        backlogs: Mapping[str, LedgerBacklog] = {}
        reached = False
        with anyio.move_on_after(self._limit) as scope:
            try:
                groups = await self._groups(errors)
                reached = True
                # After the lag: a record that a query acquires meanwhile counts twice.
                # In the other order it would count nowhere.
                backlogs, others = await self._ledgers.read()
                errors.add("ledgers", others)
            except Error as error:
                errors.add("cluster", [error])
                reached = not isinstance(error, ConnectionFailedError)
        if scope.cancelled_caught:
            late = f"snapshot the groups took more than {self._limit:g} s"
            errors.add("cluster", [ConnectionFailedError(late)])
        return Snapshot(
            at=time.time(),
            duration=time.monotonic() - began,
            groups=groups,
            ledgers=backlogs,
            error_counts=errors.counts,
            error_messages=tuple(errors.messages),
            reached=reached,
        )

    async def _groups(self, errors: _Errors) -> dict[str, ExportedGroup]:
        listing = await self._admin.list_groups()
        errors.add("groups", listing.errors.values())
        ids = [key for key in listing.groups if is_chosen(key, self._patterns)]
        if not ids:
            return {}
        described = errors.found(
            "groups", await self._admin.describe_share_groups(*ids)
        )
        offsets = await self._offsets(ids, errors)
        partitions = sorted({key for each in offsets.values() for key in each})
        starts = await self._log_offsets(partitions, OffsetSpec.EARLIEST, errors)
        ends = await self._log_offsets(partitions, OffsetSpec.LATEST, errors)
        states = await self._states(offsets, errors)
        configs = errors.found(
            "configs", await self._admin.describe_group_configs(*ids)
        )
        committed = [key for key in ids if reads_committed(configs.get(key, {}))]
        stable = await self._log_offsets(
            {key for group_id in committed for key in offsets.get(group_id, ())},
            OffsetSpec.LATEST,
            errors,
            read_committed=True,
        )
        missing = await self._missing_topics(described, errors)
        snapshots = {
            group_id: group_snapshot(
                described.get(group_id),
                offsets.get(group_id, {}),
                states.get(group_id, {}),
                Logs(starts, ends, stable, missing),
                configs.get(group_id, {}),
                self._before.get(group_id),
            )
            for group_id in ids
        }
        read = await self._records.read(snapshots, committed)
        errors.add("records", read.errors)
        complete = self._with_stalls(read.groups, described, configs)
        self._before = complete
        return complete

    def _with_stalls(
        self,
        snapshots: dict[str, ExportedGroup],
        described: Mapping[str, ShareGroup],
        configs: Mapping[str, Mapping[str, ConfigEntry]],
    ) -> dict[str, ExportedGroup]:
        now = time.time()
        places = {(g, key) for g, each in snapshots.items() for key in each.partitions}
        self._stalls.keep_only(places)
        complete = dict(snapshots)
        for group_id, group in described.items():
            entries = configs.get(group_id, {})
            limit = group_facts(group, entries).record_locks
            partitions = snapshots[group_id].partitions
            stalls = self._stalls.find(group, entries, partitions, now)
            complete[group_id] = replace(
                snapshots[group_id],
                partitions={
                    key: replace(
                        one, window_limit=limit, stalled=stalls.get(key, one.stalled)
                    )
                    for key, one in partitions.items()
                },
            )
        return complete

    async def _offsets(self, ids: list[str], errors: _Errors) -> Offsets:
        listed = errors.found(
            "offsets", await self._admin.list_share_group_offsets(*ids)
        )
        return {
            group_id: errors.found("offsets", offsets)
            for group_id, offsets in listed.items()
        }

    async def _log_offsets(
        self,
        partitions: Collection[TopicPartition],
        spec: OffsetSpec,
        errors: _Errors,
        *,
        read_committed: bool = False,
    ) -> Ends:
        if not partitions:
            return {}
        found = await self._admin.list_offsets(
            tuple(partitions), spec, read_committed=read_committed
        )
        return {
            key: one.offset
            for key, one in errors.found("logs", found).items()
            if one.offset is not None
        }

    async def _missing_topics(
        self, described: Mapping[str, ShareGroup], errors: _Errors
    ) -> Mapping[str, bool]:
        """Return for each topic that members subscribe to whether it is missing."""
        names = {name for group in described.values() for name in subscribers_of(group)}
        missing, others = await find_missing_topics(self._admin, names)
        errors.add("topics", others)
        return missing

    # Requests per group.

    async def _states(self, offsets: Offsets, errors: _Errors) -> States:
        states: dict[str, Mapping[TopicPartition, SharePartitionState]] = {}
        # Without a start offset, there is no state.
        stored = {
            group_id: [key for key, one in each.items() if one.start_offset is not None]
            for group_id, each in offsets.items()
        }
        waiting = iter([group_id for group_id, keys in stored.items() if keys])
        forbidden = False

        async def send() -> None:
            nonlocal forbidden
            for group_id in waiting:
                if forbidden:
                    return
                read = await self._read_state(group_id, stored[group_id])
                if error := _forbidden_error(read):
                    # The right is on the cluster: without it no group is readable.
                    forbidden = True
                    errors.add("states", [error])
                else:
                    states[group_id] = errors.found("states", read)

        async with anyio.create_task_group() as tasks:
            for _ in range(MAX_CONCURRENT):
                tasks.start_soon(send)
        return states

    async def _read_state(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> Results[TopicPartition, SharePartitionState]:
        keys = tuple(partitions)
        try:
            return await self._admin.read_state(group_id, keys)
        except Error as error:
            # If raised, it would cancel the requests for other groups.
            return Results({key: Result(error=error) for key in keys})


def _forbidden_error(
    read: Results[TopicPartition, SharePartitionState],
) -> AuthorizationError | None:
    for error in read.errors.values():
        if isinstance(error, AuthorizationError):
            text = (
                f"states are not read ({error.name}), as that needs CLUSTER_ACTION on "
                "the cluster; delivery counts and records in flight are left out"
            )
            return AuthorizationError(text, code=error.code, name=error.name)
    return None
