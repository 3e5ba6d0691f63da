"""The tables of metrics: the rules of their rows, and the same tables in the docs."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args

import pytest

from sharecons.metrics import METRICS, Metric, MetricName
from sharecons.worker.machine.meters import OUTCOME_NAMES
from sharecons.worker.metrics import WORKER_METRICS, WorkerMetricName
from sharecons.worker.outcomes import DeadLetterCause
from tests.prometheus.exported import exporter_families

DOCS = Path(__file__).parents[2] / "docs"


TABLES: Mapping[str, tuple[Metric, ...]] = {
    "metrics.md": (*METRICS.values(), *WORKER_METRICS.values()),
    "exporter.md": tuple(
        Metric(each.name, each.kind, "1", each.description, print, each.labels)
        for each in exporter_families()
    ),
}
KINDS = ("counter", "gauge", "histogram")

each_table = pytest.mark.parametrize(
    ("page", "metrics"), TABLES.items(), ids=list(TABLES)
)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def rows(page: str) -> Iterator[dict[str, str]]:
    """Yield the rows of all tables of metrics, by the headings of their columns."""
    heading: list[str] = []
    for line in (DOCS / page).read_text().splitlines():
        if not line.startswith("|"):
            heading = []
        elif not heading:
            heading = cells(line)
        elif heading[0] in ("metric", *KINDS) and not line.startswith("|---"):
            yield dict(zip(heading, cells(line), strict=True))


def documented(page: str) -> dict[str, dict[str, str]]:
    """Return the rows by the names in their first cell."""
    return {
        name: row
        for row in rows(page)
        for name in re.findall("`([^`]+)`", next(iter(row.values())))
    }


@each_table
def test_page_lists_the_metrics_that_exist(
    page: str, metrics: tuple[Metric, ...]
) -> None:
    assert sorted(metric.name for metric in metrics) == sorted(documented(page))


@each_table
def test_page_has_the_kind_the_units_and_the_labels(
    page: str, metrics: tuple[Metric, ...]
) -> None:
    found = documented(page)
    by_name = {metric.name: metric for metric in metrics}
    for metric in metrics:
        row = found[metric.name]
        names = [name for name in found if found[name] == row]
        units = dict.fromkeys(by_name[name].unit for name in names)
        heading = next(iter(row))
        assert row.get("type", heading) in ("metric", metric.kind)
        assert row.get("unit") in (None, ", ".join(units)), metric.name
        assert row.get("labels") in (None, ", ".join(metric.labels)), metric.name


@each_table
def test_row_has_a_unit_a_description_and_the_bounds_of_its_kind(
    page: str, metrics: tuple[Metric, ...]
) -> None:
    for metric in metrics:
        assert metric.unit
        assert metric.description[0].isalnum()
        assert not metric.description.endswith(".")
        assert bool(metric.bounds) == (metric.kind == "histogram")
        assert sorted(set(metric.bounds)) == list(metric.bounds)


def test_names_are_those_of_the_types() -> None:
    assert list(METRICS) == list(get_args(MetricName))
    assert list(WORKER_METRICS) == list(get_args(WorkerMetricName))


def test_name_of_a_worker_has_the_prefix_and_the_suffix_of_its_kind() -> None:
    for name, metric in WORKER_METRICS.items():
        assert re.fullmatch("sharecons_worker_[a-z_]+", name)
        assert (metric.kind == "counter") == name.endswith("_total")
        is_histogram = metric.kind == "histogram"
        assert is_histogram == name.endswith(("seconds", "deliveries"))


def test_page_has_a_question_for_each_metric_of_a_worker() -> None:
    found = documented("metrics.md")

    assert [] == [n for n in WORKER_METRICS if "?" not in found[n]["question"]]


def test_every_cause_of_dead_letters_and_every_outcome_is_documented() -> None:
    page = (DOCS / "metrics.md").read_text()

    values = (*get_args(DeadLetterCause), *OUTCOME_NAMES.values())
    assert [] == [each for each in values if f"`{each}`" not in page]
