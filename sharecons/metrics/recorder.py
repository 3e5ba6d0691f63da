"""Counts what one consumer does; the table in `catalog` says which metrics that are.

The consumer and its member call the `on_` methods and add to the counters: once per
request, response, lease or poll, never once per record. Times are in seconds on the
consumer's clock.

Averages, maxima and rates are computed as in Kafka's clients: they cover the last
SAMPLES windows. Values are collected in one sample per window, and a sample is dropped
when it has received no value for as long as all windows last. So a figure forgets a
value after 60 to 90 seconds, and costs a few numbers however many values there are.
"""

import math
from collections.abc import Callable, Sequence
from typing import Final, Optional, final

from sharecons._record import RENEW
from sharecons.protocol.acknowledge.result_log import AcknowledgeResult
from sharecons.protocol.group.messages import Heartbeat, HeartbeatResponse
from sharecons.protocol.partitions import SharePartition
from sharecons.protocol.share_messages import Acknowledgements, ShareFetchResponse

__all__ = ["NEVER", "FetchSize", "MetricsRecorder", "PollTimes", "SampledValues"]

NEVER: Final = -math.inf

SAMPLES: Final = 2
WINDOW: Final = 30.0
"""Kafka's defaults (`metrics.num.samples`, `metrics.sample.window.ms`); seconds."""


@final
class _Sample:
    """The values of one window."""

    __slots__ = ("count", "last", "maximum", "start", "total")

    def __init__(self, now: float) -> None:
        self.restart(now)

    def restart(self, now: float) -> None:
        self.start = now
        self.last = now
        self.count = 0
        self.total = 0.0
        self.maximum = -math.inf


@final
class SampledValues:
    """Values of one kind in the last windows; all times are in seconds.

    Figures without a value are NaN, except rates, which are 0.

    Attributes:
        count, total: the number and the sum of all values since the start.
    """

    __slots__ = (
        "_current",
        "_samples",
        "count",
        "total",
    )

    def __init__(self) -> None:
        self._samples: list[_Sample] = []
        self._current = -1
        self.count = 0
        self.total = 0.0

    def add(self, value: float, now: float) -> None:
        if not self._samples:
            self._start_next(now)
        sample = self._samples[self._current]
        if now - sample.start >= WINDOW:
            self._start_next(now)
            sample = self._samples[self._current]
        sample.last = now
        sample.count += 1
        sample.total += value
        if value > sample.maximum:
            sample.maximum = value
        self.count += 1
        self.total += value

    def average(self, now: float) -> float:
        samples = self._recent(now)
        count = sum([sample.count for sample in samples])
        return sum([sample.total for sample in samples]) / count if count else math.nan

    def maximum(self, now: float) -> float:
        samples = self._recent(now)
        return max([sample.maximum for sample in samples]) if samples else math.nan

    def rate(self, now: float) -> float:
        """Return the sum of the values per second."""
        samples = self._recent(now)
        return sum([sample.total for sample in samples]) / self._duration(samples, now)

    def frequency(self, now: float) -> float:
        """Return the number of values per second."""
        samples = self._recent(now)
        return sum([sample.count for sample in samples]) / self._duration(samples, now)

    def _recent(self, now: float) -> list[_Sample]:
        """Return the samples that are not dropped yet; each has a value."""
        age = SAMPLES * WINDOW
        return [sample for sample in self._samples if now - sample.last < age]

    def _duration(self, samples: list[_Sample], now: float) -> float:
        """Return how long samples last, with an empty window for each that is missing.

        Without them, the rate would be infinite at the first value.
        """
        elapsed = now - min([sample.start for sample in samples]) if samples else 0.0
        missing = SAMPLES - 1 - int(elapsed / WINDOW)
        return elapsed + max(0, missing) * WINDOW

    def _start_next(self, now: float) -> None:
        # One more: until a window has passed, the oldest is still partly of interest.
        self._current = (self._current + 1) % (SAMPLES + 1)
        if self._current == len(self._samples):
            self._samples.append(_Sample(now))
        else:
            self._samples[self._current].restart(now)


@final
class PollTimes:
    """When the last poll of one reader began and ended."""

    __slots__ = ("ended", "started")

    def __init__(self) -> None:
        self.started = NEVER
        self.ended = NEVER


@final
class FetchSize:
    """The bytes of records in one response, recorded once all its leases are decoded.

    The size of a record is known when its lease is decoded: responses are compressed,
    and contain records of other members.
    """

    __slots__ = ("_leases_left", "_recorder", "_size")

    def __init__(self, recorder: "MetricsRecorder", leases: int) -> None:
        self._recorder = recorder
        self._leases_left = leases
        self._size = 0

    def add(self, size: int, now: float) -> None:
        """Add the bytes of one lease's records; 0 if it is dropped undecoded."""
        self._size += size
        self._leases_left -= 1
        if not self._leases_left:
            self._recorder.on_fetch_decoded(self._size, now)


