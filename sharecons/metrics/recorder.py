"""Records what one consumer does, and returns it as metrics (`catalog`).

The consumer and its member call the `on_` methods: once per request, response, lease or
poll, never once per record. `snapshot` computes the values. Times are in seconds on the
consumer's clock; the values of some metrics are in milliseconds, as the KIP wants them.

Averages, maxima and rates are computed as in Kafka's clients: they cover the last
SAMPLES windows. Values are collected in one sample per window, and a sample is dropped
when it has received no value for as long as all windows last. So a figure forgets a
value after 60 to 90 seconds, and costs a few numbers however many values there are.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Optional, final

from sharecons._record import RENEW
from sharecons.metrics.catalog import MetricName
from sharecons.metrics.histogram_recorder import HistogramRecorder
from sharecons.protocol.acknowledge.result_log import AcknowledgeResult
from sharecons.protocol.group.messages import Heartbeat, HeartbeatResponse
from sharecons.protocol.partitions import SharePartition
from sharecons.protocol.share_messages import Acknowledgements, ShareFetchResponse

__all__ = ["FetchSize", "MetricsRecorder", "PollTimes", "SampledValues"]

MS: Final = 1000.0
HOUR: Final = 3600.0

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
    """

    __slots__ = ("_current", "_max_samples", "_min_full_windows", "_samples", "_window")

    def __init__(self, samples: int = SAMPLES, window: float = WINDOW) -> None:
        self._window = window
        self._min_full_windows = samples - 1
        # One more: until a window has passed, the oldest is still partly of interest.
        self._max_samples = samples + 1
        self._samples: list[_Sample] = []
        self._current = -1

    def add(self, value: float, now: float) -> None:
        if not self._samples:
            self._start_next(now)
        sample = self._samples[self._current]
        if now - sample.start >= self._window:
            self._start_next(now)
            sample = self._samples[self._current]
        sample.last = now
        sample.count += 1
        sample.total += value
        if value > sample.maximum:
            sample.maximum = value

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
        age = (self._min_full_windows + 1) * self._window
        return [sample for sample in self._samples if now - sample.last < age]

    def _duration(self, samples: list[_Sample], now: float) -> float:
        """Return how long samples last, with an empty window for each that is missing.

        Without them, the rate would be infinite at the first value.
        """
        elapsed = now - min([sample.start for sample in samples]) if samples else 0.0
        missing = self._min_full_windows - int(elapsed / self._window)
        return elapsed + max(0, missing) * self._window

    def _start_next(self, now: float) -> None:
        self._current = (self._current + 1) % self._max_samples
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
        acknowledgement_latencies: set this to receive the seconds from each request
            with acknowledgements to its response.
    """

    def __init__(self, samples: int = SAMPLES, window: float = WINDOW) -> None:
        self.clock: Callable[[], float] | None = None
        self.held_records: Callable[[], int] = _none_held
        self.problems: Callable[[], Sequence[str]] = tuple
        self.acknowledgement_latencies: Optional[HistogramRecorder] = None  # noqa: UP045
        self._last_poll = NEVER
        self._between_polls = SampledValues(samples, window)
        self._poll_idle_ratios = SampledValues(samples, window)
        self._last_heartbeat = NEVER
        self._heartbeat_times = SampledValues(samples, window)
        self._heartbeat_total = 0
        self._rebalances = SampledValues(samples, window)
        self._rebalance_total = 0
        self._assignment: frozenset[SharePartition] | None = None
        self._fetch_sizes = SampledValues(samples, window)
        self._bytes_fetched = 0
        self._fetch_records = SampledValues(samples, window)
        self._records_fetched = 0
        self._fetch_latencies = SampledValues(samples, window)
        self._fetch_total = 0
        self._throttle_times = SampledValues(samples, window)
        self._acks_sent = SampledValues(samples, window)
        self._acks_sent_total = 0
        self._acks_failed = SampledValues(samples, window)
        self._acks_failed_total = 0
        self._released_unprocessed = 0
        self._damaged_rejected = 0
        self._last_deliveries_unprocessed = 0
        self._archived = 0
        self._renewals = 0
        self._locks_lost = 0
        self._lock_overruns = 0

    # The application reads.

    def on_poll_started(self, reader: PollTimes, now: float) -> None:
        """Count the start of a reader's poll.

        The first poll of a reader has no poll before it, so it counts for neither the
        time between polls nor the idle ratio.
        """
        if reader.started != NEVER:
            self._between_polls.add(now - reader.started, now)
        reader.started = now
        self._last_poll = now

    def on_poll_ended(self, reader: PollTimes, now: float) -> None:
        """Count the end of a poll: with records, an error or a timeout."""
        if reader.ended != NEVER:
            in_poll = now - reader.started
            cycle = now - reader.ended
            self._poll_idle_ratios.add(in_poll / cycle if cycle > 0.0 else 0.0, now)
        reader.ended = now

    # The group coordinator.

    def on_heartbeat_sent(self, now: float) -> None:
        self._last_heartbeat = now

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
        self._heartbeat_times.add(now - sent_at, now)
        self._heartbeat_total += 1
        if request.member_epoch <= 0:
            self._assignment = None
        if response.assignment not in (None, self._assignment):
            self._assignment = response.assignment
            self._rebalances.add(1.0, now)
            self._rebalance_total += 1

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
            self._acks_sent.add(count, now)
            self._acks_sent_total += count
            self._renewals += renewals

    def on_acknowledge_response(
        self, acknowledgements: Acknowledgements, sent_at: float, now: float
    ) -> None:
        """Measure the latency of a request, if it had acknowledgements."""
        if acknowledgements and self.acknowledgement_latencies is not None:
            self.acknowledgement_latencies.observe(now - sent_at)

    def on_fetched(
        self, response: ShareFetchResponse, sent_at: float, now: float
    ) -> None:
        """Count a fetch response and its records.

        A response without records changes neither the number nor the size of records
        per request; so it is in Kafka's client.
        """
        self._fetch_latencies.add(now - sent_at, now)
        self._fetch_total += 1
        self._throttle_times.add(response.throttle, now)
        count = 0
        for partition in response.partitions:
            for first, last, _ in partition.acquired:
                count += last - first + 1
        if count:
            self._fetch_records.add(count, now)
            self._records_fetched += count

    def on_fetch_decoded(self, size: int, now: float) -> None:
        """Count the bytes of a response's records."""
        self._fetch_sizes.add(size, now)
        self._bytes_fetched += size

    def on_acknowledge_results(
        self, results: Sequence[AcknowledgeResult], now: float
    ) -> None:
        failed = 0
        for result in results:
            if result.error is not None:
                failed += result.last_offset - result.first_offset + 1
        if failed:
            self._acks_failed.add(failed, now)
            self._acks_failed_total += failed

    # Beyond the KIP.

    def on_released_unprocessed(self, records: int, last_deliveries: int) -> None:
        """Count records that the application did not read before it closed.

        `last_deliveries` of them were on their last delivery.
        """
        self._released_unprocessed += records
        self._last_deliveries_unprocessed += last_deliveries

    def on_archived(self, records: int) -> None:
        self._archived += records

    def on_damaged_rejected(self, records: int) -> None:
        self._damaged_rejected += records

    def on_locks_lost(self, records: int) -> None:
        self._locks_lost += records

    def on_lock_overrun(self, records: int) -> None:
        self._lock_overruns += records

    def snapshot(self) -> Mapping[MetricName, float]:
        """Return all metrics, in the order of `catalog.METRICS`."""
        now = self.clock() if self.clock is not None else 0.0
        return {
            "last-poll-seconds-ago": _seconds_since(self._last_poll, now),
            "time-between-poll-avg": self._between_polls.average(now) * MS,
            "time-between-poll-max": self._between_polls.maximum(now) * MS,
            "poll-idle-ratio-avg": self._poll_idle_ratios.average(now),
            "heartbeat-response-time-max": self._heartbeat_times.maximum(now) * MS,
            "heartbeat-rate": self._heartbeat_times.frequency(now),
            "heartbeat-total": self._heartbeat_total,
            "last-heartbeat-seconds-ago": _seconds_since(self._last_heartbeat, now),
            "rebalance-total": self._rebalance_total,
            "rebalance-rate-per-hour": self._rebalances.rate(now) * HOUR,
            "fetch-size-avg": self._fetch_sizes.average(now),
            "fetch-size-max": self._fetch_sizes.maximum(now),
            "bytes-fetched-rate": self._fetch_sizes.rate(now),
            "bytes-fetched-total": self._bytes_fetched,
            "records-per-request-avg": self._fetch_records.average(now),
            "records-per-request-max": self._fetch_records.maximum(now),
            "records-fetched-rate": self._fetch_records.rate(now),
            "records-fetched-total": self._records_fetched,
            "acknowledgements-send-rate": self._acks_sent.rate(now),
            "acknowledgements-send-total": self._acks_sent_total,
            "acknowledgements-error-rate": self._acks_failed.rate(now),
            "acknowledgements-error-total": self._acks_failed_total,
            "fetch-latency-avg": self._fetch_latencies.average(now) * MS,
            "fetch-latency-max": self._fetch_latencies.maximum(now) * MS,
            "fetch-rate": self._fetch_latencies.frequency(now),
            "fetch-total": self._fetch_total,
            "fetch-throttle-time-avg": self._throttle_times.average(now) * MS,
            "fetch-throttle-time-max": self._throttle_times.maximum(now) * MS,
            "sharecons-records-held": self.held_records(),
            "sharecons-problems": len(self.problems()),
            "sharecons-records-released-unprocessed-total": self._released_unprocessed,
            "sharecons-last-deliveries-unprocessed-total": (
                self._last_deliveries_unprocessed
            ),
            "sharecons-records-archived-total": self._archived,
            "sharecons-damaged-records-rejected-total": self._damaged_rejected,
            "sharecons-renewals-total": self._renewals,
            "sharecons-locks-lost-total": self._locks_lost,
            "sharecons-lock-overruns-total": self._lock_overruns,
        }


def _none_held() -> int:
    return 0


def _seconds_since(then: float, now: float) -> float:
    """Return the time that has passed; -1.0 if there was no such event."""
    return now - then if then != NEVER else -1.0
