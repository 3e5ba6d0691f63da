"""All metric families that the programs of the package export, without their values."""

from collections.abc import Iterator
from typing import Any

from sharecons.cli.run.process_reports import ProcessReports
from sharecons.cli.run.report import check_families
from sharecons.exporter.metrics import Metrics
from sharecons.metrics import METRICS
from sharecons.metrics.families import (
    MetricFamily,
    consumer_families,
    table_families,
    with_labels,
)
from sharecons.worker.metrics import WORKER_METRICS

__all__ = ["client_families", "exporter_families"]


def client_families(*, only_sums: bool) -> Iterator[MetricFamily]:
    """Yield the families of a worker, its consumer and `sharecons run`."""
    worker: Any = {name: {(): 1.0} for name in WORKER_METRICS}
    yield from with_labels(table_families(WORKER_METRICS, worker), {"group": ""})
    consumer: Any = dict.fromkeys(METRICS, 1.0)
    families = consumer_families(consumer, only_sums=only_sums)
    yield from with_labels(families, {"group": ""})
    yield from check_families("billing", None, None)
    yield from ProcessReports(1).families()


def exporter_families() -> Iterator[MetricFamily]:
    """Yield the families of the exporter."""
    for family in Metrics().describe():
        suffix = {"counter": "_total", "info": "_info"}.get(family.type, "")
        labels: Any = family._labelnames  # type: ignore[attr-defined]
        if family.type == "info":  # it has its labels in its sample only
            labels = family.samples[0].labels
        kind: Any = "gauge" if family.type == "info" else family.type
        name, text = f"{family.name}{suffix}", family.documentation.removesuffix(".")
        yield MetricFamily(name, kind, text, tuple(labels), {})