@final
class MetricsRecorder:
    """The figures of one consumer.

    Attributes:
        clock: returns the current time; set when the consumer starts.
        held_records: returns how many records are locked for the consumer.
        problems: returns the problems that are logged as lasting.
        on_acknowledge_latency: set this to receive the seconds from each request with
            acknowledgements to its response.
        last_poll, last_heartbeat: when the last one began; NEVER before the first.
        poll_intervals: seconds from the start of a poll to the start of the next.
        poll_idle_ratios: fractions of the time that were spent in polls.
        heartbeat_times, fetch_latencies: seconds from requests to responses.
        rebalances: a value of 1 for each.
        fetch_sizes, fetch_records: bytes and offsets of responses with records.
        throttle_times: seconds, 0 without a quota.
        acks_sent, acks_failed: offsets, by request.
        released_unprocessed: records that the application did not read before it
            closed.
        last_deliveries_unprocessed: the part of them that was on its last delivery.
        archived, damaged_rejected, renewals, locks_lost, lock_overruns: records.
    """

    def __init__(self) -> None:
        self.clock: Callable[[], float] | None = None
        self.held_records: Callable[[], int] = _none_held
        self.problems: Callable[[], Sequence[str]] = tuple
        self.on_acknowledge_latency: Optional[Callable[[float], None]] = None  # noqa: UP045
        self.last_poll = NEVER
        self.poll_intervals = SampledValues()
        self.poll_idle_ratios = SampledValues()
        self.last_heartbeat = NEVER
        self.heartbeat_times = SampledValues()
        self.rebalances = SampledValues()
        self._assignment: frozenset[SharePartition] | None = None
        self.fetch_sizes = SampledValues()
        self.fetch_records = SampledValues()
        self.fetch_latencies = SampledValues()
        self.throttle_times = SampledValues()
        self.acks_sent = SampledValues()
        self.acks_failed = SampledValues()
        self.released_unprocessed = 0
        self.last_deliveries_unprocessed = 0
        self.archived = 0
        self.damaged_rejected = 0
        self.renewals = 0
        self.locks_lost = 0
        self.lock_overruns = 0

    # The application reads.

    def on_poll_started(self, reader: PollTimes, now: float) -> None:
        """Count the start of a reader's poll.

        The first poll of a reader has no poll before it, so it counts for neither the
        time between polls nor the idle ratio.
        """
        if reader.started != NEVER:
            self.poll_intervals.add(now - reader.started, now)
        reader.started = now
        self.last_poll = now

    def on_poll_ended(self, reader: PollTimes, now: float) -> None:
        """Count the end of a poll: with records, an error or a timeout."""
        if reader.ended != NEVER:
            in_poll = now - reader.started
            cycle = now - reader.ended
            self.poll_idle_ratios.add(in_poll / cycle if cycle > 0.0 else 0.0, now)
        reader.ended = now

    # The group coordinator.

    def on_heartbeat_response(
        self,
        request: Heartbeat,
        response: HeartbeatResponse,
        sent_at: float,
        now: float,
    ) -> None:
        """Count a heartbeat, and a rebalance if the assignment has changed.

        The first assignment after a join counts too, even if it is empty.
        """
        self.heartbeat_times.add(now - sent_at, now)
        if request.member_epoch <= 0:
            self._assignment = None
        if response.assignment not in (None, self._assignment):
            self._assignment = response.assignment
            self.rebalances.add(1.0, now)

    # The partition leaders.

    def on_acknowledgements_sent(
        self, acknowledgements: Acknowledgements, now: float
    ) -> None:
        """Count the offsets of a request, gaps among them."""
        count = renewals = 0
        for ranges in acknowledgements.values():
            for first, last, kinds in ranges:
                offsets = last - first + 1
                count += offsets
                if RENEW in kinds:
                    renewals += offsets if len(kinds) == 1 else kinds.count(RENEW)
        if count:
            self.acks_sent.add(count, now)
            self.renewals += renewals

    def on_acknowledge_response(
        self, acknowledgements: Acknowledgements, sent_at: float, now: float
    ) -> None:
        """Measure the latency of a request, if it had acknowledgements."""
        if acknowledgements and self.on_acknowledge_latency is not None:
            self.on_acknowledge_latency(now - sent_at)

    def on_fetched(
        self, response: ShareFetchResponse, sent_at: float, now: float
    ) -> None:
        """Count a fetch response and its records.

        A response without records changes neither the number nor the size of records
        per request; so it is in Kafka's client.
        """
        self.fetch_latencies.add(now - sent_at, now)
        self.throttle_times.add(response.throttle, now)
        count = 0
        for partition in response.partitions:
            for first, last, _ in partition.acquired:
                count += last - first + 1
        if count:
            self.fetch_records.add(count, now)

    def on_fetch_decoded(self, size: int, now: float) -> None:
        """Count the bytes of a response's records."""
        self.fetch_sizes.add(size, now)

    def on_acknowledge_results(
        self, results: Sequence[AcknowledgeResult], now: float
    ) -> None:
        failed = 0
        for result in results:
            if result.error is not None:
                failed += result.last_offset - result.first_offset + 1
        if failed:
            self.acks_failed.add(failed, now)


def _none_held() -> int:
    return 0
