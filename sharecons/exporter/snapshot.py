"""Snapshots: the state of share groups at one time."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

from sharecons._record import TopicPartition
from sharecons.errors import Error
from sharecons.inspection.diagnosis.offset_states import (
    UNSETTLED,
    OffsetRange,
    OffsetStatus,
    OldestRecord,
    window_of,
)
from sharecons.spark.backlog import LedgerBacklog

__all__ = [
    "ErrorSource",
    "ExportedGroup",
    "ExportedPartition",
    "Snapshot",
    "is_chosen",
    "unreachable",
]

ErrorSource = Literal[
    "cluster",
    "groups",
    "offsets",
    "logs",
    "states",
    "configs",
    "records",
    "topics",
    "ledgers",
]
"""The data that an error kept the exporter from reading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedPartition:
    """A partition of a group; None means unknown.

    Attributes:
        start_offset: None if the group has settled nothing: none is stored.
        first_offset: where the group begins then; None if unknown.
        members: ids of the members that have the partition assigned.
        end_offset: the next offset to be written to the log.
        lag: unsettled records (KIP-1226).
        ranges: the status of all offsets, from the start offset to the end; None if
            the state cannot be read.
        oldest: the oldest unsettled record; None if there is none, or it cannot be
            read.
        window_limit: maximum offsets in flight; None if configs cannot be read.
        stalled: by reason, whether the partition is stalled. A reason is missing if
            the data for it could not be read.
    """

    start_offset: int | None
    first_offset: int | None = None
    members: tuple[str, ...] = ()
    end_offset: int | None = None
    lag: int | None = None
    ranges: tuple[OffsetRange, ...] | None = None
    oldest: OldestRecord | None = None
    window_limit: int | None = None
    stalled: Mapping[str, bool] = field(default_factory=dict)

    @property
    def window(self) -> int | None:
        """Offsets from the start to the last in the state; None if unknown."""
        if self.ranges is None:
            return None
        if self.start_offset is None:
            return 0
        return window_of(self.start_offset, self.ranges)

    def count(self, *statuses: OffsetStatus) -> int | None:
        """Return the number of offsets with these statuses; None if unknown."""
        if self.ranges is None:
            return None
        return sum(e.count for e in self.ranges if e.status in statuses)

    @property
    def unsettled(self) -> tuple[OffsetRange, ...] | None:
        """The unsettled ranges; None if unknown.

        Without the state, they are estimated from the lag: all offsets from the start
        offset to the end of the log.
        """
        if self.ranges is not None:
            return tuple(each for each in self.ranges if each.status in UNSETTLED)
        if self.end_offset is None or self.start_offset is None:
            return None
        if self.lag == 0 or self.end_offset <= self.start_offset:
            return ()
        last = self.end_offset - 1
        return (
            OffsetRange(
                first_offset=self.start_offset,
                last_offset=last,
                status=OffsetStatus.OPEN,
            ),
        )

    def age(self, at: float) -> float | None:
        """Seconds since the oldest unsettled record was written, 0 if there is none.

        None if unknown, as the age of a record without a timestamp is.
        """
        if self.oldest is not None:
            age = self.oldest.age(at)
            # A producer's clock can be ahead.
            return None if age is None else max(0.0, age)
        return 0.0 if self.unsettled == () else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedGroup:
    """A group; `state` and `members` are None if it could not be described.

    Attributes:
        missing_topics: by topic that members subscribe to, whether it does not exist;
            without topics that could not be described.
    """

    state: str | None
    members: int | None
    missing_topics: Mapping[str, bool] = field(default_factory=dict)
    partitions: Mapping[TopicPartition, ExportedPartition] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The result of one collection.

    Attributes:
        at: time, in seconds since the epoch.
        duration: in seconds.
        groups: by id.
        ledgers: the backlogs of Spark queries, by the location of the ledger.
        error_counts: number of errors, by what could not be read.
        error_messages: without duplicates.
        reached: False if no broker responded.
    """

    at: float
    duration: float
    groups: Mapping[str, ExportedGroup] = field(default_factory=dict)
    ledgers: Mapping[str, LedgerBacklog] = field(default_factory=dict)
    error_counts: Mapping[ErrorSource, int] = field(default_factory=dict)
    error_messages: tuple[str, ...] = ()
    reached: bool = True


def unreachable(error: Error) -> Snapshot:
    """Return a snapshot without groups, for a cluster that does not respond."""
    return Snapshot(
        at=time.time(),
        duration=0.0,
        error_counts={"cluster": 1},
        error_messages=(str(error),),
        reached=False,
    )


def is_chosen(group_id: str, patterns: tuple[str, ...]) -> bool:
    """Return True if a group id matches one of the patterns, or there are none."""
    return not patterns or any(fnmatchcase(group_id, each) for each in patterns)
