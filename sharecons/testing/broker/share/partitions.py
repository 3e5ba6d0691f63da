"""The share partitions of all groups: the coordinator's states and the leaders' ones.

A leader loads a share partition from the coordinator's state at its first use. It is
unloaded when the leader moves, when the last session of the group on that broker ends
with its connection, and when an administrator changes the offsets.

If the group has a dead letter topic, records are written to it and archived
immediately, where Kafka takes some milliseconds (KIP-1191).
"""

import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NamedTuple, TypeAlias

import anyio

from sharecons.testing.broker.configs import DEAD_LETTERS, Configs
from sharecons.testing.broker.log.partition_log import PartitionLog
from sharecons.testing.broker.share.coordinator_state import CoordinatorState
from sharecons.testing.broker.share.dead_letter_pending import DeadLetterPending
from sharecons.testing.broker.share.deliveries import GroupSettings
from sharecons.testing.broker.share.durations import parse_duration
from sharecons.testing.broker.share.in_flight import Run
from sharecons.testing.broker.share.partition import SharePartition
from sharecons.testing.broker.signals import Signal
from sharecons.testing.broker.topics import Partition

__all__ = ["GroupOffset", "SharePartitionKey", "SharePartitions"]

BY_DURATION: Final = "by_duration:"
MILLISECOND: Final = timedelta(milliseconds=1)
NEVER: Final = float("inf")


class SharePartitionKey(NamedTuple):
    """The identity of a share partition."""

    group_id: str
    topic_id: uuid.UUID
    partition: int

    @property
    def coordinator_key(self) -> str:
        """The key of the share partition in FindCoordinator."""
        topic_id = urlsafe_b64encode(self.topic_id.bytes).rstrip(b"=").decode()
        return f"{self.group_id}:{topic_id}:{self.partition}"


class GroupOffset(NamedTuple):
    """A group's position in a partition, as in DescribeShareGroupOffsets."""

    topic_id: uuid.UUID
    partition: int
    start_offset: int
    """-1 as long as no state was written."""
    leader_epoch: int
    delivery_complete: int
    """Final records at or above the start offset; -1: unknown."""

    def lag(self, end_offset: int) -> int:
        """Return the number of records that are not final (KIP-1226); -1: unknown."""
        if self.start_offset < 0 or self.delivery_complete < 0:
            return -1
        return end_offset - self.start_offset - self.delivery_complete


@dataclass(frozen=True, slots=True)
class _LoadedPartition:
    """A share partition in the memory of a broker."""

    node_id: int
    partition: SharePartition


WriteDeadLetters: TypeAlias = Callable[[SharePartitionKey, int, Run], bool]
"""Writes dead letters; returns whether the records can be archived, written or not."""


def _discard(key: SharePartitionKey, node_id: int, run: Run) -> bool:
    return True


