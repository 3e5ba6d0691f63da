"""All metrics that are exposed keep the rules of `promtool check metrics`."""

from collections.abc import Iterator

import pytest

from sharecons import TopicPartition
from sharecons.admin import ShareGroup
from sharecons.exporter import Snapshot
from sharecons.exporter.metrics import Level, Metrics
from sharecons.group_state.group_states import GroupState, PartitionState
from sharecons.group_state.offset_states import OffsetRange, OffsetStatus
from tests.prometheus.exported import client_families
from tests.prometheus.promlint import Described, problems_of

RANGE = OffsetRange(
    first_offset=3, last_offset=4, status=OffsetStatus.ARCHIVED, delivery_count=5
)
WAITING = OffsetRange(first_offset=5, last_offset=8, status=OffsetStatus.ABOVE)
PARTITION = PartitionState(
    start_offset=3,
    end_offset=9,
    lag=4,
    ranges=(RANGE, WAITING),
)
GROUP = GroupState(
    group=ShareGroup(
        group_id="billing",
        state="Empty",
        group_epoch=1,
        assignment_epoch=1,
        assignor="simple",
        members=(),
    ),
    missing_topics={"orders": False},
    partitions={TopicPartition("orders", number): PARTITION for number in range(3)},
)


def exporter_metrics(level: Level = Level.PARTITION) -> Iterator[Described]:
    metrics = Metrics(level)
    metrics.update(Snapshot(at=1.0, duration=1.0, groups={"billing": GROUP}))
    for metric in metrics.collect():
        suffix = {"counter": "_total", "info": "_info"}.get(metric.type, "")
        kind = "gauge" if metric.type == "info" else metric.type
        labels = {label for sample in metric.samples for label in sample.labels}
        name = f"{metric.name}{suffix}"
        series = [frozenset(sample.labels.items()) for sample in metric.samples]
        yield Described(name, kind, metric.documentation, frozenset(labels), series)


def client_metrics() -> Iterator[Described]:
    """Yield the metrics of workers, consumers and `sharecons run`."""
    for each in client_families(only_sums=False):
        yield Described(each.name, each.kind, each.description, frozenset(each.labels))


@pytest.mark.parametrize("level", Level)
def test_metrics_of_the_exporter_pass_promtool(level: Level) -> None:
    found = list(exporter_metrics(level))

    assert len(found) > 15
    assert [] == [problem for each in found for problem in problems_of(each)]


def test_metrics_of_clients_pass_promtool() -> None:
    found = list(client_metrics())

    assert len(found) > 40
    assert [] == [problem for each in found for problem in problems_of(each)]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("kafka_share_group_records_by_delivery_count", "gauge"),
        ("wait_milliseconds", "gauge"),
        ("wait_ms", "gauge"),
        ("age_hours", "gauge"),
        ("errors", "counter"),
        ("errors_total", "gauge"),
        ("depth_gauge", "gauge"),
    ],
)
def test_name_that_breaks_a_rule_is_found(name: str, kind: str) -> None:
    assert problems_of(Described(name, kind, "Help.", frozenset()))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("m_depth", "gauge"),  # an abbreviation at the beginning
        ("seconds_per_hours", "gauge"),  # only the first unit counts
        ("depth_counter_age", "gauge"),  # the name of another type
    ],
)
def test_name_that_promtool_accepts_has_no_problem(name: str, kind: str) -> None:
    assert [] == problems_of(Described(name, kind, "Help.", frozenset()))


def test_values_with_the_same_labels_are_found() -> None:
    series = [frozenset({("topic", "orders")})] * 2
    described = Described("depth", "gauge", "Help.", frozenset({"topic"}), series)

    assert ["depth: metric not unique"] == problems_of(described)


def test_topic_level_has_one_value_for_all_partitions() -> None:
    metrics = Metrics(Level.TOPIC)
    metrics.update(Snapshot(at=1.0, duration=1.0, groups={"billing": GROUP}))
    values = {
        (metric.name.removeprefix("kafka_share_group_"), *sample.labels.values()): (
            sample.value
        )
        for metric in metrics.collect()
        if metric.name.startswith("kafka_share_group_")
        for sample in metric.samples
    }

    assert 12 == values["lag_records", "billing", "orders"]
    assert 6 == values["archived_records", "billing", "orders"]
    assert 6 == values["archived_seen", "billing", "orders"]
    assert 2 == values["window_records", "billing", "orders"]
    assert 1 == values["stalled", "billing", "orders", "no_members"]
    assert ("stalled", "billing", "orders", "held") not in values
    assert 6 == values["records_by_deliveries", "billing", "orders", "archived", "5"]
    assert not [name for name, *_ in values if name.endswith("_offset")]
