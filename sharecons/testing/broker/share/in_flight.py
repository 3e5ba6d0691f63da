"""The records in flight of a share partition, from its start offset to its end offset.

They are stored as Kafka's leaders store them, since this is visible to clients: in the
batches in which they were first acquired. All records of a batch share one delivery
until a part of them changes; afterwards each offset has its own.

State that was read from the coordinator can have gaps: records that an earlier leader
had acquired but never written. A gap before the last offset read is filled again;
any later gap is one in the log itself.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import NamedTuple

from sharecons.testing.broker.share.deliveries import (
    NEVER,
    Delivery,
    State,
    StateBatch,
)

__all__ = ["InFlightBatch", "Run", "Window"]


class Run(NamedTuple):
    """Neighbours of one batch that share a delivery."""

    first_offset: int
    last_offset: int
    delivery: Delivery

    @property
    def length(self) -> int:
        return self.last_offset - self.first_offset + 1


class InFlightBatch:
    """A batch of records in flight."""

    __slots__ = (
        "_final_count",
        "batch_delivery",
        "first_offset",
        "last_offset",
        "offset_deliveries",
    )

    def __init__(self, first_offset: int, last_offset: int, delivery: Delivery) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.batch_delivery: Delivery | None = delivery
        """The delivery of all records, while it is the same."""
        self.offset_deliveries: list[Delivery] = []
        """The delivery of each offset, after that."""
        self._final_count = 0

    @property
    def length(self) -> int:
        return self.last_offset - self.first_offset + 1

    @property
    def first_available(self) -> int | None:
        if self.batch_delivery is not None:
            is_free = self.batch_delivery.state is State.AVAILABLE
            return self.first_offset if is_free else None
        for offset, delivery in enumerate(self.offset_deliveries, self.first_offset):
            if delivery.state is State.AVAILABLE:
                return offset
        return None

    @property
    def locked_until(self) -> float:
        """The time at which the first lock ends."""
        if self.batch_delivery is not None:
            return self.batch_delivery.locked_until
        return min(delivery.locked_until for delivery in self.offset_deliveries)

    def split(self) -> None:
        """Store a separate delivery for each offset."""
        if self.batch_delivery is not None:
            self.offset_deliveries = [self.batch_delivery] * self.length
            self.batch_delivery = None

    def delivery_at(self, offset: int) -> Delivery:
        if self.batch_delivery is not None:
            return self.batch_delivery
        return self.offset_deliveries[offset - self.first_offset]

    def runs(self, first_offset: int, last_offset: int) -> Iterator[Run]:
        """Yield the deliveries between two offsets, both included."""
        first = max(first_offset, self.first_offset)
        last = min(last_offset, self.last_offset)
        if self.batch_delivery is not None:
            if first <= last:
                yield Run(first, last, self.batch_delivery)
            return
        while first <= last:
            delivery = self.offset_deliveries[first - self.first_offset]
            end = first + 1
            while (
                end <= last
                and self.offset_deliveries[end - self.first_offset] is delivery
            ):
                end += 1
            yield Run(first, end - 1, delivery)
            first = end

    def set_delivery(self, run: Run) -> None:
        """Set the delivery of the whole batch, or of some offsets of a split one."""
        if self.batch_delivery is not None:
            assert run.length == self.length, "a part of a batch that was not split"
            self.batch_delivery = run.delivery
        else:
            at = run.first_offset - self.first_offset
            self.offset_deliveries[at : at + run.length] = [run.delivery] * run.length

    def final_through(self) -> int:
        """Return the last of the leading final offsets."""
        if self.batch_delivery is not None:
            is_done = self.batch_delivery.state.is_final
            return self.last_offset if is_done else self.first_offset - 1
        # Final states do not change: the search continues where it ended.
        while (
            self._final_count < len(self.offset_deliveries)
            and self.offset_deliveries[self._final_count].state.is_final
        ):
            self._final_count += 1
        return self.first_offset + self._final_count - 1


class Window:
    """All batches in flight, in order, with the start and end offset."""

    def __init__(self, start_offset: int, batches: Iterable[StateBatch] = ()) -> None:
        self.start_offset = start_offset
        self.end_offset = start_offset
        """The last offset in flight; if there is none, the next to be fetched."""
        self.batches = [
            InFlightBatch(first, last, Delivery(state, count))
            for first, last, state, count in batches
        ]
        self.complete_count = sum(
            batch.length
            for batch in self.batches
            if batch.delivery_at(batch.first_offset).state.is_final
        )
        """Final records in flight, which wait for those before them."""
        self._read_gap: int | None = None
        self._read_through = 0
        self._may_have_available = bool(self.batches)
        """Whether any record in flight might be available."""
        if self.batches:
            self.end_offset = self._read_through = self.batches[-1].last_offset
            self._read_gap = self._first_gap()
            self.advance_start()

    @property
    def count(self) -> int:
        """The number of offsets in flight, which the limit of locks applies to."""
        return self.end_offset - self.start_offset + 1 if self.batches else 0

    @property
    def read_gap(self) -> int | None:
        """The start of the first gap that must be filled."""
        return self._read_gap if self.end_offset == self._read_through else None

    @property
    def locked_until(self) -> float:
        return min((batch.locked_until for batch in self.batches), default=NEVER)

    def next_fetch_offset(self) -> int:
        """Return the next offset to read: available records, else new ones."""
        if not self.batches or self.start_offset > self.batches[-1].last_offset:
            self._may_have_available = False
            return self.end_offset
        offset = self._first_available() if self._may_have_available else None
        if offset is None:
            self._may_have_available = False
            return self.end_offset + 1
        return offset

    def mark_available(self) -> None:
        """Search for available records in the next acquisition."""
        self._may_have_available = True

    def floor_index(self, offset: int) -> int:
        """Return the index of the last batch that begins by an offset, or -1."""
        return bisect_right(self.batches, offset, key=_FIRST_OFFSET) - 1

    def starting_between(
        self, first_offset: int, last_offset: int
    ) -> list[InFlightBatch]:
        """Return the batches that begin between two offsets, both included."""
        first = bisect_right(self.batches, first_offset - 1, key=_FIRST_OFFSET)
        return self.batches[first : self.floor_index(last_offset) + 1]

    def add(self, batch: InFlightBatch) -> None:
        self.batches.insert(self.floor_index(batch.first_offset) + 1, batch)

    def fill_gap_to(self, offset: int) -> None:
        """Continue the gap at an offset before which all offsets are in flight.

        As in Kafka (4.3.0, 4.4.0), it can go back into a batch before the first missing
        offset: the start offset then waits until that batch's last record is acquired.
        """
        if self._read_gap is not None:
            past = self.end_offset != self._read_through or offset > self._read_through
            self._read_gap = None if past else offset

    def count_final(self, run: Run) -> None:
        """Count records that have become final, if they are still in flight."""
        first = max(run.first_offset, self.start_offset)
        self.complete_count += max(run.last_offset - first + 1, 0)

    def archive(
        self,
        first_offset: int,
        last_offset: int,
        state: State,
        batches: list[InFlightBatch],
    ) -> list[Run]:
        """Archive records in `state` between two offsets; return them."""
        archived = []
        for batch in batches:
            within = (
                first_offset <= batch.first_offset and batch.last_offset <= last_offset
            )
            if (
                not within
                and batch.batch_delivery is not None
                and batch.batch_delivery.state is state
            ):
                batch.split()
            for run in list(batch.runs(first_offset, last_offset)):
                if run.delivery.state is state:
                    archived_run = run._replace(
                        delivery=run.delivery.ended(State.ARCHIVED)
                    )
                    batch.set_delivery(archived_run)
                    archived.append(archived_run)
        if archived:
            self._may_have_available = True
        return archived

    def log_start_moved(self, offset: int) -> None:
        """Follow the start of the log.

        Acquired records before it stay until their locks end, and hold back the start
        offset as others do.
        """
        if offset <= self.start_offset:
            return
        if not self.batches:
            self.start_offset = self.end_offset = offset
            self.complete_count = 0
            return
        before = self.starting_between(self.batches[0].first_offset, offset - 1)
        self.complete_count -= sum(
            run.length
            for batch in before
            for run in batch.runs(self.start_offset, offset - 1)
            if run.delivery.state.is_final
        )
        self.archive(self.start_offset, offset - 1, State.AVAILABLE, before)
        self.start_offset = offset
        self.end_offset = max(self.end_offset, offset)

    def advance_start(self) -> bool:
        """Advance the start offset past final records; return whether it moved."""
        if not self._can_advance():
            return False
        done, complete = self._final_prefix()
        if done is None:
            return False
        if done == self.batches[-1].last_offset:
            self.start_offset = self.end_offset = done + 1
            self.batches.clear()
            self.complete_count = 0
            return True
        index = self.floor_index(done)
        if done == self.batches[index].last_offset:
            index += 1
            following = self.batches[index].first_offset
            self.start_offset = max(self.start_offset, following)
            if self.read_gap is not None:
                self.start_offset = min(self.start_offset, self.read_gap)
        else:
            self.start_offset = max(self.start_offset, done + 1)
        self.complete_count -= complete
        del self.batches[:index]
        return True

    def _first_gap(self) -> int | None:
        expected = self.start_offset
        for batch in self.batches:
            if batch.first_offset > expected:
                return expected
            expected = batch.last_offset + 1
        return None

    def _first_available(self) -> int | None:
        gap = self.read_gap
        for batch in self.batches:
            if gap is not None:
                if batch.first_offset > gap:
                    return gap
                gap = max(gap, batch.last_offset + 1)
            if (offset := batch.first_available) is not None:
                return offset
        return None

    def _can_advance(self) -> bool:
        index = self.floor_index(self.start_offset)
        if index < 0:
            return False  # the start offset is in a gap
        batch = self.batches[index]
        if batch.batch_delivery is not None:
            return batch.batch_delivery.state.is_final
        # If the start offset is past a split batch, since the log has lost that batch,
        # Kafka's leader does not advance.
        is_there = self.start_offset <= batch.last_offset
        return is_there and batch.delivery_at(self.start_offset).state.is_final

    def _final_prefix(self) -> tuple[int | None, int]:
        """Return the last offset of the leading final records, and their number."""
        done: int | None = None
        complete = 0
        for batch in self.batches:
            if self.read_gap is not None and batch.last_offset >= self.read_gap:
                break
            last = batch.final_through()
            if last >= batch.first_offset:
                done = last
                first = max(batch.first_offset, self.start_offset)
                complete += max(last - first + 1, 0)
            if last < batch.last_offset:
                break
        return done, complete


_FIRST_OFFSET = attrgetter("first_offset")
