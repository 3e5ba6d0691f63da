"""Decides where a batch ends, when a query is finished, and what each task reads.

Rule: no clock, no ledger and no Spark here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from sharecons._record import TopicPartition
from sharecons.protocol.admin.models import GroupOffset
from sharecons.spark.ledger import AcquiredRange

__all__ = [
    "ALL_OFFSETS",
    "AvailableNowTarget",
    "BatchGrowth",
    "BatchLimits",
    "IdleTimeout",
    "offsets_of_bytes",
    "plan_tasks",
]

MIN_TASK_ROWS: Final = 1000
"""Rows below which another task does not pay: Spark takes some 20 ms to start one, and
a task reads ten thousand rows in that time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """The size limits of a batch, in offsets; None for no limit."""

    max_offsets: int | None = None
    min_offsets: int | None = None

    def batch_end(self, start: int, ledger_end: int, *, overdue: bool) -> int:
        """Return where a batch from `start` ends; `start` itself if it has to wait.

        A batch of fewer than `min_offsets` waits until it is `overdue`.
        """
        if ledger_end - start < (self.min_offsets or 0) and not overdue:
            return start
        if self.max_offsets is None:
            return ledger_end
        return min(ledger_end, start + self.max_offsets)


ALL_OFFSETS: Final = 1 << 62
"""A maximum for batches that have all offsets, whatever `maxBytesPerTrigger` is."""

ASSUMED_SIZE: Final = 1024
"""Bytes per offset, until the driver has acquired any."""


