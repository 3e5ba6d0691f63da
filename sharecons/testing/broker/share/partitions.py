"""The share partitions of all groups: the coordinator's states and the leaders' ones.

A leader loads a share partition from the coordinator's state at its first use. It is
unloaded when the leader moves, when the last session of the group on that broker ends
with its connection, and when an administrator changes the offsets.

If the group has a dead letter topic, records are written to it and archived at once,
where Kafka takes some milliseconds (KIP-1191).
"""

import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NamedTuple, TypeAlias

import anyio

from sharecons.testing.broker.configs import DEAD_LETTERS, Configs
from sharecons.testing.broker.log.partition_log import PartitionLog
from sharecons.testing.broker.share.coordinator_state import CoordinatorState
from sharecons.testing.broker.share.dead_letter_pending import DeadLetterPending
from sharecons.testing.broker.share.deliveries import GroupSettings
from sharecons.testing.broker.share.durations import parsed
from sharecons.testing.broker.share.in_flight import Run
from sharecons.testing.broker.share.partition import SharePartition
from sharecons.testing.broker.signals import Signal
from sharecons.testing.broker.topics import Partition

__all__ = ["GroupOffset", "Key", "SharePartitions"]

BY_DURATION: Final = "by_duration:"
MILLISECOND: Final = timedelta(milliseconds=1)
NEVER: Final = float("inf")


class Key(NamedTuple):
    """The identity of a share partition."""

    group_id: str
    topic_id: uuid.UUID
    partition: int

    @property
    def spelt(self) -> str:
        """The key of the share partition in FindCoordinator."""
        spelt = urlsafe_b64encode(self.topic_id.bytes).rstrip(b"=").decode()
        return f"{self.group_id}:{spelt}:{self.partition}"


class GroupOffset(NamedTuple):
    """A group's position in a partition, as in DescribeShareGroupOffsets."""

    topic_id: uuid.UUID
    partition: int
    start_offset: int
    """-1 as long as no state was written."""
    leader_epoch: int
    delivery_complete: int
    """Final records from there on; -1: unknown."""

    def lag(self, end_offset: int) -> int:
        """Return the number of records that are not final (KIP-1226); -1: unknown."""
        if self.start_offset < 0 or self.delivery_complete < 0:
            return -1
        return end_offset - self.start_offset - self.delivery_complete


@dataclass(frozen=True, slots=True)
class _Led:
    """A share partition in the memory of a broker."""

    node_id: int
    partition: SharePartition


Write: TypeAlias = Callable[[Key, int, Run], bool]
"""Writes dead letters; returns whether the records can be archived, written or not."""


def _nowhere(key: Key, node_id: int, run: Run) -> bool:
    return True


