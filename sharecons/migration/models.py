"""Migration plans: the new offset of each partition, and its effects.

Rule 1: plain values; `offset_migration` computes them.
Rule 2: counts are in offsets. Some offsets have no record (transaction markers,
compacted records), so counts are upper bounds of records.
"""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from sharecons._record import TopicPartition
from sharecons.errors import Error
from sharecons.protocol.admin.models import LogBounds, StateBatch

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
    """The direction of a migration."""

    TO_SHARE_GROUP = "to-share-group"
    TO_CONSUMER_GROUP = "to-consumer-group"


class MissingPolicy(enum.Enum):
    """The policy for partitions in which the source has no position."""

    LEAVE = "leave"
    """Leave the target unchanged: it starts at its position, or by its offset reset."""
    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledAbove:
    """The settled offsets above a share group's start offset.

    `batches` are the share coordinator's; None if they cannot be read. Then `count` is
    computed from the lag (KIP-1226), if possible.
    """

    batches: tuple[StateBatch, ...] | None
    count: int | None = None


NOTHING_ABOVE: Final = SettledAbove(batches=(), count=0)
"""For consumer groups, which commit in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPosition:
    """A group's position in a partition: all offsets before `offset` are settled."""

    offset: int
    above: SettledAbove = NOTHING_ABOVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """The plan for one partition.

    Attributes:
        source_offset: the source's position, or None.
        target_offset: the target's current position, or None.
        offset: the target's new position; None leaves it unchanged.
        log: the partition's log.
        twice: number of offsets that the source settled and the target delivers
            again: the sum of `acknowledged` and `archived`. None: unknown.
        acknowledged: number of offsets in `twice` that were acknowledged. None:
            unknown.
        archived: number of offsets in `twice` that were archived. None: unknown.
        rewound: number of offsets that the target itself settled and delivers again.
            None: unknown.
        missed: number of offsets that the source has not settled and the target does
            not deliver. None: unknown.
        notes: sentences that explain these numbers.
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
        """False if the target has the new position already, or is left unchanged."""
        return self.offset is not None and self.offset != self.target_offset


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """A migration plan for all partitions.

    Attributes:
        source, target: group ids.
        direction: the type of the target.
        moves: the plan of each partition.
        errors: partitions that cannot be planned, with their errors.
        obstacles: reasons why the plan cannot be executed: groups with members.
        missing: policy for partitions in which the source has no position.
    """

    source: str
    target: str
    direction: Direction
    moves: Mapping[TopicPartition, Move]
    errors: Mapping[TopicPartition, Error]
    obstacles: tuple[Error, ...] = ()
    missing: MissingPolicy = MissingPolicy.LEAVE

    @property
    def twice(self) -> int | None:
        """Number of offsets delivered twice, in all partitions; None: unknown."""
        return _sum(move.twice for move in self.moves.values())

    @property
    def missed(self) -> int | None:
        """Number of offsets never delivered, in all partitions; None: unknown."""
        return _sum(move.missed for move in self.moves.values())

    @property
    def rewound(self) -> int | None:
        """Number of offsets that the target delivers again, in all partitions."""
        return _sum(move.rewound for move in self.moves.values())

    @property
    def offsets(self) -> dict[TopicPartition, int]:
        """The new positions of the target, of partitions that are moved."""
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
