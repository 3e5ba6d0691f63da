"""The names of the metrics, compared with the text of KIP-932."""

from pathlib import Path
from typing import NamedTuple

import pytest

from sharecons.metrics import METRICS

KIP = Path(__file__).with_name("kip_932_client_metrics.txt")
OWN = "sharecons-"


class Row(NamedTuple):
    name: str
    type: str
    group: str
    tags: str
    telemetry_name: str


ROWS = [Row(*line.split("\t")) for line in KIP.read_text().splitlines()[2:]]


def test_kip_lists_28_metrics() -> None:
    assert 28 == len({row.name for row in ROWS}) == len(ROWS)


def test_names_are_those_of_the_kip_and_own_ones() -> None:
    names = list(METRICS)

    assert [row.name for row in ROWS] == names[:28]
    assert all(name.startswith(OWN) for name in names[28:])


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_group_kind_and_telemetry_name_are_those_of_the_kip(row: Row) -> None:
    metric = METRICS[row.name]  # type: ignore[index]

    assert row.name == metric.name
    assert row.group == metric.group
    assert ("counter" if row.name.endswith("-total") else "gauge") == metric.kind
    telemetry_name = row.telemetry_name.replace("o.a.k.", "org.apache.kafka.")
    assert telemetry_name == metric.telemetry_name


def test_own_metrics_are_two_gauges_and_totals() -> None:
    own = [metric for name, metric in METRICS.items() if name.startswith(OWN)]

    gauges = [metric.name for metric in own if metric.kind == "gauge"]
    assert ["sharecons-records-held", "sharecons-problems"] == gauges
    assert all(m.name.endswith("-total") for m in own if m.kind == "counter")
    assert {"sharecons-metrics"} == {metric.group for metric in own}


def test_telemetry_name_of_an_own_metric_has_the_prefix_once() -> None:
    name = METRICS["sharecons-records-held"].telemetry_name

    assert "org.apache.kafka.sharecons.records.held" == name