class SharePartitions:
    """All share partitions; `clock` returns the time of the event loop in seconds."""

    def __init__(
        self,
        configs: Configs,
        clock: Callable[[], float] = anyio.current_time,
        write: WriteDeadLetters = _discard,
    ) -> None:
        self._configs = configs
        self._clock = clock
        self._write = write
        self._states: dict[SharePartitionKey, CoordinatorState] = {}
        self._loaded: dict[SharePartitionKey, _LoadedPartition] = {}
        self._changed: dict[SharePartitionKey, Signal] = {}

    def group_settings(self, group_id: str) -> GroupSettings:
        """Return the current settings of a group."""

        def value(name: str) -> str:
            return self._configs.group_value(group_id, name)

        return GroupSettings(
            lock_duration=int(value("share.record.lock.duration.ms")) / 1000,
            delivery_limit=int(value("share.delivery.count.limit")),
            record_locks=int(value("share.partition.max.record.locks")),
            may_renew=value("share.renew.acknowledge.enable") == "true",
            dead_letters=bool(value(DEAD_LETTERS)),
        )

    @property
    def next_deadline(self) -> float:
        """The time at which `advance` has something to do, without a request."""
        if not self._configs.has_dead_letter_topics:
            return NEVER
        deadlines = (
            loaded.partition.next_deadline() for loaded in self._loaded.values()
        )
        return min(deadlines, default=NEVER)

    def advance(self, now: float) -> None:
        """Write the dead letters of locks that have ended."""
        if self._configs.has_dead_letter_topics:
            for key, loaded in self._loaded.items():
                if loaded.partition.next_deadline() <= now:
                    self._advance(key)

    def load(
        self, key: SharePartitionKey, partition: Partition, now_ms: int
    ) -> SharePartition | None:
        """Return a share partition for its leader, loaded if necessary.

        Returns None if the coordinator has no state of it yet.
        """
        loaded = self._loaded.get(key)
        if loaded is None:
            state = self._states.get(key)
            if state is None:
                return None
            state.note_leader_epoch(partition.leader_epoch)
            start_offset = state.start_offset
            if start_offset < 0:
                start_offset = self._first_offset(key.group_id, partition.log, now_ms)
            loaded = _LoadedPartition(
                partition.leader, SharePartition(state, start_offset)
            )
            self._loaded[key] = loaded
            loaded.partition.resume_dead_letters(self.group_settings(key.group_id))
            self.write_dead_letters(key)
        return loaded.partition

    def get_loaded(self, key: SharePartitionKey, node_id: int) -> SharePartition | None:
        """Return a share partition if the broker has it in memory."""
        loaded = self._loaded.get(key)
        return (
            loaded.partition
            if loaded is not None and loaded.node_id == node_id
            else None
        )

    def changed(self, key: SharePartitionKey) -> Signal:
        """Return the signal for records that might have become available."""
        return self._changed.setdefault(key, Signal())

    def write_dead_letters(self, key: SharePartitionKey) -> bool:
        """Write and archive dead letters; return whether the start offset has moved."""
        loaded = self._loaded.get(key)
        if loaded is None or not loaded.partition.has_dead_letters:
            return False
        now = self._clock()
        archivable: list[DeadLetterPending] = []
        for each in loaded.partition.take_due_dead_letters(now):
            is_done = self._write(key, loaded.node_id, each.run)
            if is_done or (later := each.next_try(now)) is None:
                archivable.append(each)
            else:
                loaded.partition.requeue(later)
        has_moved = loaded.partition.archive(archivable)
        if has_moved:
            self.changed(key).notify()
        return has_moved

    @property
    def states(self) -> Mapping[SharePartitionKey, CoordinatorState]:
        """The coordinator's states of all share partitions."""
        return self._states

    def state(self, key: SharePartitionKey) -> CoordinatorState | None:
        """Return the coordinator's state, or None."""
        self._advance(key)
        return self._states.get(key)

    def initialize(self, group_id: str, topic_id: uuid.UUID, partition: int) -> None:
        """Create the coordinator's state, before the first fetch."""
        key = SharePartitionKey(group_id, topic_id, partition)
        self._states.setdefault(key, CoordinatorState())

    def release(self, key: SharePartitionKey, node_id: int, member: str) -> None:
        """Release the records that a member has acquired of a share partition."""
        self._advance(key)
        partition = self.get_loaded(key, node_id)
        settings = self.group_settings(key.group_id)
        if partition is not None and partition.release(member, settings):
            self.changed(key).notify()
        self.write_dead_letters(key)

    def has_loaded(self, group_id: str) -> bool:
        """Return whether a partition of the group is loaded, even without members."""
        return any(key.group_id == group_id for key in self._loaded)

    def expire_locks(
        self, group_id: str, topic_id: uuid.UUID | None, partition: int | None
    ) -> None:
        """Expire the locks of a group, or of some of its partitions."""
        settings = self.group_settings(group_id)
        for key, loaded in self._loaded.items():
            if (
                key.group_id == group_id
                and topic_id in (None, key.topic_id)
                and partition in (None, key.partition)
            ):
                loaded.partition.expire_locks(settings)
                self.write_dead_letters(key)
                self.changed(key).notify()

    def leader_moved(self, topic_id: uuid.UUID, partition: int) -> None:
        """Unload a partition's share partitions, with their locks."""
        self._unload(key for key in self._loaded if key[1:] == (topic_id, partition))

    def unload_group(self, group_id: str, node_id: int) -> None:
        """Unload the partitions of a group without sessions on a broker."""
        self._unload(
            key
            for key, loaded in self._loaded.items()
            if key.group_id == group_id and loaded.node_id == node_id
        )

    def offsets(self, group_id: str) -> list[GroupOffset]:
        """Return a group's position in each partition that it has state of."""
        for key in self._loaded:
            if key.group_id == group_id:
                self._advance(key)
        return [
            GroupOffset(
                key.topic_id,
                key.partition,
                state.start_offset,
                state.leader_epoch,
                state.delivery_complete,
            )
            for key, state in self._states.items()
            if key.group_id == group_id
        ]

    def in_flight(self, key: SharePartitionKey) -> tuple[int, list[Run]]:
        """Return the start offset (-1: none yet) and the deliveries of a partition."""
        self._advance(key)
        if loaded := self._loaded.get(key):
            return loaded.partition.start_offset, loaded.partition.runs()
        state = self._states.get(key)
        if state is None or state.start_offset < 0:
            return -1, []
        # A leader would load the same state.
        partition = SharePartition(state, state.start_offset)
        return partition.start_offset, partition.runs()

    def reset_offset(
        self, group_id: str, topic_id: uuid.UUID, partition: int, offset: int
    ) -> None:
        """Reset an empty group to an offset of a partition."""
        key = SharePartitionKey(group_id, topic_id, partition)
        self._states.setdefault(key, CoordinatorState()).reset(offset)
        self._unload([key])

    def delete(self, group_id: str, topic_id: uuid.UUID, partition: int) -> None:
        """Delete a group's state of a partition."""
        self._delete([SharePartitionKey(group_id, topic_id, partition)])

    def delete_topic(self, topic_id: uuid.UUID) -> None:
        self._delete([key for key in self._states if key.topic_id == topic_id])

    def delete_group(self, group_id: str) -> None:
        self._delete([key for key in self._states if key.group_id == group_id])

    def _advance(self, key: SharePartitionKey) -> None:
        """Release records whose locks have ended."""
        loaded = self._loaded.get(key)
        if loaded is not None and loaded.partition.advance(
            self.group_settings(key.group_id), self._clock()
        ):
            self.changed(key).notify()
        self.write_dead_letters(key)

    def _delete(self, keys: Iterable[SharePartitionKey]) -> None:
        for key in keys:
            self._states.pop(key, None)
            self._unload([key])

    def _unload(self, keys: Iterable[SharePartitionKey]) -> None:
        for key in list(keys):
            self._advance(key)
            self._loaded.pop(key, None)
            self.changed(key).notify()

    def _first_offset(self, group_id: str, log: PartitionLog, now_ms: int) -> int:
        reset = self._configs.group_value(group_id, "share.auto.offset.reset").lower()
        if reset == "earliest":
            return log.start_offset
        if reset.startswith(BY_DURATION):
            since = (
                now_ms - parse_duration(reset.removeprefix(BY_DURATION)) // MILLISECOND
            )
            found = log.find_timestamp(since)
            return log.end_offset if found is None else found.offset
        return log.end_offset
