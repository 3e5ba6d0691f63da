"""Readings: what was known of share groups at one time."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from sharecons._record import TopicPartition
from sharecons.errors import Error
from sharecons.protocol.diagnosis.offset_states import (
    UNSETTLED,
    OffsetRange,
    OffsetStatus,
    Oldest,
    window_of,
)

__all__ = [
    "GroupSnapshot",
    "PartitionSnapshot",
    "Snapshot",
    "is_chosen",
    "unreachable",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSnapshot:
    """A partition of a group; None stands for what was not told.

    Attributes:
        end_offset: of the log, the next to be written.
        lag: records not settled (KIP-1226).
        stretches: what stands how, from the start offset to the end; None where the
            state may not be read.
        oldest: the first record that is not settled; None where there is none, or it
            cannot be read.
        window_limit: offsets that may be in flight; None if configs cannot be read.
        stalled: by reason, whether the partition stands still for it. A reason is
            missing if what shows it could not be read.
    """

    start_offset: int
    end_offset: int | None = None
    lag: int | None = None
    ranges: tuple[OffsetRange, ...] | None = None
    oldest: Oldest | None = None
    window_limit: int | None = None
    stalled: Mapping[str, bool] = field(default_factory=dict)

    @property
    def window(self) -> int | None:
        """Offsets from the start to the last that was written; None if unknown."""
        if self.ranges is None:
            return None
        return window_of(self.start_offset, self.ranges)

    def count(self, *standings: OffsetStatus) -> int | None:
        """Return how many offsets stand so; None if unknown."""
        if self.ranges is None:
            return None
        return sum(e.count for e in self.ranges if e.status in standings)

    @property
    def unsettled(self) -> tuple[OffsetRange, ...] | None:
        """The stretches that are not settled; None if nobody tells.

        Without the state it is known where they begin: what the group has begun to
        read ends, as far as it is settled in order, at its start offset.
        """
        if self.ranges is not None:
            return tuple(each for each in self.ranges if each.status in UNSETTLED)
        if self.end_offset is None:
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
        """Seconds since the oldest unsettled record was written, 0 if there is none."""
        if self.oldest is not None:
            # A producer's clock may be ahead of ours.
            return max(0.0, at - self.oldest.timestamp / 1000)
        return 0.0 if self.unsettled == () else None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSnapshot:
    """A group; `state` and `members` are None if its coordinator did not tell."""

    state: str | None
    members: int | None
    partitions: Mapping[TopicPartition, PartitionSnapshot] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What one collection found.

    Attributes:
        at: when, in seconds since the epoch.
        duration: seconds that it took.
        groups: by id.
        failures: what went wrong, counted by what was asked.
        complaints: why, each reason once.
        reached: False if the cluster did not answer at all.
    """

    at: float
    duration: float
    groups: Mapping[str, GroupSnapshot] = field(default_factory=dict)
    error_counts: Mapping[str, int] = field(default_factory=dict)
    error_messages: tuple[str, ...] = ()
    reached: bool = True


def unreachable(error: Error) -> Snapshot:
    """Return readings without groups: no broker answers any more."""
    return Snapshot(
        at=time.time(),
        duration=0.0,
        error_counts={"cluster": 1},
        error_messages=(str(error),),
        reached=False,
    )


def is_chosen(group_id: str, patterns: tuple[str, ...]) -> bool:
    """Tell whether a group fits one of the patterns; none choose every group."""
    return not patterns or any(fnmatchcase(group_id, each) for each in patterns)
