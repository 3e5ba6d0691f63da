"""Metric families: names, sums, and reports of processes."""

import math

from sharecons.cli.run.report import Report, decode_report, encode_report
from sharecons.histogram import Histogram
from sharecons.metrics import METRICS
from sharecons.metrics.catalog import values_of
from sharecons.metrics.families import (
    MetricFamily,
    add_up,
    consumer_families,
    with_labels,
    without_gauges,
)
from sharecons.metrics.recorder import MetricsRecorder

ORDERS, REFUNDS = ("orders",), ("refunds",)


def times(*counts: int, total: float) -> Histogram:
    return Histogram((1.0, 2.0), counts, total)


def process(done: dict[tuple[str, ...], float], *, held: int) -> list[MetricFamily]:
    histogram = times(1, 0, 2, total=9.0)
    return [
        MetricFamily("done_total", "counter", "Done", ("topic",), done),
        MetricFamily("held", "gauge", "Held", (), {(): held}),
        MetricFamily("time", "histogram", "Time", ("topic",), {ORDERS: histogram}),
    ]


def test_sum_has_the_values_of_all_labels() -> None:
    first = process({ORDERS: 1, REFUNDS: 2}, held=3)
    second = process({ORDERS: 10}, held=4)

    done, held, time = add_up([*first, *second])

    assert {ORDERS: 11, REFUNDS: 2} == done.values
    assert {(): 7} == held.values
    assert {ORDERS: times(2, 0, 4, total=18.0)} == time.values
    assert {ORDERS: 1, REFUNDS: 2} == first[0].values, "it is unchanged"


def test_ended_process_leaves_its_counts() -> None:
    left = without_gauges(process({ORDERS: 1}, held=3))

    assert ["done_total", "time"] == [family.name for family in left]


def test_report_of_a_process_keeps_everything() -> None:
    report = Report(1, None, "starts", process({ORDERS: 1, REFUNDS: 2.5}, held=3))

    assert report == decode_report(encode_report(report))


def test_labels_come_before_the_own_ones() -> None:
    (done, held, _) = with_labels(process({ORDERS: 1}, held=3), {"group": "billing"})

    assert ("group", "topic") == done.labels
    assert {("billing", "orders"): 1} == done.values
    assert {("billing",): 3} == held.values


def test_consumer_exports_seconds_and_no_rates() -> None:
    values = {**dict.fromkeys(METRICS, 500.0), "fetch-latency-max": math.nan}
    values["last-heartbeat-seconds-ago"] = -1.0

    found = {each.name: each.values[()] for each in consumer_families(values)}  # type: ignore[arg-type]

    assert 0.5 == found["sharecons_consumer_fetch_latency_avg_seconds"]
    assert 500.0 == found["sharecons_consumer_records_held"]
    assert not [name for name in found if "rate" in name]
    assert "sharecons_consumer_fetch_latency_max_seconds" not in found
    assert "sharecons_consumer_last_heartbeat_seconds_ago" not in found


def test_only_counters_and_counts_add_up() -> None:
    values = values_of(MetricsRecorder())

    families = consumer_families(values, only_sums=True)

    gauges = [each.name for each in families if each.kind == "gauge"]
    assert ["sharecons_consumer_records_held", "sharecons_consumer_problems"] == gauges
    totals = [name for name, metric in METRICS.items() if metric.kind == "counter"]
    assert len(totals) + 2 == len(families)
