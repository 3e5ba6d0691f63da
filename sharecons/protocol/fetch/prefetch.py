"""Prefetching: how many records to fetch and when, from the processing rate.

Theory of operation
-------------------
Releasing a record uses up a delivery, and at the group's limit archives it (measured on
4.3.0). So nothing is fetched before the application requests records, and the first
fetch is for one. Each time the application has processed its records and requests more,
the allowance can double, up to what it processes in HORIZON seconds: ten round trips
from one record to a thousand, while an application that needs a second per record never
holds a second one.

The next fetch is sent when the remaining records will be processed in LEAD seconds, a
round trip with a margin: a fast application overlaps processing with the next fetch, a
slow one holds only the records it processes.

The rate is measured between two requests of the application, without waiting times.

A broker returns whole producer batches, even for a small record limit. With records of
1 kB in batches of 1 MB, a fetch for HORIZON seconds of a 0.1 s handler brings 500 kB
each. So if a batch is large, and holds more records than would be requested,
a fetch requests what half of the lock duration allows at the measured rate. The price:
these records are locked at the same time, and use up a delivery if the process dies.

Whole batches are requested only if the largest possible one fits in half of the lock
duration: the next batch can be larger than all before it.
"""

import math
from collections.abc import Callable, Sequence
from typing import Final, final

from sharecons.protocol.share_messages import PartitionResponse
from sharecons.records.batch_header import HEADER_SIZE, MAGIC, PREFIX_SIZE, Header
from sharecons.records.message_sets import LAST_MAGIC, message_count

__all__ = ["BatchSizes", "Prefetch"]

HORIZON: Final = 0.25
LEAD: Final = 0.02
OVERDUE_LIMIT: Final = 0.1
KEEP_UP_TIME: Final = 0.002
DEMAND_PERIOD: Final = 0.5
"""Seconds for which an unserved request of the application counts: a loop of
poll(timeout=0) is never waiting."""

WINDOW: Final = 2000
HALF_WINDOW: Final = 1000
QUARTER_WINDOW: Final = 500
MIN_QUARTER_TOTAL: Final = 2000
"""The most records per partition that a fetch requests, on average, of the broker's
default limit of locked records (the window).

Without overlap all of it. Otherwise a half, so that the next fetch finds as many while
these are processed: with few partitions a round trip costs the most. Above
MIN_QUARTER_TOTAL a quarter, as a third fetch needs room: the one whose acknowledgements
are being persisted. With halves of six partitions most windows were full at each fetch,
and the broker searched them without a result: it returned half a million records of
1 KiB per second, and 0.7 million with quarters, for two thirds of its CPU time."""

ROUNDS_AHEAD: Final = 2
"""How many allowances, or responses of `max_bytes`, can be buffered: a fast consumer
lets no other task run while it processes records, so the next request must be sent
before."""

LARGE_BATCH: Final = 32 << 10
"""The size in bytes above which a batch is large: fetching a smaller one twice costs
little. Twice the default `batch.size` of producers."""

GROWTH: Final = 256
"""The maximum growth from one round of fetches to the next for large batches: one
record is measured, then 256, then whole batches."""

LOCK_FRACTION: Final = 0.5
"""The fraction of the lock duration that processing can take."""

DEFAULT_BATCH_SIZE: Final = 1 << 20
"""The expected size of a batch before one was received."""

WEIGHT: Final = 0.5
SIGNIFICANT_WORK: Final = 0.005
"""The weight of a faster measurement, and the seconds of processing from which a slower
one counts in full: records fetched at the old rate could not be processed before their
locks end. Shorter measurements have less weight: for a lease of few records most of the
time is overhead. (In full, they made each tenth fetch of 1 KiB records wait until all
were processed.)"""


def _any_time() -> float:
    return -math.inf


