"""What share coordinators keep, put together from the records that they write.

Rule 1: how a snapshot and the updates after it make a state is decided here.
Rule 2: nothing here knows where the records come from, or how they look as bytes.

Theory of operation
-------------------
For each share-partition the coordinator writes a snapshot, which is all of its state,
and then updates, each only what was changed (KIP-932, "Records"). A snapshot makes
what came before it void, and a tombstone makes all of it void. Of an offset that
several batches speak of, the one with the higher delivery count holds, of equal ones
that with the higher state; so updates may be laid over the snapshot in any order, and
all at once in the end. What lies before the start offset is not the group's any more.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import pairwise
from typing import NamedTuple, final

from sharecons.protocol.admin.models import SharePartitionState, StateBatch
from sharecons.protocol.messages import SharePartition

__all__ = [
    "RecordedState",
    "Snapshot",
    "StateKey",
    "StateReplay",
    "Update",
    "combine_batches",
    "state_partition_of",
]


class StateKey(NamedTuple):
    """Whose state a record speaks of."""

    group_id: str
    share_partition: SharePartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All that is kept of a share-partition; `start_offset` is None before it began."""

    state_epoch: int
    leader_epoch: int
    start_offset: int | None
    batches: tuple[StateBatch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """What was changed; None where it was not."""

    leader_epoch: int | None
    start_offset: int | None
    batches: tuple[StateBatch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedState:
    """A state, and when it was last written, in milliseconds since the epoch."""

    state: SharePartitionState
    leader_epoch: int
    last_written: int


@dataclass(slots=True)
class _Replayed:
    """A snapshot, and what was written after it."""

    snapshot: Snapshot
    updated: list[StateBatch]
    last_written: int


@final
class StateReplay:
    """The states of share-partitions, told record by record as they lie in the log."""

    def __init__(self) -> None:
        self._records: dict[StateKey, _Replayed] = {}

    def apply(
        self, key: StateKey, record: Snapshot | Update | None, timestamp: int
    ) -> None:
        """Take in a record; None is a tombstone: the state is gone."""
        if record is None:
            self._records.pop(key, None)
        elif isinstance(record, Snapshot):
            self._records[key] = _Replayed(record, list(record.batches), timestamp)
        else:
            self._update(key, record, timestamp)

    def state(self, key: StateKey) -> RecordedState | None:
        """Give what is kept of a share-partition, or None if nothing is."""
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

    def _update(self, key: StateKey, update: Update, timestamp: int) -> None:
        found = self._records.get(key)
        if found is None:
            # Its snapshot is not in the log any more, or never was: brokers take the
            # update as it is, too.
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


_NO_SNAPSHOT = Snapshot(state_epoch=0, leader_epoch=0, start_offset=None, batches=())


def combine_batches(
    batches: Iterable[StateBatch], start_offset: int
) -> tuple[StateBatch, ...]:
    """Lay batches over each other: in order, apart, and none before the start offset.

    Neighbours that are alike become one.
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
    """Cut at every offset where a batch begins or ends, and give who holds there."""
    remaining = sorted(
        (batch for batch in batches if batch.last_offset >= start_offset),
        key=lambda batch: batch.first_offset,
    )
    edges = {max(batch.first_offset, start_offset) for batch in remaining}
    edges |= {batch.last_offset + 1 for batch in remaining}
    cuts = sorted(edges)
    # Those that began, the heaviest first; the number keeps batches out of comparing.
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
    """Give the partition of the state topic that a coordinator's key goes to.

    Brokers hash the key as Java does a string, and take the number without its sign.
    """
    hashed = 0
    units = coordinator_key.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        hashed = (31 * hashed + (high << 8 | low)) & 0xFFFFFFFF
    signed = hashed - (hashed >> 31 << 32)
    # The one number that Java has no positive one for counts as 0.
    return 0 if signed == -0x80000000 else abs(signed) % partitions
