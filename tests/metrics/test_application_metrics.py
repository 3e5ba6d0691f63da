"""Metrics of the application: registering them, and reading them."""

import math
from typing import Any

import pytest

from sharecons.errors import ConfigurationError
from sharecons.metrics import METRICS, ApplicationMetric
from sharecons.metrics.application_metrics import ApplicationMetrics
from sharecons.metrics.metric import MetricPoint


def depth(read: Any = lambda: 3, **changes: Any) -> ApplicationMetric:
    return ApplicationMetric(**{"name": "com.example.depth", "read": read, **changes})


async def read_later() -> float:
    return 1.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": ""}, "name must be"),
        ({"name": "1st"}, "name must be"),
        ({"name": "a b"}, "name must be"),
        ({"name": "a" * 256}, "name must be"),
        ({"name": 3}, "name must be"),
        ({"read": 3}, "read of metric 'com.example.depth'"),
        ({"read": read_later}, "read of metric 'com.example.depth'"),
        ({"kind": "histogram"}, "kind of metric 'com.example.depth'"),
        ({"unit": 1}, "must be str"),
        ({"description": None}, "must be str"),
        ({"attributes": ["shard"]}, "must be a mapping"),
        ({"attributes": {"shard": 1}}, "must be str"),
        ({"attributes": {1: "shard"}}, "must be str"),
        ({"attributes": {"shard": "\ud800"}}, "must be str"),
    ],
)
def test_invalid_metric_is_rejected(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        depth(**changes)


def test_points_have_the_current_values_in_order_of_registration() -> None:
    jobs: list[int] = []
    metrics = ApplicationMetrics()
    metrics.register(
        depth(
            lambda: len(jobs),
            unit="jobs",
            description="jobs that wait",
            attributes={"shard": "a"},
        )
    )
    metrics.register(depth(lambda: 7, name="com.example.done", kind="counter"))
    jobs.append(1)

    assert metrics.points() == [
        MetricPoint(
            "com.example.depth", "gauge", "jobs", "jobs that wait", 1.0, {"shard": "a"}
        ),
        MetricPoint("com.example.done", "counter", "1", "", 7.0),
    ]


def test_later_changes_of_the_attributes_have_no_effect() -> None:
    labels: dict[str, Any] = {"shard": "a"}
    metrics = ApplicationMetrics()
    metrics.register(depth(attributes=labels))
    labels["shard"] = 1

    assert metrics.points()[0].attributes == {"shard": "a"}


@pytest.mark.parametrize(
    "name", ["com.example.depth", METRICS["fetch-total"].telemetry_name]
)
def test_name_in_use_is_rejected(name: str) -> None:
    metrics = ApplicationMetrics()
    metrics.register(depth())

    with pytest.raises(ConfigurationError, match="already"):
        metrics.register(depth(name=name))
    assert len(metrics.points()) == 1


def test_unregistered_metric_has_no_point_and_its_name_is_free() -> None:
    metrics = ApplicationMetrics()
    metrics.register(depth())
    metrics.unregister("com.example.depth")
    metrics.unregister("com.example.other")
    assert metrics.points() == []

    metrics.register(depth())
    assert len(metrics.points()) == 1


def test_other_objects_are_rejected() -> None:
    with pytest.raises(ConfigurationError, match="must be an ApplicationMetric"):
        ApplicationMetrics().register("com.example.depth")  # type: ignore[arg-type]


def fail() -> float:
    raise OSError("closed")


@pytest.mark.parametrize(
    ("read", "reason"),
    [
        (fail, "OSError"),
        (lambda: math.nan, "nan"),
        (lambda: math.inf, "inf"),
        (lambda: "many", "ValueError"),
        (lambda: None, "TypeError"),
    ],
)
def test_unreadable_metric_is_left_out_and_logged_once(
    read: Any, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    metrics = ApplicationMetrics()
    metrics.register(depth(read))
    metrics.register(depth(name="com.example.other"))

    for _ in range(2):
        assert ["com.example.other"] == [each.name for each in metrics.points()]
    (line,) = caplog.messages
    assert "metric=com.example.depth" in line
    assert reason in line
