"""Reports of a process to its supervisor: its metrics, and why it is not ready."""

import json
from typing import Any, NamedTuple, cast

from sharecons.histogram import Histogram
from sharecons.metrics.families import MetricFamily

__all__ = ["Report", "check_families", "decode_report", "encode_report"]


class Report(NamedTuple):
    """The state of a process.

    Attributes:
        number: of the request to which this responds; 0 if there was none.
        live: why the process is not live, or None.
        ready: why it is not ready, or None.
        families: its metrics.
    """

    number: int
    live: str | None
    ready: str | None
    families: list[MetricFamily]


def check_families(
    group_id: str, live: str | None, ready: str | None
) -> list[MetricFamily]:
    """Return whether a process is live and ready as metrics, which add up to counts."""
    return [
        MetricFamily(
            f"sharecons_worker_{name}",
            "gauge",
            f"Processes that are {name}",
            ("group",),
            {(group_id,): int(problem is None)},
        )
        for name, problem in (("live", live), ("ready", ready))
    ]


def encode_report(report: Report) -> bytes:
    """Return a report as a line."""
    families = [[*f[:-1], [*f.values.items()]] for f in report.families]
    fields = report._replace(families=families)  # type: ignore[arg-type]
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def decode_report(line: bytes) -> Report:
    """Return the report of a line.

    Raises:
        ValueError: it is no whole report, because its process was killed meanwhile.
    """
    number, live, ready, families = json.loads(line)
    return Report(number, live, ready, [_family(*each) for each in families])


def _family(
    name: str, kind: Any, text: str, labels: list[str], values: list[Any]
) -> MetricFamily:
    by_labels = {tuple(own): _value(value) for own, value in values}
    return MetricFamily(name, kind, text, tuple(labels), by_labels)


def _value(parsed: Any) -> float | Histogram:
    if isinstance(parsed, list):
        bounds, counts, total = parsed
        return Histogram(tuple(bounds), tuple(counts), total)
    return cast("float", parsed)