class SharePartitions:
    """All share partitions; `clock` returns the time of the event loop in seconds."""

    def __init__(
        self,
        configs: Configs,
        clock: Callable[[], float] = anyio.current_time,
        write: Write = _nowhere,
    ) -> None:
        self._configs = configs
        self._clock = clock
        self._write = write
        self._states: dict[Key, CoordinatorState] = {}
        self._led: dict[Key, _Led] = {}
        self._changed: dict[Key, Signal] = {}

    def settings(self, group_id: str) -> GroupSettings:
        """Return the current settings of a group."""

        def of(name: str) -> str:
            return self._configs.group_value(group_id, name)

        return GroupSettings(
            lock_duration=int(of("share.record.lock.duration.ms")) / 1000,
            delivery_limit=int(of("share.delivery.count.limit")),
            record_locks=int(of("share.partition.max.record.locks")),
            may_renew=of("share.renew.acknowledge.enable") == "true",
            dead_letters=bool(of(DEAD_LETTERS)),
        )

    @property
    def next_deadline(self) -> float:
        """The time at which `advance` has something to do, without a request."""
        if not self._configs.has_dead_letter_topics:
            return NEVER
        deadlines = (led.partition.next_deadline() for led in self._led.values())
        return min(deadlines, default=NEVER)

    def advance(self, now: float) -> None:
        """Write the dead letters of locks that have ended."""
        if self._configs.has_dead_letter_topics:
            for key, led in self._led.items():
                if led.partition.next_deadline() <= now:
                    self._advance(key)

    def lead(self, key: Key, place: Partition, now_ms: int) -> SharePartition | None:
        """Return a share partition for its leader, loaded if necessary.

        Returns None if the coordinator has no state of it yet.
        """
        led = self._led.get(key)
        if led is None:
            state = self._states.get(key)
            if state is None:
                return None
            state.read(place.leader_epoch)
            start_offset = state.start_offset
            if start_offset < 0:
                start_offset = self._first_offset(key.group_id, place.log, now_ms)
            led = _Led(place.leader, SharePartition(state, start_offset))
            self._led[key] = led
            led.partition.resume(self.settings(key.group_id))
            self.bury(key)
        return led.partition

    def led(self, key: Key, node_id: int) -> SharePartition | None:
        """Return a share partition if the broker has it in memory."""
        led = self._led.get(key)
        return led.partition if led is not None and led.node_id == node_id else None

    def changed(self, key: Key) -> Signal:
        """Return the signal for records that may have become available."""
        return self._changed.setdefault(key, Signal())

    def bury(self, key: Key) -> bool:
        """Write and archive dead letters; return whether the start offset has moved."""
        led = self._led.get(key)
        if led is None or not led.partition.has_given_up:
            return False
        now = self._clock()
        done: list[DeadLetterPending] = []
        for each in led.partition.take_given_up(now):
            is_done = self._write(key, led.node_id, each.run)
            if is_done or (later := each.later(now)) is None:
                done.append(each)
            else:
                led.partition.keep(later)
        has_moved = led.partition.archive(done)
        if has_moved:
            self.changed(key).notify()
        return has_moved

    def state(self, key: Key) -> CoordinatorState | None:
        """Return the coordinator's state, or None."""
        self._advance(key)
        return self._states.get(key)

    def initialize(self, group_id: str, topic_id: uuid.UUID, partition: int) -> None:
        """Create the coordinator's state, before the first fetch."""
        key = Key(group_id, topic_id, partition)
        self._states.setdefault(key, CoordinatorState())

    def release(self, key: Key, node_id: int, member: str) -> None:
        """Release the records that a member has acquired of a share partition."""
        self._advance(key)
        partition = self.led(key, node_id)
        settings = self.settings(key.group_id)
        if partition is not None and partition.release(member, settings):
            self.changed(key).notify()
        self.bury(key)

    def expire_locks(
        self, group_id: str, topic_id: uuid.UUID | None, partition: int | None
    ) -> None:
        """Expire the locks of a group, or of some of its partitions."""
        settings = self.settings(group_id)
        for key, led in self._led.items():
            if (
                key.group_id == group_id
                and topic_id in (None, key.topic_id)
                and partition in (None, key.partition)
            ):
                led.partition.end_locks(settings)
                self.bury(key)
                self.changed(key).notify()

    def leader_moved(self, topic_id: uuid.UUID, partition: int) -> None:
        """Unload a partition's share partitions, with their locks."""
        self._forget(key for key in self._led if key[1:] == (topic_id, partition))

    def group_left(self, group_id: str, node_id: int) -> None:
        """Unload the partitions of a group without sessions on a broker."""
        self._forget(
            key
            for key, led in self._led.items()
            if key.group_id == group_id and led.node_id == node_id
        )

    def offsets(self, group_id: str) -> list[GroupOffset]:
        """Return a group's position in each partition that it has state of."""
        for key in self._led:
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

    def in_flight(self, key: Key) -> tuple[int, list[Run]]:
        """Return the start offset (-1: none yet) and the deliveries of a partition."""
        self._advance(key)
        if led := self._led.get(key):
            return led.partition.start_offset, led.partition.runs()
        state = self._states.get(key)
        if state is None or state.start_offset < 0:
            return -1, []
        # A leader would load the same state.
        partition = SharePartition(state, state.start_offset)
        return partition.start_offset, partition.runs()

    def alter(
        self, group_id: str, topic_id: uuid.UUID, partition: int, offset: int
    ) -> None:
        """Reset an empty group to an offset of a partition."""
        key = Key(group_id, topic_id, partition)
        self._states.setdefault(key, CoordinatorState()).alter(offset)
        self._forget([key])

    def delete(self, group_id: str, topic_id: uuid.UUID, partition: int) -> None:
        """Delete a group's state of a partition."""
        self._delete([Key(group_id, topic_id, partition)])

    def delete_topic(self, topic_id: uuid.UUID) -> None:
        self._delete([key for key in self._states if key.topic_id == topic_id])

    def delete_group(self, group_id: str) -> None:
        self._delete([key for key in self._states if key.group_id == group_id])

    def _advance(self, key: Key) -> None:
        """Release records whose locks have ended."""
        led = self._led.get(key)
        if led is not None and led.partition.advance(
            self.settings(key.group_id), self._clock()
        ):
            self.changed(key).notify()
        self.bury(key)

    def _delete(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self._states.pop(key, None)
            self._forget([key])

    def _forget(self, keys: Iterable[Key]) -> None:
        for key in list(keys):
            self._advance(key)
            self._led.pop(key, None)
            self.changed(key).notify()

    def _first_offset(self, group_id: str, log: PartitionLog, now_ms: int) -> int:
        reset = self._configs.group_value(group_id, "share.auto.offset.reset").lower()
        if reset == "earliest":
            return log.start_offset
        if reset.startswith(BY_DURATION):
            since = now_ms - parsed(reset.removeprefix(BY_DURATION)) // MILLISECOND
            found = log.at_time(since)
            return log.end_offset if found is None else found.offset
        return log.end_offset
