"""Prefetching: how many records to fetch and when, from the processing rate.

Theory of operation
-------------------
Releasing a record uses up a delivery, and at the group's limit archives it (measured on
4.3.0). So nothing is fetched before the application requests records, and the first
fetch is for one. Each time the application has processed its records and requests more,
the allowance can double, up to what it processes in HORIZON seconds: ten round trips
from one record to a thousand, while an application that needs a second per record never
holds a second one.

The next fetch is sent when the remaining records will be processed in LEAD seconds: a
fast application overlaps processing with the next fetch, a slow one holds only the
records it processes.

With a distant broker both times are longer by a few round trips. A fetch can wait for
the response to acknowledgements, as a leader has one request at a time, so a lead of
two round trips is needed. (With neither, a consumer took 1.3 times as long with 50 ms,
2.5 times with 200 ms.) Acknowledgements that are sent alone show the round trip: a
fetch can wait at the broker.

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
from typing import Final

from sharecons.protocol.fetch.batch_sizes import BatchSizes
from sharecons.protocol.share_messages import PartitionResponse

__all__ = ["Prefetch"]

HORIZON: Final = 0.25
LEAD: Final = 0.02
OVERDUE_LIMIT: Final = 0.1
KEEP_UP_TIME: Final = 0.002
LEAD_TRIPS: Final = 2.25
HORIZON_TRIPS: Final = 2.0
MAX_ROUND_TRIP: Final = 1.0
"""A broker that was paused is not a distant one."""
HORIZON_FRACTION: Final = 0.25
"""The fraction of the lock duration to which round trips can extend the horizon."""

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
        self._round_trip = 0.0
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

    def on_round_trip(self, seconds: float) -> None:
        """Measure the seconds of a request that did not wait at the broker."""
        seconds = min(seconds, MAX_ROUND_TRIP)
        before = self._round_trip or seconds
        self._round_trip = before + (seconds - before) * WEIGHT

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
        ahead = int(self._rate * self._horizon)
        fitting = min(2 * self.allowance, ahead, self._max_records)
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

    @property
    def _lead(self) -> float:
        return LEAD + LEAD_TRIPS * self._round_trip

    @property
    def _horizon(self) -> float:
        longest = max(HORIZON, self.lock_duration * HORIZON_FRACTION)
        return min(HORIZON + HORIZON_TRIPS * self._round_trip, longest)

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
            soon = 0 < buffered <= self._rate * self._lead
            return now if soon else math.inf
        done = self._delivered_at + (self._delivered + buffered) / self._rate
        return done - self._lead if now < done + OVERDUE_LIMIT else math.inf

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
