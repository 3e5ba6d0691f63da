"""How many records to fetch, and when: as the application works them off.

Rule 1: how far a consumer fetches ahead is decided here, from its own pace.
Rule 2: this file does not know brokers; `leader` asks it how much to ask for.

Theory of operation
-------------------
What is fetched and then let go has used up a delivery, and at the group's limit
that archives it (measured on 4.3.0). So nothing is fetched before somebody asks
for records, and the first fetch asks for one. Each time the application has
worked off what it was given and asks again, the allowance may double, up to what
it works in HORIZON seconds: ten round trips from one record to a thousand, while
an application that takes a second for each record never holds a second one.

Fetching ahead begins when what is left of the work would be done in LEAD
seconds, a round trip with something to spare: a fast application overlaps its
work with the next fetch, a slow one holds what it works on.

The pace is measured between two askings, without the time spent waiting.

A broker returns whole producer batches, also for a small record limit. With records of
1 kB in batches of 1 MB, a fetch for HORIZON seconds of a 0.1 s handler brings 500 kB
each. So where a batch is large, and holds more records than would be requested,
a fetch requests what half of the lock duration allows at the measured pace: whole
batches if they fit in it, else a limited number of records. The price: so many records
are locked at a time, and use up a delivery if the process dies.
"""

import math
from collections.abc import Sequence
from typing import Final

from sharecons.protocol.fetch.batch_sizes import BatchSizes
from sharecons.protocol.messages import PartitionResponse

__all__ = ["Prefetch"]

HORIZON: Final = 0.25
LEAD: Final = 0.02
OVERDUE_LIMIT: Final = 0.1
KEEP_UP_TIME: Final = 0.002
DEMAND_PERIOD: Final = 0.5
"""How long an asking that was not served is remembered: poll(timeout=0) in a loop
is never seen waiting."""

WINDOW: Final = 2000
HALF_WINDOW: Final = 1000
QUARTER_WINDOW: Final = 500
MIN_QUARTER_TOTAL: Final = 2000
"""How many records of a partition a fetch asks for at most, on average, of the window
that the broker lets be locked by default.

All of it where one fetch follows the other. Else a half, so that the next fetch finds
as many while these are worked: with few partitions a round trip costs more than all
else. Beyond what is enough for one, a quarter, as a third fetch wants room too: that
whose acceptance is being written down. With halves of six partitions most windows were
full whenever a fetch came, and the broker looked in vain: of 1 KiB it gave half a
million a second where it gives 0.7 with quarters, for two thirds of its CPU."""

ROUNDS_AHEAD: Final = 2
"""Fetches may bring so many allowances before any of it is handed out: a fast consumer
lets nobody else run while it works, so the next request must be on its way before."""

MAX_BYTES_FACTOR: Final = 4
"""How many times `max_bytes` is asked for, at most, where partitions are many and
records small."""

LARGE_BATCH: Final = 32 << 10
"""From how many bytes on a batch is large: fetching a smaller one again costs little.
Twice the `batch.size` that producers have by default."""

GROWTH: Final = 256
"""How many times more one round of fetches may bring than the one before, where batches
are wasteful: one record is measured, then 256, then whole batches."""

LOCK_FRACTION: Final = 0.5
"""Which part of the lock duration may be filled with work."""

DEFAULT_BATCH_SIZE: Final = 1 << 20
"""How large a batch is expected to be before one was received."""

WEIGHT: Final = 0.5
SIGNIFICANT_WORK: Final = 0.005
"""How much a faster measurement counts, and from how many seconds of work on a slower
one counts at once: what is fetched on the strength of the old pace could not be worked
before its lock ends. Less work tells less: often that of a lease of few records, which
is mostly what asking costs. (Taken for the pace, it had each tenth fetch of 1 KiB wait
until all was worked.)"""


