"""Which positions a batch covers, and which task reads what of it.

Rule: plain decisions; no clock, no ledger, no Spark.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from sharecons._record import TopicPartition
from sharecons.protocol.admin.models import GroupOffset
from sharecons.spark.ledger import AcquiredRange

__all__ = [
    "AvailableNowTarget",
    "BatchLimits",
    "Gathering",
    "IdleTimeout",
    "plan_tasks",
]

WORTH_A_TASK: Final = 1000
"""Rows below which a task costs more than it saves: starting one takes Spark some
20 ms, in which a task reads ten thousand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """How much one batch may cover, in offsets; None is no limit."""

    most: int | None = None
    least: int | None = None

    def end(self, start: int, held: int, *, overdue: bool) -> int:
        """Give where a batch from `start` ends, if the ledger ends at `held`.

        Fewer than `least` are let wait, until they are `overdue`.
        """
        if held - start < (self.least or 0) and not overdue:
            return start
        return held if self.most is None else min(held, start + self.most)


PAUSE: Final = 0.5
"""Seconds without anything new after which a batch is not made to grow any more."""

LONGEST: Final = 1.0
"""Seconds after which it runs as it is, though more is coming."""


class AvailableNowTarget:
    """What Trigger.AvailableNow is to reach: what the topics held when it began.

    A share group has no position to compare with. A partition is done when the group
    has given us the last offset that its log had then, when it starts behind that, or
    when the group has no lag there. What others of the group hold may never come:
    whoever waits for the goal has `Patience`.

    Partitions whose leader was away have no end yet, and those of new topics and
    partitions none either: `see` adds them once they are known.

    Attributes:
        most: the position that what was lacking at the beginning leads to, if nothing
            newer comes in between.
        leaderless: partitions whose end could not be asked for so far.
    """

    def __init__(
        self,
        bounds: Mapping[TopicPartition, tuple[int, int]],
        standing: Mapping[TopicPartition, GroupOffset],
        position: int,
        *,
        leaderless: Iterable[TopicPartition] = (),
        topic_ids: Mapping[str, bytes] | None = None,
    ) -> None:
        self._ends: dict[TopicPartition, int] = {}
        self._lacked: dict[TopicPartition, int] = {}  # when its end was asked for
        self._ids = dict(topic_ids or {})
        self.most = position
        self.leaderless: frozenset[TopicPartition] = frozenset(leaderless)
        self._add(bounds, standing)

    @property
    def reached(self) -> bool:
        return not self._ends and not self.leaderless

    def unknown(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return those whose ends were never asked for."""
        return [place for place in partitions if place not in self._lacked]

    def keep(self, topic_ids: Mapping[str, bytes]) -> None:
        """Forget topics that are not among these, or have another id now."""
        for topic in {place.topic for place in self._lacked}:
            known = self._ids.get(topic)
            if topic not in topic_ids or known not in (None, topic_ids[topic]):
                self._forget(topic)
        self._ids = dict(topic_ids)

    def _forget(self, topic: str) -> None:
        for place in [each for each in self._lacked if each.topic == topic]:
            self.most -= self._lacked.pop(place)
            self._ends.pop(place, None)

    def see(
        self,
        bounds: Mapping[TopicPartition, tuple[int, int]],
        standing: Mapping[TopicPartition, GroupOffset],
        leaderless: Iterable[TopicPartition],
    ) -> bool:
        """Add what was `unknown` before; return whether the group lacks any of it."""
        before = self.most
        self._add(bounds, standing)
        self.leaderless = frozenset(self.unknown(leaderless))
        return self.most > before

    def _add(
        self,
        bounds: Mapping[TopicPartition, tuple[int, int]],
        standing: Mapping[TopicPartition, GroupOffset],
    ) -> None:
        for place, (first, end) in bounds.items():
            lacking = _lacking(first, end, standing.get(place))
            self._lacked[place] = lacking
            if lacking:
                self._ends[place] = end
                self.most += lacking

    def entered(self, taken: Iterable[AcquiredRange]) -> None:
        """The group gave this."""
        for each in taken:
            place = TopicPartition(each.topic, each.partition)
            if each.last_offset + 1 >= self._end(place):
                del self._ends[place]

    def passed(self, standing: Mapping[TopicPartition, GroupOffset]) -> None:
        """So far is the group now."""
        for place in standing.keys() & self._ends.keys():
            each = standing[place]
            if each.lag == 0 or (each.start_offset or 0) >= self._end(place):
                del self._ends[place]

    def _end(self, place: TopicPartition) -> float:
        return self._ends.get(place, inf)


def _lacking(first: int, end: int, known: GroupOffset | None) -> int:
    """Count the offsets that a group has still to give.

    The lag knows those that were accepted beyond the start, which is written down
    late: after all of 100 offsets were accepted, 4.3.0 tells a start of 0 and a lag
    of 0. Both are unknown as long as nothing was accepted.
    """
    if known is None or known.start_offset is None:
        return end - first
    rest = end - max(first, known.start_offset)
    return rest if known.lag is None else min(rest, known.lag)


@dataclass(slots=True)
class Gathering:
    """How long Trigger.AvailableNow makes a batch grow before it runs.

    A batch costs Spark some 0.3 s, however little is in it; but while it runs, the
    next one grows. One is enough once it has `size` offsets, once it has grown for
    some time, and if nothing more comes: others of the group may hold the rest.
    """

    position: int
    size: int
    _grows_since: float = inf

    def is_enough(self, held: int, idle_since: float, now: float) -> bool:
        gathered = held - self.position
        if gathered > 0:
            self._grows_since = min(self._grows_since, now)
        if gathered >= self.size:
            return True
        idle = now - idle_since >= PAUSE
        return gathered > 0 and (idle or now - self._grows_since >= LONGEST)


@dataclass(slots=True)
class IdleTimeout:
    """How long a goal is waited for: seconds in which nothing comes.

    While producers go on something always comes; so they count as well once as much
    came as was lacking.
    """

    seconds: float
    most: int
    _enough_at: float = inf

    def is_over(self, held: int, idle_since: float, now: float) -> bool:
        if held >= self.most:
            self._enough_at = min(self._enough_at, now)
        else:
            self._enough_at = inf
        return now - min(idle_since, self._enough_at) >= self.seconds


def plan_tasks(
    ranges: Sequence[AcquiredRange], *, least: int | None, most_records: int | None
) -> list[list[AcquiredRange]]:
    """Divide a batch over tasks, evenly, wherever its partitions end.

    As many tasks as partitions of topics if that is worth it, `least` or more if that
    is given, and as many as it takes for none to have more than `most_records`.
    Neighbours in the log stay together, and the same ranges give the same tasks.
    """
    total = sum(each.size for each in ranges)
    if not total:
        return []
    places = {(each.topic, each.partition) for each in ranges}
    count = min(len(places), -(-total // WORTH_A_TASK))
    if least is not None:
        count = max(len(places), least)
    if most_records is not None:
        count = max(count, -(-total // most_records))
    return _divide(_in_order(ranges), total, min(count, total))


def _in_order(ranges: Iterable[AcquiredRange]) -> list[AcquiredRange]:
    """Sort as they lie in the log, and join what touches."""
    joined: list[AcquiredRange] = []
    for each in sorted(
        ranges, key=lambda t: (t.topic, t.topic_id, t.partition, t.first_offset)
    ):
        last = joined[-1] if joined else None
        if last is not None and _touches(last, each):
            joined[-1] = last.cut(last.first_offset, each.last_offset)
        else:
            joined.append(each)
    return joined


def _touches(one: AcquiredRange, other: AcquiredRange) -> bool:
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
