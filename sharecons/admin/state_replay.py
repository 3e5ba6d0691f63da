"""Replay of the records in which share coordinators store state.

Rule 1: how a snapshot and later updates combine is decided here.
Rule 2: nothing here depends on where records are read, or on their format.

Theory of operation
-------------------
For each share-partition the coordinator writes a snapshot of the whole state, and then
updates with the changes only (KIP-932, "Records"). A snapshot replaces all earlier
records; a tombstone deletes the state. If several batches contain an offset, the
highest delivery count applies, and the highest state among batches with this count. So
the order of updates does not matter, and they are combined once at the end. Offsets
before the start offset are dropped.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import pairwise
from typing import final

from sharecons.protocol.admin.models import SharePartitionState, StateBatch
from sharecons.protocol.admin.state_records import StateKey, StateSnapshot, StateUpdate

__all__ = [
    "RecordedState",
    "StateReplay",
    "combine_batches",
    "state_partition_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedState:
    """A state; `last_written` is in milliseconds since the epoch."""

    state: SharePartitionState
    leader_epoch: int
    last_written: int


@dataclass(slots=True)
class _Replayed:
    """A snapshot, with the batches of later updates."""

    snapshot: StateSnapshot
    updated: list[StateBatch]
    last_written: int


@final
class StateReplay:
    """The states of share-partitions, from their records in log order."""

    def __init__(self) -> None:
        self._records: dict[StateKey, _Replayed] = {}

    def apply(
        self, key: StateKey, record: StateSnapshot | StateUpdate | None, timestamp: int
    ) -> None:
        """Apply a record; None is a tombstone, which deletes the state."""
        if record is None:
            self._records.pop(key, None)
        elif isinstance(record, StateSnapshot):
            self._records[key] = _Replayed(record, list(record.batches), timestamp)
        else:
            self._update(key, record, timestamp)

    def state(self, key: StateKey) -> RecordedState | None:
        """Return the state of a share-partition, or None if there is none."""
        found = self._records.get(key)
        if found is None:
            return None
        snapshot = found.snapshot
        state = SharePartitionState(
            start_offset=snapshot.start_offset,
            state_epoch=snapshot.state_epoch,
            batches=combine_batches(found.updated, snapshot.start_offset or 0),
        )
        return RecordedState(
            state=state,
            leader_epoch=snapshot.leader_epoch,
            last_written=found.last_written,
        )

    def _update(self, key: StateKey, update: StateUpdate, timestamp: int) -> None:
        found = self._records.get(key)
        if found is None:
            # The log has no snapshot of it; brokers apply the update nevertheless.
            found = _Replayed(_NO_SNAPSHOT, [], timestamp)
            self._records[key] = found
        snapshot = found.snapshot
        if update.start_offset is not None:
            snapshot = replace(snapshot, start_offset=update.start_offset)
        if update.leader_epoch is not None:
            snapshot = replace(snapshot, leader_epoch=update.leader_epoch)
        found.snapshot = snapshot
        found.updated += update.batches
        found.last_written = timestamp


_NO_SNAPSHOT = StateSnapshot(
    state_epoch=0, leader_epoch=0, start_offset=None, batches=()
)


def combine_batches(
    batches: Iterable[StateBatch], start_offset: int
) -> tuple[StateBatch, ...]:
    """Combine overlapping batches into ordered, disjoint ones from `start_offset`.

    Adjacent batches with the same state and delivery count are merged.
    """
    joined: list[StateBatch] = []
    for batch in _split_batches(batches, start_offset):
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.last_offset + 1 == batch.first_offset
            and _precedence(last) == _precedence(batch)
        ):
            joined[-1] = replace(last, last_offset=batch.last_offset)
        else:
            joined.append(batch)
    return tuple(joined)


def _split_batches(
    batches: Iterable[StateBatch], start_offset: int
) -> Iterator[StateBatch]:
    """Split at each start and end of a batch; yield the batch that applies there."""
    remaining = sorted(
        (batch for batch in batches if batch.last_offset >= start_offset),
        key=lambda batch: batch.first_offset,
    )
    edges = {max(batch.first_offset, start_offset) for batch in remaining}
    edges |= {batch.last_offset + 1 for batch in remaining}
    cuts = sorted(edges)
    # Started batches by precedence; the index avoids comparing batches themselves.
    open_: list[tuple[tuple[int, int], int, StateBatch]] = []
    started = 0
    for first, end in pairwise(cuts):
        while started < len(remaining) and remaining[started].first_offset <= first:
            count, state = _precedence(remaining[started])
            heappush(open_, ((-count, -state), started, remaining[started]))
            started += 1
        while open_ and open_[0][2].last_offset < first:
            heappop(open_)
        if open_:
            yield replace(open_[0][2], first_offset=first, last_offset=end - 1)


def _precedence(batch: StateBatch) -> tuple[int, int]:
    return batch.delivery_count, batch.state


def state_partition_of(coordinator_key: str, partitions: int) -> int:
    """Return the partition of the state topic that a coordinator key maps to.

    Brokers use the absolute value of the key's Java string hash.
    """
    hashed = 0
    units = coordinator_key.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        hashed = (31 * hashed + (high << 8 | low)) & 0xFFFFFFFF
    signed = hashed - (hashed >> 31 << 32)
    # Like Kafka's Utils.abs, since Java has no absolute value of Integer.MIN_VALUE.
    return 0 if signed == -0x80000000 else abs(signed) % partitions
