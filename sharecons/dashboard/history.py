"""The history of lag and rate since the process started, for lines and estimates.

Each collection adds a point. A series has a number of points at most: when it is full,
every second point of its older half goes, so that a day takes no more memory than an
hour, and the newest points stay.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from sharecons._record import TopicPartition
from sharecons.group_state.collector import CollectedGroups
from sharecons.group_state.group_states import GroupState, PartitionState

__all__ = ["MAX_POINTS", "History", "Point", "Rates", "Series"]

MAX_POINTS: Final = 360
PARTITION_POINTS: Final = 60
"""Points of a partition: its line is small, and there can be thousands."""

RATE_SECONDS: Final = 60.0
"""Seconds over which a rate is computed, or since the first collection if less."""


class Point(NamedTuple):
    """The records of a topic or partition at one time.

    Attributes:
        at: seconds since the epoch.
        lag: None if it could not be read.
        settled, written: records since the first point.
    """

    at: float
    lag: int | None
    settled: int
    written: int


class Rates(NamedTuple):
    """Records per second, and when the lag will be 0.

    Attributes:
        drained_in: seconds; None if the lag does not become less, or is not known.
    """

    settled: float
    written: float
    drained_in: float | None

    @classmethod
    def of(cls, settled: float, written: float, lag: int | None) -> "Rates":
        """Return rates, with the time in which they drain a lag."""
        progress = settled - written
        drained_in = None
        if lag == 0:
            drained_in = 0.0
        elif lag is not None and progress > 0:
            drained_in = lag / progress
        return cls(settled, written, drained_in)


class Series:
    """The points of a topic or a partition, the oldest first."""

    def __init__(self, max_points: int = MAX_POINTS) -> None:
        self._max_points = max_points
        self.points: list[Point] = []
        self._before: Mapping[int, tuple[int, int]] = {}

    def add(self, at: float, partitions: Mapping[int, PartitionState]) -> None:
        """Add a collection; a partition that is new, or unknown, adds no records."""
        now = {number: _counts(one) for number, one in partitions.items()}
        known = {number: each for number, each in now.items() if each is not None}
        settled = written = 0
        for number, (settled_now, written_now) in known.items():
            if number in self._before:
                settled += max(0, settled_now - self._before[number][0])
                written += max(0, written_now - self._before[number][1])
        self._before = {**self._before, **known}
        last = self.points[-1] if self.points else Point(at, None, 0, 0)
        lag = None
        if len(known) == len(now):
            lag = sum(one.lag or 0 for one in partitions.values())
        self.points.append(
            Point(at, lag, last.settled + settled, last.written + written)
        )
        if len(self.points) > self._max_points:
            half = self._max_points // 2
            self.points = self.points[:half:2] + self.points[half:]

    @property
    def rates(self) -> Rates | None:
        """The rates of the last minute; None before the second point."""
        if len(self.points) < 2:
            return None
        last = self.points[-1]
        first = next(
            (each for each in self.points if last.at - each.at <= RATE_SECONDS), last
        )
        if first is last:
            first = self.points[-2]
        seconds = last.at - first.at
        if seconds <= 0:
            return None
        settled = (last.settled - first.settled) / seconds
        written = (last.written - first.written) / seconds
        return Rates.of(settled, written, last.lag)


class History:
    """The series of all topics, by group and topic, and of open groups' partitions."""

    def __init__(self) -> None:
        self.topics: dict[str, dict[str, Series]] = {}
        self.partitions: dict[tuple[str, TopicPartition], Series] = {}
        self._watched: frozenset[str] = frozenset()

    def watch(self, groups: Iterable[str]) -> None:
        """Keep a series of each partition of these groups, and of no others."""
        self._watched = frozenset(groups)
        self.partitions = {
            key: each
            for key, each in self.partitions.items()
            if key[0] in self._watched
        }

    def add(self, collected: CollectedGroups) -> None:
        """Add a collection; drop groups and topics that do not exist any more."""
        if not collected.reached:
            return
        for group_id, group in collected.groups.items():
            by_topic: dict[str, dict[int, PartitionState]] = {}
            for key, one in group.partitions.items():
                by_topic.setdefault(key.topic, {})[key.partition] = one
                if group_id in self._watched:
                    series = self.partitions.get((group_id, key))
                    if series is None:
                        series = Series(PARTITION_POINTS)
                        self.partitions[group_id, key] = series
                    series.add(collected.at, {key.partition: one})
            of_group = self.topics.setdefault(group_id, {})
            for topic, partitions in by_topic.items():
                series = of_group.setdefault(topic, Series())
                series.add(collected.at, partitions)
            if "offsets" not in group.unread:
                for topic in of_group.keys() - by_topic.keys():
                    del of_group[topic]
        if "groups" not in collected.error_counts:
            self._forget(collected)

    def _forget(self, collected: CollectedGroups) -> None:
        groups = collected.groups
        self.topics = {key: each for key, each in self.topics.items() if key in groups}
        self.partitions = {
            (group_id, key): each
            for (group_id, key), each in self.partitions.items()
            if group_id in groups and _can_exist(key, groups[group_id])
        }


def _can_exist(partition: TopicPartition, group: GroupState) -> bool:
    return partition in group.partitions or "offsets" in group.unread


def _counts(one: PartitionState) -> tuple[int, int] | None:
    """Return how many offsets are settled and written; None if that is unknown."""
    if one.lag is None or one.end_offset is None:
        return None
    return one.end_offset - one.lag, one.end_offset
