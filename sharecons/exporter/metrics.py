"""Prometheus metrics from snapshots."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final, final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from sharecons.exporter.archived import ArchivedCounts
from sharecons.exporter.snapshot import ExportedPartition, Snapshot
from sharecons.inspection.diagnosis.offset_states import ARCHIVED, OffsetStatus
from sharecons.version import VERSION

__all__ = ["Metrics", "make_registry"]

GROUP: Final = "kafka_share_group"
PREFIX: Final = "sharecons_exporter"
STATES: Final = ("Empty", "Stable", "Dead")
PARTITION: Final = ("group", "topic", "partition")
ERROR_SOURCES: Final = (
    "cluster",
    "groups",
    "offsets",
    "logs",
    "states",
    "configs",
    "records",
    "topics",
    "ledgers",
)
NOT_COUNTED: Final = (OffsetStatus.ABOVE, OffsetStatus.REMOVED)
"""Statuses without a delivery count, or of records that no longer exist."""

Value = Callable[[ExportedPartition, float], float | None]

GAUGES: Final[tuple[tuple[str, str, Value], ...]] = (
    (
        "lag_records",
        "Offsets from the start offset to the log's end that are neither acknowledged "
        "nor archived (KIP-1226).",
        lambda one, _: one.lag,
    ),
    (
        "start_offset",
        "The share-partition's start offset: all offsets before it are settled.",
        lambda one, _: one.start_offset,
    ),
    (
        "log_end_offset",
        "The next offset that will be written to the partition.",
        lambda one, _: one.end_offset,
    ),
    (
        "available_or_locked_records",
        "Offsets that were delivered and are not settled, as stored by the share "
        "coordinator. Only partition leaders know locks: these offsets are available "
        "or locked. Offsets that are locked for the first time, above all that were "
        "settled or released, are not counted.",
        lambda one, _: one.count(OffsetStatus.OPEN),
    ),
    (
        "archived_records",
        "Offsets from the start offset on that are archived or archiving: rejected, or "
        "at the delivery limit. They are not delivered again.",
        lambda one, _: one.count(*ARCHIVED),
    ),
    (
        "window_records",
        "Offsets from the start offset to the last one that was settled or released: "
        "at least this many are in flight.",
        lambda one, _: one.window,
    ),
    (
        "window_limit_records",
        "Offsets that can be in flight: share.partition.max.record.locks.",
        lambda one, _: one.window_limit,
    ),
    (
        "oldest_unsettled_age_seconds",
        "Seconds since the timestamp of the oldest unsettled record; 0 if there is no "
        "record, left out if it has no timestamp.",
        lambda one, at: one.age(at),
    ),
)
"""Metrics of each partition: name, help, and value."""


def make_registry(metrics: "Metrics") -> CollectorRegistry:
    """Return a new registry with these metrics and the metrics of the process."""
    registry = CollectorRegistry()
    registry.register(metrics)
    ProcessCollector(registry=registry)
    return registry


@final
class Metrics(Collector):
    """The metrics of the latest snapshot; can be scraped in any thread.

    A scrape sends no requests. Values that the last collection could not read are left
    out, so that old values are never taken for new ones.

    Attributes:
        reached: True while a broker responds.
    """

    def __init__(self) -> None:
        self._latest: Snapshot | None = None
        self.reached = False
        self._collections = 0
        self._failures: Counter[str] = Counter()
        self._archived = ArchivedCounts()

    def update(self, snapshot: Snapshot) -> None:
        """Replace the snapshot."""
        self._collections += 1
        # A new object, as a scrape in another thread can iterate the old one.
        self._failures = self._failures + Counter(snapshot.error_counts)
        self._archived = self._archived.after(snapshot)
        self._latest = snapshot
        self.reached = snapshot.reached

    def broker_responded(self) -> None:
        """Record that a broker responds, before a collection has ended."""
        self.reached = True

    def collect(self) -> Iterable[Metric]:
        """Return all metrics; called by prometheus-client."""
        yield from self._families(self._latest)

    def describe(self) -> Iterable[Metric]:
        """Return all metrics by name, so that a scrape can choose some of them."""
        return self._families(Snapshot(at=0.0, duration=0.0))

    def _families(self, latest: Snapshot | None) -> Iterator[Metric]:
        yield from self._exporter_metrics(latest)
        if latest is not None:
            yield from _group_metrics(latest)
            yield from _partition_metrics(latest)
            yield _archived_seen(self._archived)
            yield _stalled(latest)
            yield _missing_topics(latest)
            yield _delivery_counts(latest)
            yield _backlogs(latest)

    def _exporter_metrics(self, latest: Snapshot | None) -> Iterator[Metric]:
        up = "1 if a broker responds, 0 if none does."
        yield _gauge(f"{PREFIX}_up", up, self.reached)
        yield CounterMetricFamily(
            f"{PREFIX}_collections", "Collections that ended.", self._collections
        )
        errors = CounterMetricFamily(
            f"{PREFIX}_errors",
            "Errors of collections, by what could not be read.",
            labels=["what"],
        )
        for question in ERROR_SOURCES:
            errors.add_metric([question], self._failures[question])
        yield errors
        yield InfoMetricFamily(f"{PREFIX}_build", "The version.", {"version": VERSION})
        if latest is not None:
            yield _gauge(
                f"{PREFIX}_last_collection_timestamp_seconds",
                "When the last collection ended, in seconds since 1970.",
                latest.at,
            )
            yield _gauge(
                f"{PREFIX}_last_collection_duration_seconds",
                "How long the last collection took.",
                latest.duration,
            )


def _gauge(name: str, help_text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, help_text, value)


def _group_metrics(latest: Snapshot) -> Iterator[Metric]:
    members = GaugeMetricFamily(
        f"{GROUP}_members", "Members of the group.", labels=["group"]
    )
    states = GaugeMetricFamily(
        f"{GROUP}_state",
        "1 for the state that the group is in, 0 for the others.",
        labels=["group", "state"],
    )
    for group_id, group in latest.groups.items():
        if group.members is not None:
            members.add_metric([group_id], group.members)
        if group.state is not None:
            for state in dict.fromkeys((*STATES, group.state)):
                states.add_metric([group_id, state], state == group.state)
    yield members
    yield states


def _partition_metrics(latest: Snapshot) -> Iterator[Metric]:
    for name, help_text, value_of in GAUGES:
        gauge = GaugeMetricFamily(f"{GROUP}_{name}", help_text, labels=PARTITION)
        for labels, one in _partitions(latest):
            value = value_of(one, latest.at)
            if value is not None:
                gauge.add_metric(labels, value)
        yield gauge


def _delivery_counts(latest: Snapshot) -> Metric:
    gauge = GaugeMetricFamily(
        f"{GROUP}_records_by_delivery_count",
        "Offsets from the start offset on by delivery count and status: acknowledged, "
        "archived, archiving, available_or_locked, unknown.",
        labels=(*PARTITION, "status", "delivery_count"),
    )
    for labels, one in _partitions(latest):
        counts: Counter[tuple[str, int]] = Counter()
        for each in one.ranges or ():
            if each.status not in NOT_COUNTED and each.delivery_count is not None:
                counts[each.status.value, each.delivery_count] += each.count
        for (status, deliveries), count in sorted(counts.items()):
            gauge.add_metric([*labels, status, str(deliveries)], count)
    return gauge


def _stalled(latest: Snapshot) -> Metric:
    gauge = GaugeMetricFamily(
        f"{GROUP}_stalled",
        "1 if the partition is stalled for this reason, 0 if not: no_members, "
        "unassigned, window_full, no_progress (nothing was settled or released for "
        "longer than a lock lasts), or held (nothing was ever settled).",
        labels=(*PARTITION, "reason"),
    )
    for labels, one in _partitions(latest):
        for reason, is_so in one.stalled.items():
            gauge.add_metric([*labels, reason], is_so)
    return gauge


def _missing_topics(latest: Snapshot) -> Metric:
    gauge = GaugeMetricFamily(
        f"{GROUP}_missing_topic",
        "1 if a topic that members subscribe to does not exist, 0 if it exists.",
        labels=("group", "topic"),
    )
    for group_id, group in latest.groups.items():
        for topic, is_missing in sorted(group.missing_topics.items()):
            gauge.add_metric([group_id, topic], is_missing)
    return gauge


def _backlogs(latest: Snapshot) -> Metric:
    gauge = GaugeMetricFamily(
        "sharecons_ledger_backlog_records",
        "Offsets in the ledger of a Spark query that no batch has finished. They are "
        "accepted, so they are not in the lag of the group.",
        labels=(*PARTITION, "ledger"),
    )
    for location, ledger in latest.ledgers.items():
        group = latest.groups.get(ledger.group_id)
        # Without zeros, a sum with the lag would be empty while there is no backlog.
        keys = {*ledger.offsets, *(group.partitions if group else ())}
        for key in sorted(keys):
            labels = [ledger.group_id, key.topic, str(key.partition), location]
            gauge.add_metric(labels, ledger.offsets.get(key, 0))
    return gauge


def _archived_seen(archived: ArchivedCounts) -> Metric:
    counter = CounterMetricFamily(
        f"{GROUP}_archived_seen",
        "Offsets that a collection found archived and the one before did not. Those "
        "that the start offset passes between two collections are not counted.",
        labels=PARTITION,
    )
    for (group_id, key), count in archived.totals.items():
        counter.add_metric([group_id, key.topic, str(key.partition)], count)
    return counter


def _partitions(latest: Snapshot) -> Iterator[tuple[list[str], ExportedPartition]]:
    for group_id, group in latest.groups.items():
        for key, one in sorted(group.partitions.items()):
            yield [group_id, key.topic, str(key.partition)], one