class Prefetch:
    """Measures the application, and answers how much to ask the leaders for.

    Attributes:
        allowance: records that one round of fetches may bring.
        buffered: records acquired and not handed out.
        waiting: how many are waiting for records just now.
        full_speed: the allowance is all that the user allows.
        overlaps: a fetch may be under way before what came is handed out. Without it
            fetches are fewer and larger.
        batches: sizes of the batches that responses hold.
        lock_duration: for how many seconds records are locked; 0.0 if unknown.
    """

    def __init__(self, max_records: int) -> None:
        self.overlaps = True
        self.allowance = 1
        self.buffered = 0
        self.waiting_readers = 0
        self.batches = BatchSizes()
        self.lock_duration = 0.0
        self._max_records = max_records
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
        """True if all that came is worked off in moments."""
        left = self._delivered + self.buffered
        return self.overlaps and left <= self._rate * KEEP_UP_TIME

    def on_acquired(self, count: int) -> None:
        self.buffered += count

    def measure(
        self, partitions: Sequence[PartitionResponse], lock_duration: float
    ) -> None:
        """Measure what a response holds; its records are locked for so many seconds."""
        self.batches.measure(partitions)
        self.lock_duration = lock_duration

    def on_dropped(self, count: int) -> None:
        """Records left the buffer without being handed out."""
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
        """Measure what the application has processed; it asks for more.

        Where several tasks read, the rate is measured once as many records are
        processed as there are tasks at work, so that it is the rate of all of them.

        Args:
            unworked: records whose locks ended before their turn.
            processing: records that other tasks of the application are processing.
            busy: how many tasks these are.
        """
        self._demand_until = now + DEMAND_PERIOD
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

    def restart(self) -> None:
        """Fetch one record next, and then grow as at the start."""
        self.allowance = 1
        self._batch_allowance = 0

    def takes_whole_batches(self, leaders: int) -> bool:
        """Return whether fetches from so many leaders request whole batches.

        Only at full speed, or where half of the lock duration allows it: else they
        would be more than the application can process.
        """
        if not self._rate:
            return self.allowance > 1 and self.at_full_speed
        whole = int(self.batches.records) * max(1, leaders)
        if self._batch_allowance:
            return whole <= self._batch_allowance
        fits = not self.lock_duration or whole <= self._lock_limit()
        return self.at_full_speed and fits

    def _is_wasteful(self, records: int) -> bool:
        """Return whether a fetch of so many records brings a large batch in part."""
        batches = self.batches
        return (
            batches.size > LARGE_BATCH
            and batches.records > max(1, records)
            and self.lock_duration > 0.0
        )

    def _lock_limit(self) -> int:
        """Return how many records are processed in half of the lock duration."""
        return round(self._rate * self.lock_duration * LOCK_FRACTION)

    def next_due(self, now: float, *, ahead: bool = True, coming: int = 0) -> float:
        """When a fetch is due if nothing else happens; at or before `now`: it is.

        Without `ahead` it is due only when the application has asked, and there is
        nothing to hand out. `coming` is how many records come already.

        An application that takes much longer than its pace foretold is given no
        more until it asks: what we know of its pace does not hold.
        """
        buffered = self.buffered + coming
        if not buffered and (self.waiting_readers or now < self._demand_until):
            return now
        if not ahead or not self.overlaps:
            return math.inf
        if buffered >= ROUNDS_AHEAD * self.allowance:
            return math.inf
        if not self._rate:
            return math.inf  # we do not know yet how fast they work
        if not self._delivered:
            # They have asked, and are about to be served.
            soon = 0 < buffered <= self._rate * LEAD
            return now if soon else math.inf
        done = self._delivered_at + (self._delivered + buffered) / self._rate
        return done - LEAD if now < done + OVERDUE_LIMIT else math.inf

    def record_limit(self, leaders: int, partitions: int, growth: int = 1) -> int:
        """How many records one of so many leaders is asked for, of its partitions.

        Args:
            growth: how many times the allowance to ask for, at most GROWTH records or
                what is processed in half of the lock duration.
        """
        allowance = self.allowance
        if growth > 1:
            grown = min(allowance * growth, max(GROWTH, self._lock_limit()))
            allowance = max(allowance, min(grown, self._max_records))
        share = -(-allowance // max(1, leaders))
        partitions = max(1, partitions)
        if self._batch_allowance and self.takes_whole_batches(leaders):
            # The last batch begins within what is requested, and comes whole.
            room = (
                self._batch_allowance // max(1, leaders) - int(self.batches.records) + 1
            )
            share = max(1, min(share, room))
        if not self.overlaps:
            return max(1, min(share, WINDOW * partitions))
        room = max(QUARTER_WINDOW * partitions, MIN_QUARTER_TOTAL)
        return max(1, min(share, room, HALF_WINDOW * partitions))

    def expected_records(self, records: int, size: int) -> int:
        """Guess how many records a fetch brings, of so many and so many bytes."""
        return min(records, size // max(1, int(self.batches.record_size)) + 1)

    def has_room_for_next(self, records: int, partitions: int) -> bool:
        """True if three such fetches at a time find room in the windows."""
        return 3 * records <= HALF_WINDOW * partitions

    def expected_bytes(self, records: int) -> int:
        """Guess how many bytes a response with so many records has."""
        return (
            max(int(records * self.batches.record_size), self.batches.largest)
            or DEFAULT_BATCH_SIZE
        )

    def byte_limit(self, records: int, partitions: int, max_bytes: int) -> int:
        """How many bytes to ask for, with so many records, of so many partitions.

        A broker splits them evenly over the session's partitions before it looks
        what is there. With 500 partitions 8 MiB are one batch of each: a fetch of
        2,000 records then had eighteen leases and brought a third more bytes than it
        acquired, at twice the CPU. So where all the records are expected to fit,
        each partition may bring all of them.
        """
        expected = records * int(self.batches.record_size)
        if expected > max_bytes:
            return max_bytes
        return max(max_bytes, min(partitions * expected, MAX_BYTES_FACTOR * max_bytes))
