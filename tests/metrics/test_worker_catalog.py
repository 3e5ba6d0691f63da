"""The metrics of a worker: names by Prometheus' rules, and their documentation."""

import re
from pathlib import Path
from typing import get_args

import pytest

from sharecons.metrics import WORKER_METRICS, WorkerMetric, WorkerMetricName
from sharecons.worker.outcomes import DeadLetterCause

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
UNITS = ("seconds", "deliveries")

each_metric = pytest.mark.parametrize(
    "metric", WORKER_METRICS.values(), ids=list(WORKER_METRICS)
)


def test_names_are_those_of_the_type() -> None:
    assert list(get_args(WorkerMetricName)) == list(WORKER_METRICS)


@each_metric
def test_name_has_the_prefix_and_the_suffix_of_its_kind(metric: WorkerMetric) -> None:
    assert re.fullmatch("sharecons_worker_[a-z_]+", metric.name)
    assert (metric.kind == "counter") == metric.name.endswith("_total")
    assert (metric.kind == "histogram") == metric.name.endswith(UNITS)
    assert bool(metric.bounds) == (metric.kind == "histogram")
    assert sorted(set(metric.bounds)) == list(metric.bounds)


@each_metric
def test_description_is_one_sentence_without_a_period(metric: WorkerMetric) -> None:
    assert metric.description[0].isupper()
    assert not metric.description.endswith(".")


@each_metric
def test_documentation_has_the_labels_and_the_question(metric: WorkerMetric) -> None:
    lines = PAGE.read_text().splitlines()
    (row,) = [line for line in lines if line.startswith(f"| `{metric.name}` |")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]

    assert "?" in cells[-1]
    if metric.kind != "gauge":
        assert ", ".join(metric.labels) == cells[1]


def test_documentation_has_every_cause_of_dead_letters() -> None:
    page = PAGE.read_text()

    assert [] == [each for each in get_args(DeadLetterCause) if f"`{each}`" not in page]