def offsets_of_bytes(max_bytes: int, *, acquired: int, acquired_bytes: int) -> int:
    """Return how many offsets have about `max_bytes`; at least one.

    Args:
        acquired: the number of offsets that the driver has acquired since it started.
        acquired_bytes: the bytes of their batches in the log.
    """
    if not acquired or not acquired_bytes:
        return max(1, max_bytes // ASSUMED_SIZE)
    return max(1, max_bytes * acquired // acquired_bytes)


GROWTH_PAUSE: Final = 0.5
"""Seconds without new offsets after which a batch runs."""

MAX_GROWTH_TIME: Final = 1.0
"""Seconds after which a batch runs though more offsets arrive."""


class AvailableNowTarget:
    """The log ends of the topics, which Trigger.AvailableNow reads up to.

    A share group has no position to compare with a log's end. A partition is finished
    when the query has acquired its last offset, when the group's start offset is
    beyond it, or when the group has no lag there. Records that other members hold might
    never arrive, so a query that waits for the target also has an `IdleTimeout`.

    The ends of new partitions, and of partitions without a leader, are unknown until
    `add_partitions`.

    Attributes:
        expected_end: the ledger's position once all missing offsets are written, if no
            newer ones come in between.
        leaderless: partitions whose end is unknown because they have had no leader.
    """

    def __init__(
        self,
        bounds: Mapping[TopicPartition, tuple[int, int]],
        group_offsets: Mapping[TopicPartition, GroupOffset],
        position: int,
        *,
        leaderless: Iterable[TopicPartition] = (),
        topic_ids: Mapping[str, bytes] | None = None,
    ) -> None:
        self._ends: dict[TopicPartition, int] = {}
        # Offsets that the group lacked when the end was read.
        self._missing: dict[TopicPartition, int] = {}
        self._ids = dict(topic_ids or {})
        self.expected_end = position
        self.leaderless: frozenset[TopicPartition] = frozenset(leaderless)
        self._add_bounds(bounds, group_offsets)

    @property
    def is_reached(self) -> bool:
        return not self._ends and not self.leaderless

    def unknown_partitions(
        self, partitions: Iterable[TopicPartition]
    ) -> list[TopicPartition]:
        """Return the partitions whose ends were never read."""
        return [each for each in partitions if each not in self._missing]

    def retain_topics(self, topic_ids: Mapping[str, bytes]) -> None:
        """Drop topics that are not among these, or that have another id now."""
        for topic in {partition.topic for partition in self._missing}:
            known = self._ids.get(topic)
            if topic not in topic_ids or known not in (None, topic_ids[topic]):
                self._forget_topic(topic)
        self._ids = dict(topic_ids)

    def _forget_topic(self, topic: str) -> None:
        for partition in [each for each in self._missing if each.topic == topic]:
            self.expected_end -= self._missing.pop(partition)
            self._ends.pop(partition, None)

    def add_partitions(
        self,
        bounds: Mapping[TopicPartition, tuple[int, int]],
        group_offsets: Mapping[TopicPartition, GroupOffset],
        leaderless: Iterable[TopicPartition],
    ) -> bool:
        """Add `unknown_partitions`; return whether the group lacks records of them."""
        before = self.expected_end
        self._add_bounds(bounds, group_offsets)
        self.leaderless = frozenset(self.unknown_partitions(leaderless))
        return self.expected_end > before

    def _add_bounds(
        self,
        bounds: Mapping[TopicPartition, tuple[int, int]],
        group_offsets: Mapping[TopicPartition, GroupOffset],
    ) -> None:
        for partition, (first, end) in bounds.items():
            missing = _missing_offsets(first, end, group_offsets.get(partition))
            self._missing[partition] = missing
            if missing:
                self._ends[partition] = end
                self.expected_end += missing

    def mark_acquired(self, ranges: Iterable[AcquiredRange]) -> None:
        """Forget the partitions whose end these acquired ranges have reached."""
        for each in ranges:
            partition = TopicPartition(each.topic, each.partition)
            if each.last_offset + 1 >= self._end_of(partition):
                del self._ends[partition]

    def mark_progress(
        self, group_offsets: Mapping[TopicPartition, GroupOffset]
    ) -> None:
        """Forget the partitions whose end the group's offsets have reached."""
        for partition in group_offsets.keys() & self._ends.keys():
            each = group_offsets[partition]
            if each.lag == 0 or (each.start_offset or 0) >= self._end_of(partition):
                del self._ends[partition]

    def _end_of(self, partition: TopicPartition) -> float:
        return self._ends.get(partition, inf)


def _missing_offsets(first: int, end: int, group_offset: GroupOffset | None) -> int:
    """Return how many offsets of a log the group still has to deliver.

    The coordinator writes the start offset late, but the lag includes offsets that were
    accepted beyond it: after 100 accepted offsets, Kafka 4.3.0 returns a start of 0 and
    a lag of 0. Both are unknown until something was accepted.
    """
    if group_offset is None or group_offset.start_offset is None:
        return end - first
    rest = end - max(first, group_offset.start_offset)
    return rest if group_offset.lag is None else min(rest, group_offset.lag)


@dataclass(slots=True)
class BatchGrowth:
    """Decides how long Trigger.AvailableNow lets a batch grow before it runs.

    A batch costs Spark some 0.3 s, however small it is; but while it runs, the next one
    grows. A batch is complete when it has `size` offsets, when it has grown for
    MAX_GROWTH_TIME, or when nothing has arrived for GROWTH_PAUSE: other members might
    hold the rest.
    """

    position: int
    size: int
    _grows_since: float = inf

    def is_complete(self, ledger_end: int, idle_since: float, now: float) -> bool:
        count = ledger_end - self.position
        if count > 0:
            self._grows_since = min(self._grows_since, now)
        if count >= self.size:
            return True
        idle = now - idle_since >= GROWTH_PAUSE
        return count > 0 and (idle or now - self._grows_since >= MAX_GROWTH_TIME)


@dataclass(slots=True)
class IdleTimeout:
    """Decides when to stop waiting for a target: after `seconds` without new offsets.

    While producers continue, new offsets always arrive. So the time also runs from the
    moment at which the ledger has reached `expected_end`.
    """

    seconds: float
    expected_end: int
    _reached_at: float = inf

    def is_expired(self, ledger_end: int, idle_since: float, now: float) -> bool:
        if ledger_end >= self.expected_end:
            self._reached_at = min(self._reached_at, now)
        else:
            self._reached_at = inf
        return now - min(idle_since, self._reached_at) >= self.seconds


def plan_tasks(
    ranges: Sequence[AcquiredRange], *, min_tasks: int | None, max_records: int | None
) -> list[list[AcquiredRange]]:
    """Divide a batch into tasks of equal size, also within partitions.

    There is one task per partition, or fewer for a small batch. With `min_tasks` there
    are at least that many, and with `max_records` no task has more offsets than that.
    The same ranges always give the same tasks.
    """
    total = sum(each.size for each in ranges)
    if not total:
        return []
    partitions = {(each.topic, each.partition) for each in ranges}
    count = min(len(partitions), -(-total // MIN_TASK_ROWS))
    if min_tasks is not None:
        count = max(len(partitions), min_tasks)
    if max_records is not None:
        count = max(count, -(-total // max_records))
    return _divide(_join_neighbours(ranges), total, min(count, total))


def _join_neighbours(ranges: Iterable[AcquiredRange]) -> list[AcquiredRange]:
    """Sort ranges by partition and offset, and join adjacent ones."""
    joined: list[AcquiredRange] = []
    for each in sorted(
        ranges, key=lambda t: (t.topic, t.topic_id, t.partition, t.first_offset)
    ):
        last = joined[-1] if joined else None
        if last is not None and _is_followed_by(last, each):
            joined[-1] = last.cut(last.first_offset, each.last_offset)
        else:
            joined.append(each)
    return joined


def _is_followed_by(one: AcquiredRange, other: AcquiredRange) -> bool:
    return (
        one.share_partition == other.share_partition
        and one.last_offset + 1 == other.first_offset
        and one.delivery_count == other.delivery_count
    )


def _divide(
    ranges: Sequence[AcquiredRange], total: int, count: int
) -> list[list[AcquiredRange]]:
    tasks: list[list[AcquiredRange]] = [[] for _ in range(count)]
    done, task = 0, 0
    for each in ranges:
        first = each.first_offset
        while first <= each.last_offset:
            room = total * (task + 1) // count - done
            last = min(each.last_offset, first + room - 1)
            tasks[task].append(each.cut(first, last))
            done += last - first + 1
            first = last + 1
            if done == total * (task + 1) // count:
                task += 1
    return tasks
