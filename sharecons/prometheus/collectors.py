"""Collectors for prometheus-client: they read values when Prometheus scrapes."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, final

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from sharecons.consumer.share_consumer import ShareConsumer
from sharecons.errors import ConfigurationError
from sharecons.histogram import Histogram
from sharecons.metrics.families import (
    MetricFamily,
    add_up,
    consumer_families,
    families_of,
    with_labels,
)
from sharecons.worker.metrics import WORKER_METRICS
from sharecons.worker.share_worker import ShareWorker

__all__ = [
    "ConsumerCollector",
    "FamilyCollector",
    "WorkerCollector",
]

OWN_LABELS: Final = frozenset(
    {"group", "le"}.union(*(each.labels for each in WORKER_METRICS.values()))
)


@final
class FamilyCollector(Collector):
    """Collects metric families.

    Args:
        families: returns the present ones; is called in the thread of each scrape.
    """

    def __init__(self, families: Callable[[], Iterable[MetricFamily]]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        """Yield the families."""
        for family in self._families():
            yield _convert(family)

    def describe(self) -> Iterable[Metric]:
        """Return nothing: registering the collector collects no values."""
        return ()


class WorkerCollector(Collector):
    """Collects the metrics of workers, and of their consumers: docs/metrics.md.

    Register it in a registry of prometheus-client. Each value has the label `group`.
    Values of several workers of a group are added up: register one collector for all
    workers of a registry.

    Args:
        workers: one or more; they need not have started.
        labels: further labels of all values.

    Raises:
        ConfigurationError: there is no worker, or a label is one of the metrics' own.
    """

    def __init__(
        self, *workers: ShareWorker[Any, Any], labels: Mapping[str, str] | None = None
    ) -> None:
        if not workers:
            raise ConfigurationError(
                "WorkerCollector needs a worker: write WorkerCollector(worker)"
            )
        self._workers = workers
        self._labels = _check_labels("WorkerCollector", labels)

    def collect(self) -> Iterator[Metric]:
        """Yield the present values; any thread can call this."""
        families: list[MetricFamily] = []
        for worker in self._workers:
            families += families_of(
                worker.group_id,
                WORKER_METRICS,
                worker.metrics(),
                worker.consumer_metrics(),
            )
        for family in with_labels(add_up(families), self._labels):
            yield _convert(family)

    def describe(self) -> Iterable[Metric]:
        """Return nothing: registering the collector collects no values."""
        return ()


class ConsumerCollector(Collector):
    """Collects the metrics of consumers, with times in seconds.

    Rates are left out, and figures without a value. Each value has the label `group`.
    Values of several consumers of a group are added up, and their averages, maxima and
    times are left out.

    Args:
        consumers: one or more; they need not have started.
        labels: further labels of all values.

    Raises:
        ConfigurationError: there is no consumer, or a label is one of the metrics' own.
    """

    def __init__(
        self,
        *consumers: ShareConsumer[Any, Any],
        labels: Mapping[str, str] | None = None,
    ) -> None:
        if not consumers:
            raise ConfigurationError(
                "ConsumerCollector needs a consumer: write ConsumerCollector(consumer)"
            )
        self._consumers = consumers
        self._labels = _check_labels("ConsumerCollector", labels)

    def collect(self) -> Iterator[Metric]:
        """Yield the present values; any thread can call this."""
        only_sums = len(self._consumers) > 1
        families: list[MetricFamily] = []
        for consumer in self._consumers:
            own = consumer_families(consumer.metrics(), only_sums=only_sums)
            families += with_labels(own, {"group": consumer.group_id})
        for family in with_labels(add_up(families), self._labels):
            yield _convert(family)

    def describe(self) -> Iterable[Metric]:
        """Return nothing: registering the collector collects no values."""
        return ()


def _check_labels(owner: str, labels: Mapping[str, str] | None) -> Mapping[str, str]:
    for name in labels or {}:
        if name in OWN_LABELS:
            raise ConfigurationError(
                f"{owner}: the label {name!r} is one of the metrics' own; choose "
                "another name"
            )
    return dict(labels or {})


def _convert(family: MetricFamily) -> Metric:
    arguments = family.name, f"{family.description}."
    labels = list(family.labels)
    if family.kind == "histogram":
        histogram = HistogramMetricFamily(*arguments, labels=labels)
        for own, value in family.values.items():
            assert isinstance(value, Histogram), "values of histograms"
            histogram.add_metric(list(own), _cumulative(value), value.sum)
        return histogram
    kind = GaugeMetricFamily if family.kind == "gauge" else CounterMetricFamily
    metric = kind(*arguments, labels=labels)
    for own, value in family.values.items():
        assert not isinstance(value, Histogram), "values of counters and gauges"
        metric.add_metric(list(own), value)
    return metric


def _cumulative(histogram: Histogram) -> list[tuple[str, float]]:
    """Return the buckets as Prometheus has them: upper bounds, and counts below."""
    buckets: list[tuple[str, float]] = []
    count = 0
    bounds = [*map(str, histogram.bounds), "+Inf"]
    for bound, each in zip(bounds, histogram.counts, strict=True):
        count += each
        buckets.append((bound, float(count)))
    return buckets
