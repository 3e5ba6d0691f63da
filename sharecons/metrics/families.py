"""Metric families: values under Prometheus' names, and their sums over processes.

A family is what a worker or a consumer exports. This module needs no package: processes
of `sharecons run` send families to their supervisor, which adds them up.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar, cast

from sharecons.histogram import Histogram
from sharecons.metrics.catalog import METRICS, MetricName
from sharecons.metrics.metric import Kind, Metric

__all__ = [
    "MetricFamily",
    "add_up",
    "consumer_families",
    "families_of",
    "family_of",
    "table_families",
    "with_labels",
    "without_gauges",
]

Name = TypeVar("Name", bound=str)
Values = Mapping[tuple[str, ...], float | Histogram]


class MetricFamily(NamedTuple):
    """The values of a metric.

    Attributes:
        name: with `_total` for counters.
        labels: the names of its labels.
        values: by the values of the labels.
    """

    name: str
    kind: Kind
    description: str
    labels: tuple[str, ...]
    values: Values


def table_families(
    table: Mapping[Name, Metric], values: Mapping[Name, Values]
) -> list[MetricFamily]:
    """Return the families of the metrics of a table that have values."""
    return [
        family_of(metric, values[name])
        for name, metric in table.items()
        if values[name]
    ]


def family_of(metric: Metric, values: Values) -> MetricFamily:
    """Return the family of a metric."""
    text = metric.description[:1].upper() + metric.description[1:]
    name, kind, labels = metric.prometheus_name, metric.kind, metric.labels
    return MetricFamily(name, kind, text, labels, values)


def consumer_families(
    values: Mapping[MetricName, float], *, only_sums: bool = False
) -> list[MetricFamily]:
    """Return the families of `ShareConsumer.metrics()`, with times in seconds.

    Rates are left out: Prometheus computes them from the totals. So are figures without
    a value: NaN, and times since events that have not occurred (-1).

    Args:
        only_sums: leave out averages, maxima and times, which do not add up.
    """
    return [
        family_of(
            METRICS[name],
            {(): value / 1000.0 if METRICS[name].unit == "ms" else value},
        )
        for name, value in values.items()
        if "-rate" not in name
        and value >= 0.0  # NaN is not
        and not (only_sums and not METRICS[name].adds_up)
    ]


def families_of(
    group_id: str,
    table: Mapping[Name, Metric],
    worker: Mapping[Name, Values],
    consumer: Mapping[MetricName, float],
) -> list[MetricFamily]:
    """Return the families of a worker and of its consumer that add up.

    Args:
        table: of the worker's metrics.
        worker, consumer: their `metrics()`.
    """
    families = table_families(table, worker)
    families += consumer_families(consumer, only_sums=True)
    return with_labels(families, {"group": group_id})


def with_labels(
    families: Iterable[MetricFamily], labels: Mapping[str, str]
) -> list[MetricFamily]:
    """Return families with further labels, before their own."""
    names, values = tuple(labels), tuple(labels.values())
    return [
        each._replace(
            labels=(*names, *each.labels),
            values={(*values, *own): value for own, value in each.values.items()},
        )
        for each in families
    ]


def without_gauges(families: Iterable[MetricFamily]) -> list[MetricFamily]:
    """Return the families of a process that remain after its end: its counters."""
    return [each for each in families if each.kind != "gauge"]


def add_up(all_families: Iterable[MetricFamily]) -> list[MetricFamily]:
    """Return families with the sums of the values of families of one name.

    Families of one name have the same labels, and the same bounds.
    """
    sums: dict[str, MetricFamily] = {}
    for each in all_families:
        known = sums.get(each.name)
        if known is None:
            sums[each.name] = each._replace(values=dict(each.values))
            continue
        values = cast("dict[tuple[str, ...], float | Histogram]", known.values)
        for labels, value in each.values.items():
            values[labels] = _sum(values[labels], value) if labels in values else value
    return list(sums.values())


def _sum(one: float | Histogram, other: float | Histogram) -> float | Histogram:
    if isinstance(one, Histogram):
        assert isinstance(other, Histogram), "families of one name are of one kind"
        counts = tuple(a + b for a, b in zip(one.counts, other.counts, strict=True))
        return Histogram(one.bounds, counts, one.sum + other.sum)
    assert not isinstance(other, Histogram), "families of one name are of one kind"
    return one + other
