"""The alert rules and the dashboard: valid PromQL, of metrics and labels that exist."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sharecons.worker.metrics import WORKER_METRICS
from tests.prometheus.exported import client_families, exporter_families

# Both are in the extra `test`.
promql_parser = pytest.importorskip("promql_parser")
yaml = pytest.importorskip("yaml")

DIRECTORY = Path(__file__).parents[2] / "docs" / "prometheus"
RULES = yaml.safe_load((DIRECTORY / "alerts.yml").read_text())
DASHBOARD = json.loads((DIRECTORY / "dashboard.json").read_text())
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"]]
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
TARGETS = [(panel, target) for panel in PANELS for target in panel["targets"]]

SCRAPED = {"job", "instance"}
"""The labels that Prometheus adds."""

alerts = pytest.mark.parametrize(
    "alert", ALERTS, ids=[each["alert"] for each in ALERTS]
)
targets = pytest.mark.parametrize(
    ("panel", "target"),
    TARGETS,
    ids=[f"{panel['title']} {target['refId']}" for panel, target in TARGETS],
)


def exported() -> dict[str, set[str]]:
    """Return the labels of all series by name."""
    labels: dict[str, set[str]] = {}
    for family in (*client_families(only_sums=True), *exporter_families()):
        own = {*family.labels, *SCRAPED}
        if family.kind == "histogram":
            labels[f"{family.name}_bucket"] = own | {"le"}
            labels[f"{family.name}_count"] = labels[f"{family.name}_sum"] = own
        else:
            labels[family.name] = own
    return labels


EXPORTED = exported()


def nodes(expression: Any) -> Iterator[Any]:
    """Yield an expression and all within it."""
    yield expression
    for name in ("lhs", "rhs", "expr", "vector_selector"):
        inner = getattr(expression, name, None)
        if inner is not None:
            yield from nodes(inner)
    for argument in getattr(expression, "args", None) or ():
        yield from nodes(argument)


def parse(expression: str) -> Any:
    """Return a parsed expression; Grafana's variables have example values."""
    text = expression.replace("$__rate_interval", "5m").replace("$group", "billing")
    assert "$" not in text, "an unknown variable"
    return promql_parser.parse(text)


def check(expression: str) -> None:
    """Check that an expression has metrics, labels and buckets that exist."""
    selectors = [
        node
        for node in nodes(parse(expression))
        if isinstance(node, promql_parser.VectorSelector)
    ]
    assert selectors
    for selector in selectors:
        labels = EXPORTED.get(selector.name)
        assert labels is not None, f"{selector.name} does not exist"
        for matcher in selector.matchers.matchers:
            assert matcher.name in labels, f"{selector.name} has no {matcher.name}"
            if matcher.name == "le":
                name: Any = selector.name.removesuffix("_bucket")
                assert matcher.value in map(str, WORKER_METRICS[name].bounds)
    names = {selector.name for selector in selectors}
    for grouping in re.findall(r"(?:by|on) \(([^)]*)\)", expression):
        for label in grouping.split(","):
            assert all(label.strip() in EXPORTED[name] for name in names), label


@pytest.mark.parametrize(
    "expression",
    [
        "rate(sharecons_worker_outcome_total[5m])",
        'sharecons_worker_records_held{topic="orders"}',
        "sum by (topic) (sharecons_worker_records_held)",
        'sharecons_worker_queue_time_seconds_bucket{le="7.0"}',
        "sum(histogram_quantile(0.5, sharecons_worker_queue_time_seconds_buckets)) > 1",
        "1 + time()",
    ],
)
def test_check_fails_for_what_does_not_exist(expression: str) -> None:
    with pytest.raises(AssertionError):
        check(expression)


def test_check_fails_for_invalid_promql() -> None:
    with pytest.raises(ValueError):
        check("sum by (topic (sharecons_worker_records_held)")


@alerts
def test_alert_has_an_expression_and_says_what_to_do(alert: dict[str, Any]) -> None:
    check(alert["expr"])
    assert {"alert", "expr", "labels", "annotations"} <= alert.keys() | {"for"}
    assert alert["labels"]["severity"] in ("warning", "critical")
    assert {"summary", "action"} == alert["annotations"].keys()
    for text in alert["annotations"].values():
        assert text[0].isupper() or text.startswith("`")
        assert text.endswith(".")
    if "for" in alert:
        assert re.fullmatch("[0-9]+m", alert["for"])


@alerts
def test_labels_in_a_summary_are_those_of_the_alert(alert: dict[str, Any]) -> None:
    kept = " ".join(re.findall(r"by \(([^)]*)\)", alert["expr"]))
    used = re.findall(r"\$labels\.(\w+)", alert["annotations"]["summary"])
    for label in used:
        assert not kept or label in kept or " by " not in alert["expr"], label


def test_alerts_have_different_names() -> None:
    assert len(ALERTS) == len({alert["alert"] for alert in ALERTS})


@targets
def test_panel_shows_metrics_that_exist(panel: Any, target: Any) -> None:
    check(target["expr"])
    assert panel["description"]
    legend = re.findall(r"{{(\w+)}}", target["legendFormat"])
    grouping = re.search(r"by \(([^)]*)\)", target["expr"])
    for label in legend:
        assert grouping is not None
        assert label in grouping[1].split(", ")


def test_every_metric_of_a_worker_is_on_the_dashboard() -> None:
    text = json.dumps(DASHBOARD)

    assert [name for name in WORKER_METRICS if name not in text] == []


def test_panels_do_not_overlap() -> None:
    cells = [
        (x, y)
        for panel in DASHBOARD["panels"]
        for grid in [panel["gridPos"]]
        for x in range(grid["x"], grid["x"] + grid["w"])
        for y in range(grid["y"], grid["y"] + grid["h"])
    ]
    assert len(cells) == len(set(cells))
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