class Prefetch:
    """The processing rate of an application, and the fetch limits that follow from it.

    The user of a member changes it through `FetchDemand` only.

    Args:
        max_records: the application's limit of a round of fetches.
        max_bytes: its limit of one response.

    Attributes:
        allowance: records that one round of fetches can bring.
        buffered: records acquired and not delivered.
        waiting_readers: how many readers are waiting for records.
        at_full_speed: the allowance is the user's `max_records`.
        overlaps: a fetch can be in flight while records are buffered. Without overlap
            fetches are fewer and larger.
        batches: sizes of the batches that responses hold.
        lock_duration: for how many seconds records are locked; 0.0 if unknown.
        suspended: nothing is fetched.
        next_ack: returns the earliest time at which the application acknowledges or
            renews a record that it holds. The default is any time.
    """

    def __init__(self, max_records: int, max_bytes: float = math.inf) -> None:
        self.overlaps = True
        self.suspended = False
        self.allowance = 1
        self.buffered = 0
        self.waiting_readers = 0
        self.batches = BatchSizes()
        self.lock_duration = 0.0
        self.next_ack: Callable[[], float] = _any_time
        self._max_records = max_records
        self._max_bytes = max_bytes
        self._is_exact, self._window = False, WINDOW
        self._batch_allowance = 0
        self._rate = 0.0
        self._delivered = 0
        self._delivered_at = 0.0
        self._demand_until = 0.0

    @property
    def at_full_speed(self) -> bool:
        return self.allowance >= self._max_records

    @property
    def keeps_up(self) -> bool:
        """True if the application will process all its records in KEEP_UP_TIME."""
        left = self._delivered + self.buffered
        return self.overlaps and left <= self._rate * KEEP_UP_TIME

    def on_acquired(self, count: int) -> None:
        self.buffered += count

    def measure(
        self, partitions: Sequence[PartitionResponse], lock_duration: float
    ) -> None:
        """Measure a response; `lock_duration` is in seconds."""
        self.batches.measure(partitions)
        self.lock_duration = lock_duration

    def on_dropped(self, count: int) -> None:
        """Subtract records that left the buffer without being delivered."""
        self.buffered -= count

    def on_delivered(self, count: int, now: float) -> None:
        self.buffered -= count
        if not self._delivered:
            self._delivered_at = now
        self._delivered += count
        self._demand_until = 0.0

    def on_requested(
        self, now: float, *, expired: int = 0, processing: int = 0, busy: int = 0
    ) -> None:
        """Measure the processed records, as the application requests more.

        With several reading tasks, the rate is measured after as many records as tasks,
        so that it is the rate of all of them.

        Args:
            expired: records whose locks ended before their turn.
            processing: records that other tasks of the application are processing.
            busy: how many tasks these are.
        """
        self._demand_until = now + DEMAND_PERIOD
        # Dropping a record takes no time: counted, it would show a pace that handlers
        # do not have.
        self._delivered = max(0, self._delivered - expired)
        processed = self._delivered - processing
        if processed <= 0 or processed < busy:
            return
        seconds = max(now - self._delivered_at, 1e-6)
        rate = processed / seconds
        before = self._rate or rate
        weight = WEIGHT if rate > before else min(1.0, seconds / SIGNIFICANT_WORK)
        self._rate = before + (rate - before) * weight
        self._delivered, self._delivered_at = processing, now
        fitting = min(2 * self.allowance, int(self._rate * HORIZON), self._max_records)
        self._batch_allowance = 0
        if self._is_wasteful(fitting):
            self._batch_allowance = min(GROWTH * self.allowance, self._lock_limit())
            fitting = min(self._batch_allowance, self._max_records)
        self.allowance = max(1, fitting)

    def set_allowance(self, records: int) -> None:
        """Fetch up to `records` once they are requested, and none ahead.

        For an application that knows how many it takes at a time.
        """
        self._max_records = self.allowance = records
        self._is_exact = True

    def set_max_records(self, records: int) -> None:
        """Let the allowance grow to `records`, after `set_allowance`."""
        self._max_records = records
        self._is_exact = False

    def set_rounds(self, records: int, *, exact: bool, window: int) -> None:
        """Fetch `records` whenever none are buffered, as if a reader always waited.

        For an application that takes all records as they arrive.
        """
        self._max_records = self.allowance = records
        self._is_exact, self._window, self.overlaps = exact, window or WINDOW, False
        self.waiting_readers = 1

    def restart(self) -> None:
        """Fetch one record next, and then grow as at the start."""
        self.allowance = 1
        self._batch_allowance = 0

    def takes_whole_batches(self, leaders: int) -> bool:
        """Return whether fetches from this number of leaders request whole batches.

        Only if the application can process a batch of WINDOW records from each leader
        in half of the lock duration, and never right after the first record.
        """
        if self._is_exact:
            return False
        if not self._rate:
            return self.allowance > 1 and self.at_full_speed
        largest = WINDOW * max(1, leaders)
        if self._batch_allowance:
            return largest <= self._batch_allowance
        fits = not self.lock_duration or largest <= self._lock_limit()
        return self.at_full_speed and fits

    def _is_wasteful(self, records: int) -> bool:
        """Return whether a fetch of this many records brings a large batch in part."""
        batches = self.batches
        return (
            batches.size > LARGE_BATCH
            and batches.records > max(1, records)
            and self.lock_duration > 0.0
        )

    def _lock_limit(self) -> int:
        """Return how many records are processed in half of the lock duration."""
        return round(self._rate * self.lock_duration * LOCK_FRACTION)

    def next_due(self, now: float, *, ahead: bool = True) -> float:
        """Return when the next fetch is due; infinity if only after a request.

        If the application takes much longer than the measured rate implies, nothing is
        fetched until it requests records.

        Args:
            now: the current time.
            ahead: also fetch while records are buffered.
        """
        if self.suspended:
            return math.inf
        buffered = self.buffered
        if not buffered and (self.waiting_readers or now < self._demand_until):
            return now
        if not ahead or not self.overlaps or self._is_exact:
            return math.inf
        if buffered >= ROUNDS_AHEAD * self.allowance:
            return math.inf
        if buffered * self.batches.record_size >= ROUNDS_AHEAD * self._max_bytes:
            return math.inf
        if not self._rate:
            return math.inf  # the rate is not known yet
        if not self._delivered:
            # Records were requested, and are about to be delivered.
            soon = 0 < buffered <= self._rate * LEAD
            return now if soon else math.inf
        done = self._delivered_at + (self._delivered + buffered) / self._rate
        return done - LEAD if now < done + OVERDUE_LIMIT else math.inf

    def record_limit(self, leaders: int, partitions: int, growth: int = 1) -> int:
        """Return how many records to request from one leader.

        Args:
            leaders: how many leaders share the allowance.
            partitions: how many of its partitions are fetched.
            growth: the multiple of the allowance to request, up to GROWTH records or
                the records processed in half of the lock duration.
        """
        allowance = self.allowance
        if growth > 1:
            grown = min(allowance * growth, max(GROWTH, self._lock_limit()))
            allowance = max(allowance, min(grown, self._max_records))
        share = -(-allowance // max(1, leaders))
        partitions = max(1, partitions)
        if self._batch_allowance and self.takes_whole_batches(leaders):
            # The last batch begins within the limit, and is returned whole.
            room = (
                self._batch_allowance // max(1, leaders) - int(self.batches.records) + 1
            )
            share = max(1, min(share, room))
        if not self.overlaps:
            return max(1, min(share, self._window * partitions))
        room = max(QUARTER_WINDOW * partitions, MIN_QUARTER_TOTAL)
        return max(1, min(share, room, HALF_WINDOW * partitions))

    def expected_bytes(self, records: int) -> int:
        """Return the expected bytes of a response with this many records."""
        return (
            max(int(records * self.batches.record_size), self.batches.largest)
            or DEFAULT_BATCH_SIZE
        )


MAX_MEASURED: Final = 64
"""The maximum number of batches measured per partition. With more of them, few batches
are acquired only in part."""

BATCH_WEIGHT: Final = 0.5
"""The weight of the last response."""


@final
class BatchSizes:
    """How large the producer batches are that a broker returns.

    A broker returns every batch whole that holds an acquired record. So the size of the
    batches decides how many bytes a fetch of few records brings. The figures are
    averages over the last responses, weighted by bytes.

    The weighting favours large batches, as they are the cost of a fetch of few records.

    Attributes:
        records: records in a batch, 0.0 if unknown.
        size: bytes of a batch, 0.0 if unknown.
        record_size: bytes of a record, 0.0 if unknown.
        largest: bytes of the largest batch in the last response.
    """

    def __init__(self) -> None:
        self.records = 0.0
        self.size = 0.0
        self.record_size = 0.0
        self.largest = 0
        self._count = 0
        self._bytes = 0
        self._weighted_count = 0.0
        self._weighted_bytes = 0.0
        self._largest = 0

    def measure(self, partitions: Sequence[PartitionResponse]) -> None:
        """Add a response to the averages; one without batches changes nothing."""
        self._count = self._bytes = self._largest = 0
        self._weighted_count = self._weighted_bytes = 0.0
        for partition in partitions:
            self._add(partition.records)
        if not self._bytes:
            return
        weight = BATCH_WEIGHT if self.size else 1.0
        records = self._weighted_count / self._bytes
        size = self._weighted_bytes / self._bytes
        self.records += (records - self.records) * weight
        self.size += (size - self.size) * weight
        self.record_size = self._bytes / self._count
        self.largest = self._largest

    def _add(self, payload: bytes | memoryview) -> None:
        """Measure one partition's records in the response."""
        at, end = 0, len(payload)
        previous = -1  # the offset of the previous message of format 0 or 1
        for _ in range(MAX_MEASURED):
            if end - at < PREFIX_SIZE:
                return
            header = Header(payload, at)
            size = header.end - at
            count = header.count
            if header.magic <= LAST_MAGIC:
                count = message_count(header, previous)
                previous = header.base_offset
            elif header.magic != MAGIC or size < HEADER_SIZE:
                return
            if size < PREFIX_SIZE or count < 0:
                return
            at = header.end
            if not count:
                continue
            self._count += count
            self._bytes += size
            self._weighted_count += float(count) * size
            self._weighted_bytes += float(size) * size
            self._largest = max(self._largest, size)
