"""The share coordinator's state of one share partition, which outlives its leader.

The leader writes the ranges that it changes. The coordinator merges them into its own:
where two overlap, the higher delivery count wins, then the higher state; equal
neighbours are joined; ranges before the start offset are removed (Kafka's persister;
KIP-932, "Share group state"). So the boundaries of batches are lost here, and records
that were acquired but never released are not part of the state.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from sharecons.testing.broker.share.deliveries import StateBatch
from sharecons.testing.broker.wall_clock import milliseconds

__all__ = ["UNINITIALIZED", "CoordinatorState", "merge"]

UNINITIALIZED: Final = -1


@dataclass(slots=True)
class CoordinatorState:
    """The state of one share partition, as ReadShareGroupState returns it."""

    start_offset: int = UNINITIALIZED
    state_epoch: int = 0
    leader_epoch: int = 0
    delivery_complete: int = -1
    """Final records from the start offset on (KIP-1226); -1: unknown."""
    batches: list[StateBatch] = field(default_factory=list)
    written_ms: int = field(default_factory=milliseconds, compare=False)
    """The time of its last record."""

    def note_leader_epoch(self, leader_epoch: int) -> None:
        """Store the epoch of a reading leader; older leaders are fenced from now on."""
        if leader_epoch > self.leader_epoch:
            self.leader_epoch = leader_epoch
            self.written_ms = milliseconds()

    def write(
        self, start_offset: int, delivery_complete: int, changes: Iterable[StateBatch]
    ) -> None:
        self.start_offset = start_offset
        self.delivery_complete = delivery_complete
        self.batches = merge(self.batches, changes, start_offset)
        self.written_ms = milliseconds()

    def reset(self, start_offset: int) -> None:
        """Reset the state to an offset, at an administrator's request."""
        self.state_epoch += 1
        self.start_offset = start_offset
        self.delivery_complete = 0 if start_offset != UNINITIALIZED else -1
        self.batches = []
        self.written_ms = milliseconds()


def merge(
    batches: list[StateBatch], changes: Iterable[StateBatch], start_offset: int
) -> list[StateBatch]:
    """Merge ranges into an ordered list without overlaps."""
    ranges = [*batches, *changes]
    pieces = sorted(
        batch._replace(first_offset=max(batch.first_offset, start_offset))
        for batch in ranges
        if batch.last_offset >= start_offset
    )
    flat: list[StateBatch] = []
    for piece in pieces:
        _overlay(flat, piece)
    return _merge_adjacent(flat)


def _overlay(flat: list[StateBatch], piece: StateBatch) -> None:
    """Merge a range into those before it, which are in order and begin no later."""
    above: list[StateBatch] = []
    while flat and flat[-1].last_offset >= piece.first_offset:
        above.append(flat.pop())
    first = piece.first_offset
    for old in reversed(above):
        if old.first_offset < first:
            flat.append(old._replace(last_offset=first - 1))
        overlap = min(old.last_offset, piece.last_offset)
        if first <= overlap:
            winner = max(old, piece, key=_precedence)
            flat.append(winner._replace(first_offset=first, last_offset=overlap))
        if old.last_offset > overlap:
            rest = max(old.first_offset, overlap + 1)
            flat.append(old._replace(first_offset=rest))
        first = max(first, overlap + 1)
    if first <= piece.last_offset:
        flat.append(piece._replace(first_offset=first))


def _precedence(batch: StateBatch) -> tuple[int, int]:
    return batch.delivery_count, batch.state


def _merge_adjacent(batches: list[StateBatch]) -> list[StateBatch]:
    joined: list[StateBatch] = []
    for batch in batches:
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.last_offset + 1 == batch.first_offset
            and _precedence(last) == _precedence(batch)
        ):
            joined[-1] = last._replace(last_offset=batch.last_offset)
        else:
            joined.append(batch)
    return joined
