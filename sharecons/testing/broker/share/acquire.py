"""Acquisition of records of a share partition by one fetch, from the batches read.

Kafka acquires whole batches of the log that begin within the maximum number of records
(KIP-932, "Batching"); in the acquire mode record_limit of KIP-1206, it never acquires
more than that number. Records that are available again are acquired in the batches in
which they were first acquired.

A record that has failed often could be one that crashes its consumers. Once half of the
delivery limit is used up, a fetch acquires a half, a quarter and so on of a batch, and
no other records; a record on its last delivery is acquired alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sharecons.testing.broker.share.deliveries import (
    AcquiredRecords,
    Delivery,
    GroupSettings,
    State,
)
from sharecons.testing.broker.share.in_flight import InFlightBatch, Run, Window

__all__ = ["AcquireRequest", "Acquisition", "LogBatch", "subtract_ranges"]


class LogBatch(Protocol):
    """The attributes of a log batch that acquisition needs."""

    @property
    def base_offset(self) -> int: ...

    @property
    def last_offset(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AcquireRequest:
    """The parameters of a fetch."""

    member: str
    max_records: int
    batch_size: int = 500
    """The minimum number of records of an acquired range before the next one begins."""
    record_limit: bool = False


class Acquisition:
    """The acquisition by one fetch; used once."""

    def __init__(
        self,
        window: Window,
        request: AcquireRequest,
        read: Sequence[LogBatch],
        settings: GroupSettings,
        now: float,
    ) -> None:
        self.acquired: list[AcquiredRecords] = []
        self.count = 0
        self._window = window
        self._request = request
        self._read = read
        self._settings = settings
        self._locked_until = now + settings.lock_duration

    def run(self, fetch_offset: int) -> None:
        window, read = self._window, self._read
        if not read or read[-1].last_offset < window.start_offset:
            return
        last, max_records = self._limits(fetch_offset, read[-1].last_offset)
        if max_records <= 0:
            return
        self._archive_compacted(fetch_offset)
        base = self._first_offset(read[0].base_offset)
        found = window.starting_between(min(read[0].base_offset, base), last)
        if found:
            self._acquire_in_flight(found, base, last, max_records)
        else:
            self._acquire_new(base, last, max_records)

    def _limits(self, fetch_offset: int, last: int) -> tuple[int, int]:
        """Return the last offset that can be acquired, and the number of records."""
        window, max_records = self._window, self._request.max_records
        free_locks = self._settings.record_locks - window.count
        if free_locks > 0:
            return last, min(max_records, free_locks)
        if fetch_offset > window.end_offset:
            return last, 0
        # No lock is left for new records, but records in flight might be available.
        retriable = window.end_offset - fetch_offset + 1
        return min(last, window.end_offset), min(max_records, retriable)

    def _archive_compacted(self, fetch_offset: int) -> None:
        """Archive records that the log no longer has, because of compaction."""
        window, base = self._window, self._read[0].base_offset
        if fetch_offset >= base:
            return
        first = fetch_offset
        index = window.floor_index(fetch_offset)
        if index >= 0 and window.batches[index].last_offset >= fetch_offset:
            first = window.batches[index].first_offset
        removed = window.starting_between(first, base - 1)
        for run in window.archive(fetch_offset, base - 1, State.AVAILABLE, removed):
            window.count_final(run)

    def _first_offset(self, base: int) -> int:
        """Return the first offset to acquire: of a batch in flight, if it was read."""
        window = self._window
        index = window.floor_index(base)
        if index < 0:
            return max(base, window.start_offset)
        covers = window.batches[index].last_offset >= base
        return window.batches[index].first_offset if covers else base

    def _acquire_in_flight(
        self, found: list[InFlightBatch], base: int, last: int, max_records: int
    ) -> None:
        for batch in found:
            if self._window.read_gap is not None:
                if base < batch.first_offset and self.count < max_records:
                    self._acquire_new(
                        base, batch.first_offset - 1, max_records - self.count
                    )
                base = batch.last_offset + 1
            if self.count >= max_records:
                break
            is_throttled = self._is_throttled(batch, last)
            if not (is_throttled and self.count):
                self._acquire_batch(batch, last, max_records - self.count, is_throttled)
            if is_throttled and self.count:
                max_records = 0  # records that have failed often are acquired alone
        following = found[-1].last_offset + 1
        if self.count < max_records and following <= last:
            self._acquire_new(following, last, max_records - self.count)
        if self.acquired:
            self._window.fill_gap_to(self.acquired[-1].last_offset + 1)

    def _acquire_batch(
        self, batch: InFlightBatch, last: int, max_records: int, is_throttled: bool
    ) -> None:
        first = self._read[0].base_offset
        is_within = first <= batch.first_offset and batch.last_offset <= last
        is_too_long = self._request.record_limit and batch.length > max_records
        if (
            batch.batch_delivery is not None
            and batch.batch_delivery.state is not State.AVAILABLE
        ):
            return
        if (
            batch.batch_delivery is not None
            and is_within
            and not (is_too_long or is_throttled)
        ):
            self._take(
                batch, Run(batch.first_offset, batch.last_offset, batch.batch_delivery)
            )
            return
        batch.split()
        self._acquire_offsets(batch, last, max_records)

    def _acquire_offsets(
        self, batch: InFlightBatch, last: int, max_records: int
    ) -> None:
        """Acquire single offsets of a batch."""
        limit, start = self._settings.delivery_limit, self.count
        first = self._read[0].base_offset
        portion: int | None = None
        known = len(self.acquired)
        for run in list(batch.runs(first, last)):
            delivery, taken = run.delivery, self.count - start
            if delivery.state is not State.AVAILABLE:
                continue
            is_last = limit > 2 and delivery.count == limit - 1
            if is_last and taken:
                break
            if portion is None:
                portion = self._throttled_length(batch, delivery)
            length = 1 if is_last else run.length
            if self._request.record_limit:
                length = min(length, max_records - taken)
            # Once exceeded, the portion is no limit any more, as in Kafka.
            if portion is not None and taken < portion:
                length = min(length, portion - taken)
            self._take(batch, run._replace(last_offset=run.first_offset + length - 1))
            taken += length
            if is_last or taken == portion:
                break
            if self._request.record_limit and taken == max_records:
                break
        self.acquired[known:] = _merge_adjacent(self.acquired[known:])

    def _throttled_length(self, batch: InFlightBatch, delivery: Delivery) -> int | None:
        """Return the number of a batch's records to acquire, or None for no limit."""
        excess = delivery.count - self._settings.throttle_from
        return None if excess < 0 else max(1, batch.length >> (excess + 1))

    def _is_throttled(self, batch: InFlightBatch, last: int) -> bool:
        return any(
            run.delivery.count >= self._settings.throttle_from
            for run in batch.runs(self._first_checked_offset(batch), last)
            if run.delivery.state is State.AVAILABLE
        )

    def _first_checked_offset(self, batch: InFlightBatch) -> int:
        # While all offsets share a delivery it does not matter which ones were read.
        is_split = batch.batch_delivery is None
        return self._read[0].base_offset if is_split else batch.first_offset

    def _take(self, batch: InFlightBatch, run: Run) -> None:
        delivery = run.delivery.acquired(self._request.member, self._locked_until)
        batch.set_delivery(run._replace(delivery=delivery))
        self.count += run.length
        self.acquired.append(
            AcquiredRecords(run.first_offset, run.last_offset, delivery.count)
        )

    def _acquire_new(self, first: int, last: int, max_records: int) -> None:
        """Acquire records that were not in flight, to the end of a log batch."""
        window = self._window
        if not window.batches:
            first = max(first, window.end_offset)
        through = last
        if max_records < last - first + 1:
            through = self._batch_end(first + max_records - 1)
            if window.read_gap is not None:
                through = min(through, last)
        known = len(self.acquired)
        if self._request.record_limit:
            self._add_limited(first, through, max_records)
        else:
            self._add_whole(first, through)
        if window.batches[0].first_offset == first:
            window.start_offset = first
        window.end_offset = max(window.end_offset, through)
        acquired_through = self.acquired[-1].last_offset
        window.fill_gap_to(acquired_through + 1)
        self.count += acquired_through - self.acquired[known].first_offset + 1

    def _add_whole(self, first: int, through: int) -> None:
        delivery = self._first_delivery()
        begins = [first]
        if through - first + 1 > self._request.batch_size:
            for batch in self._read:
                base = batch.base_offset
                if base <= through and base - begins[-1] >= self._request.batch_size:
                    begins.append(base)
        ends = [begin - 1 for begin in begins[1:]] + [through]
        for begin, end in zip(begins, ends, strict=True):
            self._window.add(InFlightBatch(begin, end, delivery))
            self.acquired.append(AcquiredRecords(begin, end, delivery.count))

    def _add_limited(self, first: int, through: int, max_records: int) -> None:
        delivery = self._first_delivery()
        batch = InFlightBatch(first, through, delivery)
        end = min(through, first + max_records - 1)
        if end < through:
            batch.split()
            batch.set_delivery(Run(end + 1, through, Delivery(State.AVAILABLE, 0)))
            self._window.mark_available()
        self._window.add(batch)
        self.acquired.append(AcquiredRecords(first, end, delivery.count))

    def _first_delivery(self) -> Delivery:
        fresh = Delivery(State.AVAILABLE, 0)
        return fresh.acquired(self._request.member, self._locked_until)

    def _batch_end(self, offset: int) -> int:
        """Return the end of the batch that contains an offset, else the offset."""
        end = offset
        for batch in self._read:
            if batch.base_offset > offset:
                break
            end = max(batch.last_offset, offset)
        return end


def subtract_ranges(
    acquired: Sequence[AcquiredRecords], ranges: Sequence[tuple[int, int]]
) -> list[AcquiredRecords]:
    """Remove ranges of offsets from acquired records; both are in order."""
    remaining = list(acquired)
    for first, last in ranges:
        remaining = [part for whole in remaining for part in _cut(whole, first, last)]
    return remaining


def _cut(records: AcquiredRecords, first: int, last: int) -> list[AcquiredRecords]:
    before = records._replace(last_offset=min(records.last_offset, first - 1))
    after = records._replace(first_offset=max(records.first_offset, last + 1))
    return [part for part in (before, after) if part.first_offset <= part.last_offset]


def _merge_adjacent(acquired: list[AcquiredRecords]) -> list[AcquiredRecords]:
    joined: list[AcquiredRecords] = []
    for part in acquired:
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.last_offset + 1 == part.first_offset
            and last.delivery_count == part.delivery_count
        ):
            joined[-1] = last._replace(last_offset=part.last_offset)
        else:
            joined.append(part)
    return joined
