"""Prometheus metrics from snapshots."""

import enum
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, final, get_args

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from sharecons._record import TopicPartition
from sharecons.exporter.archived import ArchivedCounts
from sharecons.exporter.snapshot import Snapshot
from sharecons.exporter.stalls import stalls_of
from sharecons.group_state.group_states import GroupState, PartitionState, Source
from sharecons.group_state.offset_states import ARCHIVED, OffsetStatus
from sharecons.inspection.diagnosis.findings import Reason
from sharecons.version import VERSION

__all__ = ["Level", "Metrics", "make_registry"]

GROUP: Final = "kafka_share_group"
PREFIX: Final = "sharecons_exporter"
STATES: Final = ("Empty", "Stable", "Dead")
NOT_COUNTED: Final = (OffsetStatus.ABOVE, OffsetStatus.REMOVED)
"""Statuses without a delivery count, or of records that no longer exist."""


class Level(enum.Enum):
    """The level of values: each has these labels."""

    PARTITION = ("group", "topic", "partition")
    TOPIC = ("group", "topic")

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the labels."""
        labels: tuple[str, ...] = self.value
        return labels

    def of(self, labels: tuple[str, ...]) -> tuple[str, ...]:
        """Return the values of the labels, given the labels of a partition."""
        return labels[: len(self.value)]


Value = Callable[[PartitionState, GroupState, float], float | None]
ByTopic = Callable[[Iterable[float]], float]
"""Returns the value of a topic from the values of its partitions."""

GAUGES: Final[tuple[tuple[str, str, Value, ByTopic | None], ...]] = (
    (
        "lag_records",
        "Offsets from the start offset to the log's end that are neither acknowledged "
        "nor archived (KIP-1226).",
        lambda one, *_: one.lag,
        sum,
    ),
    (
        "start_offset",
        "The share-partition's start offset: all offsets before it are settled.",
        lambda one, *_: one.start_offset,
        None,
    ),
    (
        "log_end_offset",
        "The next offset that will be written to the partition.",
        lambda one, *_: one.end_offset,
        None,
    ),
    (
        "available_or_locked_records",
        "Offsets that were delivered and are not settled, as stored by the share "
        "coordinator. Only partition leaders know locks: these offsets are available "
        "or locked. Offsets that are locked for the first time, above all that were "
        "settled or released, are not counted.",
        lambda one, *_: one.count(OffsetStatus.OPEN) if one.has_state else None,
        sum,
    ),
    (
        "archived_records",
        "Offsets from the start offset on that are archived or archiving: rejected, or "
        "at the delivery limit. They are not delivered again.",
        lambda one, *_: one.count(*ARCHIVED) if one.has_state else None,
        sum,
    ),
    (
        "window_records",
        "Offsets from the start offset to the last one that was settled or released: "
        "at least this many are in flight.",
        lambda one, *_: one.window if one.has_state else None,
        max,
    ),
    (
        "window_limit_records",
        "Offsets that can be in flight: share.partition.max.record.locks.",
        lambda _, group, __: None if group.facts is None else group.facts.record_locks,
        max,
    ),
    (
        "oldest_unsettled_age_seconds",
        "Seconds since the timestamp of the oldest unsettled record; 0 if there is no "
        "record, left out if it has no timestamp.",
        lambda one, _, at: one.age(at),
        max,
    ),
)
"""Metrics of each partition: name, help, value, and how a topic has it, or None."""


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

    Args:
        level: whether values are of partitions or of topics.

    Attributes:
        reached: True while a broker responds.
    """

    def __init__(self, level: Level = Level.PARTITION) -> None:
        self._level = level
        self._latest: Snapshot | None = None
        self.reached = False
        self._collections = 0
        self._failures: Counter[Source] = Counter()
        self._archived = ArchivedCounts()
        self._stalls: Mapping[tuple[str, TopicPartition], tuple[Reason, ...]] = {}

    def update(self, snapshot: Snapshot) -> None:
        """Replace the snapshot."""
        self._collections += 1
        # A new object, as a scrape in another thread can iterate the old one.
        self._failures = self._failures + Counter(snapshot.error_counts)
        self._archived = self._archived.after(snapshot)
        self._stalls = {
            (group_id, key): reasons
            for group_id, group in snapshot.groups.items()
            for key, reasons in sorted(stalls_of(group, snapshot.at).items())
        }
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
            yield from _partition_metrics(latest, self._level)
            yield _archived_seen(self._archived, self._level)
            yield _stalled(self._stalls, self._level)
            yield _missing_topics(latest)
            yield _delivery_counts(latest, self._level)
            yield _backlogs(latest, self._level)

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
        for source in get_args(Source):
            errors.add_metric([source], self._failures[source])
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
        if group.group is not None:
            members.add_metric([group_id], len(group.group.members))
            for state in dict.fromkeys((*STATES, group.group.state)):
                states.add_metric([group_id, state], state == group.group.state)
    yield members
    yield states


