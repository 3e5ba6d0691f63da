"""Decides whether a failed record can wait in place without stalling its partition.

Theory of operation
-------------------
A broker acquires records of a partition only within a window: a number of offsets
above the first one that is neither accepted nor archived (2,000 by default, the group's
share.partition.max.record.locks). A record that a worker holds, to try it again later,
keeps the start of the window. Behind it, the group processes records until the window
is full; then the partition stands still, for all members.

So a record can wait for `delay` seconds if the offsets that the group passes in this
time fit in what is left of the window. The rate is measured by the highest offset that
this worker receives: it includes the work of the other members.

The same table finds an earlier delivery of a record that is still held.
"""

from typing import Final, NamedTuple, final

from sharecons._record import TopicPartition
from sharecons.worker.machine.item import WorkItem
from sharecons.worker.positions import partition_of

__all__ = ["DEFAULT_WINDOW", "HeldUp", "WindowTracker"]

DEFAULT_WINDOW: Final = 2000
"""Kafka's default of share.partition.max.record.locks (KIP-932)."""

USABLE: Final = 0.8
"""The fraction of the window that waiting records can take up: rates vary."""

PERIOD: Final = 5.0
"""Seconds for which a rate is measured. The higher one of the present and the previous
period counts, since a partition that stands still has no rate."""


class HeldUp(NamedTuple):
    """A record held for `seconds`; it and those behind it nearly fill their window."""

    item: WorkItem
    seconds: float


@final
class WindowTracker:
    """The windows of the partitions that a worker has records of; times in seconds.

    Attributes:
        window: offsets that the group has in flight in a partition at most.
    """

    def __init__(self, window: int = DEFAULT_WINDOW) -> None:
        self.window = window
        self._partitions: dict[TopicPartition, _Partition] = {}

    def add(self, item: WorkItem, now: float) -> WorkItem | None:
        """Add a record that the worker holds from now on.

        Return an earlier delivery of the same record that is still held, or None.
        """
        item.held_since = now
        record = item.record
        topic_partition = item.topic_partition = partition_of(record)
        partition = self._partitions.get(topic_partition)
        if partition is None:
            partition = _Partition(record.offset, now)
            self._partitions[topic_partition] = partition
        return partition.add(item, record.offset, now)

    def remove(self, item: WorkItem) -> None:
        """Remove a record that the worker no longer holds."""
        self._partitions[item.topic_partition].remove(item)

    def can_wait(self, item: WorkItem, delay: float, now: float) -> bool:
        """Return whether a record can be held for so long without a stall."""
        partition = self._partitions[item.topic_partition]
        offset: int = item.record.offset
        expected = partition.highest - offset + partition.rate(now) * delay
        return expected < USABLE * self.window

    def held_up(self, now: float) -> list[HeldUp]:
        """Return the records that hold up their partitions."""
        found: list[HeldUp] = []
        for partition in self._partitions.values():
            item = partition.oldest
            if item is None:
                continue
            if partition.highest - item.record.offset >= USABLE * self.window:
                found.append(HeldUp(item, now - item.held_since))
        return found

    def keep_only(self, assigned: frozenset[TopicPartition]) -> None:
        """Forget partitions that are not assigned, unless records of them are held."""
        for topic_partition in self._partitions.keys() - assigned:
            if self._partitions[topic_partition].oldest is None:
                del self._partitions[topic_partition]


class _Partition:
    """One partition: the records that are held, and how fast the group passes it.

    Attributes:
        highest: the highest offset that was delivered.
    """

    def __init__(self, offset: int, now: float) -> None:
        self.highest = offset
        self._held: dict[int, WorkItem] = {}
        self._period_start = now
        self._first_offset = offset
        self._last_rate = 0.0

    @property
    def oldest(self) -> WorkItem | None:
        """The record with the lowest offset that is held, or None."""
        return self._held[min(self._held)] if self._held else None

    def add(self, item: WorkItem, offset: int, now: float) -> WorkItem | None:
        """Add a record; return an earlier delivery of it that is held, or None."""
        if now >= self._period_start + PERIOD:
            self._end_period(now)
        earlier = self._held.get(offset)
        self._held[offset] = item
        if offset > self.highest:
            self.highest = offset
        return earlier

    def remove(self, item: WorkItem) -> None:
        offset = item.record.offset
        # A later delivery can have its entry.
        if self._held.get(offset) is item:
            del self._held[offset]

    def rate(self, now: float) -> float:
        """Return the offsets per second by which the group advances."""
        self._end_period(now)
        elapsed = now - self._period_start
        progress = self.highest - self._first_offset
        # A period that has just begun shows nothing yet.
        current = progress / max(elapsed, PERIOD / 5)
        return max(self._last_rate, current)

    def _end_period(self, now: float) -> None:
        elapsed = now - self._period_start
        if elapsed < PERIOD:
            return
        progress = self.highest - self._first_offset
        # After a pause of several periods, the last of them had no progress.
        self._last_rate = progress / elapsed if elapsed < 2 * PERIOD else 0.0
        self._period_start = now
        self._first_offset = self.highest
