"""Plans to move over, as values: what becomes of each partition, and what it costs.

Rule 1: these are plain values; what they hold is decided in `moving_over`.
Rule 2: counts are of offsets. Some hold no record (the marks that end transactions,
what compaction removed), so of records they are the most that there can be.
"""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from sharecons._record import TopicPartition
from sharecons.errors import Error
from sharecons.protocol.admin.models import StateBatch

__all__ = [
    "NOTHING_ABOVE",
    "Direction",
    "GroupPosition",
    "LogBounds",
    "Migration",
    "MissingPolicy",
    "Move",
    "SettledAbove",
]


class Direction(enum.Enum):
    """Which way a place is moved."""

    TO_SHARE_GROUP = "to-share-group"
    TO_CONSUMER_GROUP = "to-consumer-group"


class MissingPolicy(enum.Enum):
    """What becomes of partitions in which the source has no place."""

    LEAVE = "leave"
    """The target begins as it would have begun: at its place, or by its reset."""
    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBounds:
    """The first offset of a partition's log, and the next one to be written."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledAbove:
    """What is settled above a share group's start offset.

    `batches` are the share coordinator's, None where it may not be asked; then the lag
    (KIP-1226) tells how many they are. Both are None where nobody tells.
    """

    batches: tuple[StateBatch, ...] | None
    count: int | None = None


NOTHING_ABOVE: Final = SettledAbove(batches=(), count=0)
"""Of consumer groups: they settle in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPosition:
    """Where a group stands in a partition: all before `offset` is settled."""

    offset: int
    above: SettledAbove = NOTHING_ABOVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What becomes of one partition.

    Attributes:
        source_offset: where the source stands; None if it has no place.
        target_offset: where the target stands now; None if it has no place.
        offset: where the target is to begin; None leaves it as it is.
        log: the partition's log.
        twice: offsets that the source settled and the target delivers again: the sum
            of `acknowledged` and `archived`. None: unknown.
        acknowledged: of these, those that were accepted. None: unknown.
        archived: of these, those that were rejected or given up. None: unknown.
        rewound: offsets that the target itself had settled and delivers again. None:
            unknown.
        missed: offsets that the source has not settled and the target does not
            deliver. None: unknown.
        notes: sentences about all this.
    """

    source_offset: int | None
    target_offset: int | None
    offset: int | None
    log: LogBounds
    twice: int | None
    acknowledged: int | None
    archived: int | None
    rewound: int | None
    missed: int | None
    notes: tuple[str, ...] = ()

    @property
    def is_needed(self) -> bool:
        """False where the target stands there already, or is to stay as it is."""
        return self.offset is not None and self.offset != self.target_offset


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """A plan: what becomes of each partition, and what stands in the way.

    Attributes:
        source, target: group ids.
        direction: what kind the target is.
        moves: by partition.
        errors: partitions of which nothing can be said, and why.
        obstacles: what forbids all of it: members of the groups.
        unplaced: what was chosen for partitions in which the source has no place.
    """

    source: str
    target: str
    direction: Direction
    moves: Mapping[TopicPartition, Move]
    errors: Mapping[TopicPartition, Error]
    obstacles: tuple[Error, ...] = ()
    unplaced: MissingPolicy = MissingPolicy.LEAVE

    @property
    def twice(self) -> int | None:
        """Offsets delivered twice, of all partitions; None: not all is known."""
        return _sum(move.twice for move in self.moves.values())

    @property
    def missed(self) -> int | None:
        """Offsets not delivered at all, of all partitions; None: not all is known."""
        return _sum(move.missed for move in self.moves.values())

    @property
    def rewound(self) -> int | None:
        """Offsets that the target settled and delivers again, of all partitions."""
        return _sum(move.rewound for move in self.moves.values())

    @property
    def offsets(self) -> dict[TopicPartition, int]:
        """Where the target is to begin, of the partitions that are moved."""
        return {
            key: one.offset
            for key, one in self.moves.items()
            if one.offset is not None and one.is_needed
        }


def _sum(numbers: Iterable[int | None]) -> int | None:
    total = 0
    for number in numbers:
        if number is None:
            return None
        total += number
    return total