def _partition_metrics(latest: Snapshot, level: Level) -> Iterator[Metric]:
    for name, help_text, value_of, by_topic in GAUGES:
        if level is Level.TOPIC and by_topic is None:
            continue
        values: dict[tuple[str, ...], list[float]] = {}
        for labels, group, one in _partitions(latest):
            value = value_of(one, group, latest.at)
            if value is not None:
                values.setdefault(level.of(labels), []).append(value)
        gauge = GaugeMetricFamily(f"{GROUP}_{name}", help_text, labels=level.labels)
        for key, each in values.items():
            gauge.add_metric(key, (by_topic or sum)(each))
        yield gauge


def _delivery_counts(latest: Snapshot, level: Level) -> Metric:
    gauge = GaugeMetricFamily(
        f"{GROUP}_records_by_deliveries",
        "Offsets from the start offset on by delivery count and status: acknowledged, "
        "archived, archiving, available_or_locked, unknown.",
        labels=(*level.labels, "status", "delivery_count"),
    )
    counts: Counter[tuple[tuple[str, ...], str, int]] = Counter()
    for labels, _, one in _partitions(latest):
        for each in one.ranges:
            if each.status not in NOT_COUNTED and each.delivery_count is not None:
                key = level.of(labels), each.status.value, each.delivery_count
                counts[key] += each.count
    for (labels, status, deliveries), count in sorted(counts.items()):
        gauge.add_metric((*labels, status, str(deliveries)), count)
    return gauge


def _stalled(
    stalls: Mapping[tuple[str, TopicPartition], tuple[Reason, ...]], level: Level
) -> Metric:
    gauge = GaugeMetricFamily(
        f"{GROUP}_stalled",
        "1 if the partition, or one of the topic, is stalled for this reason: "
        "no_members, unassigned, window_full, no_progress (nothing was settled or "
        "released for longer than a lock lasts), or held (nothing was ever settled). "
        "Left out otherwise.",
        labels=(*level.labels, "reason"),
    )
    stalled = {
        (*level.of(_labels(group_id, key)), reason.value): None
        for (group_id, key), reasons in stalls.items()
        for reason in reasons
    }
    for key in stalled:
        gauge.add_metric(key, 1)
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


def _backlogs(latest: Snapshot, level: Level) -> Metric:
    gauge = GaugeMetricFamily(
        "sharecons_ledger_backlog_records",
        "Offsets in the ledger of a Spark query that no batch has finished. They are "
        "accepted, so they are not in the lag of the group.",
        labels=(*level.labels, "ledger"),
    )
    counts: Counter[tuple[str, ...]] = Counter()
    for location, ledger in latest.ledgers.items():
        group = latest.groups.get(ledger.group_id)
        # Without zeros, a sum with the lag would be empty while there is no backlog.
        keys = {*ledger.offsets, *(group.partitions if group else ())}
        for key in sorted(keys):
            labels = level.of(_labels(ledger.group_id, key))
            counts[*labels, location] += ledger.offsets.get(key, 0)
    for labels, count in counts.items():
        gauge.add_metric(labels, count)
    return gauge


def _archived_seen(archived: ArchivedCounts, level: Level) -> Metric:
    counter = CounterMetricFamily(
        f"{GROUP}_archived_seen",
        "Offsets that a collection found archived and the one before did not. Those "
        "that the start offset passes between two collections are not counted.",
        labels=level.labels,
    )
    counts: Counter[tuple[str, ...]] = Counter()
    for (group_id, key), count in archived.totals.items():
        counts[level.of(_labels(group_id, key))] += count
    for labels, count in counts.items():
        counter.add_metric(labels, count)
    return counter


def _partitions(
    latest: Snapshot,
) -> Iterator[tuple[tuple[str, ...], GroupState, PartitionState]]:
    for group_id, group in latest.groups.items():
        for key, one in sorted(group.partitions.items()):
            if "offsets" not in one.unread:
                yield _labels(group_id, key), group, one


def _labels(group_id: str, key: TopicPartition) -> tuple[str, ...]:
    return group_id, key.topic, str(key.partition)
