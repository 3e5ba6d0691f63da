"""The cost of metrics and OpenTelemetry: `python -m tests.bench.workers.observability`.

In each round a worker whose handlers do nothing runs without them, with metrics, and
with spans and metrics of OpenTelemetry, whose exporter does nothing. Each run is
a process of its own. Figures are compared with the run without them of the same round,
since the speed of a machine changes between rounds.
"""

import argparse
import asyncio
import logging
import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from sharecons.testing.kafka import KafkaCluster
from tests.bench.workers.programs import client_parser, run_sharecons
from tests.bench.workers.running import produce, run_child, spread
from tests.kafka_plugin import Admin

log = logging.getLogger(__name__)

OFF: Final = "off"
SAMPLED: Final = 0.01
HANDLER: Final = 3000.0
"""Microseconds of CPU of a handler that waits for a database, and decodes a record."""

CPU: Final = "cpu_us_per_record"
RATE: Final = "records_per_second"
Figures = Mapping[str, float]


class Goal(NamedTuple):
    """The highest ratio of CPU to the run without metrics and spans.

    Attributes:
        handler: CPU of the handler, in microseconds.
        maximum: the ratio.
    """

    handler: float
    maximum: float


GOALS: Final[Mapping[str, Goal]] = {
    "metrics": Goal(0.0, 1.02),
    "opentelemetry": Goal(HANDLER, 1.05),
    "opentelemetry, 1 % sampled": Goal(HANDLER, 1.05),
}
VARIANTS: Final = (OFF, *GOALS)


def _instrumentation(variant: str) -> Any:
    if not variant.startswith("opentelemetry"):
        return None
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import (
        BatchSpanProcessor,
        SpanExporter,
        SpanExportResult,
    )
    from opentelemetry.sdk.trace.sampling import (
        ALWAYS_ON,
        ParentBased,
        TraceIdRatioBased,
    )

    from sharecons.otel import OpenTelemetry

    class NoExporter(SpanExporter):
        def export(self, spans: Sequence[Any]) -> SpanExportResult:
            return SpanExportResult.SUCCESS

        def shutdown(self) -> None:
            """Close nothing."""

    is_sampled = variant.endswith("sampled")
    sampler = ParentBased(TraceIdRatioBased(SAMPLED)) if is_sampled else ALWAYS_ON
    provider = TracerProvider(sampler=sampler)
    provider.add_span_processor(BatchSpanProcessor(NoExporter()))
    return OpenTelemetry(
        tracer_provider=provider,
        meter_provider=MeterProvider([InMemoryMetricReader()]),
    )


def compare(options: argparse.Namespace) -> None:
    """Run all variants in turn; print their ratios, and whether the goals are met."""
    logging.basicConfig(level=logging.INFO)
    rounds: list[dict[str, Figures]] = []
    with KafkaCluster(options.version) as cluster:
        bootstrap = str(cluster.bootstrap_servers)
        topic = Admin(bootstrap).create_topic(partitions=6)
        values = [b"%0100d" % number for number in range(options.records)]
        produce(bootstrap, topic, values)
        for number in range(options.rounds):
            found: dict[str, Figures] = {
                variant: run_child(
                    "observability",
                    bootstrap=bootstrap,
                    topic=topic,
                    variant=variant,
                    records=options.records,
                )
                for variant in VARIANTS
            }
            log.info("round %s: %s", number, found)
            rounds.append(found)
    sys.stdout.write(f"\n{_table(rounds)}\n")


def _table(rounds: Sequence[Mapping[str, Figures]]) -> str:
    """Return the medians of the rounds, with the lowest and highest ratio."""
    lines = [
        "| variant | CPU per record, us | CPU / off | records/s / off | goal | met |",
        "|---|---:|---:|---:|---|---|",
    ]
    for variant in VARIANTS:
        cpu = statistics.median(found[variant][CPU] for found in rounds)
        row = [
            variant,
            f"{cpu:.1f}",
            spread([_ratio(found, variant, CPU) for found in rounds]),
            spread([_ratio(found, variant, RATE) for found in rounds]),
            *_judge(rounds, variant),
        ]
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def _judge(rounds: Sequence[Mapping[str, Figures]], variant: str) -> tuple[str, str]:
    """Return the goal, and whether the median of the rounds meets it."""
    goal = GOALS.get(variant)
    if goal is None:
        return "", ""
    ratio = statistics.median(
        _ratio(found, variant, CPU, goal.handler) for found in rounds
    )
    of = f" with {goal.handler / 1000:g} ms in the handler" if goal.handler else ""
    met = "yes" if ratio <= goal.maximum else "no"
    return f"{goal.maximum:g}{of}", f"{met}, {ratio:.3f}"


def _ratio(
    found: Mapping[str, Figures], variant: str, figure: str, handler: float = 0.0
) -> float:
    """Return a figure beside the figure without metrics and spans.

    Args:
        handler: CPU that each handler would have in addition.
    """
    return (found[variant][figure] + handler) / (found[OFF][figure] + handler)


def main() -> None:
    if "--variant" in sys.argv:
        child = client_parser()
        child.add_argument("--variant", choices=VARIANTS, required=True)
        _measure(child.parse_args())
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--records", type=int, default=60_000)
    parser.add_argument("--version", default="4.4.0", help="of Kafka")
    compare(parser.parse_args())


def _measure(options: argparse.Namespace) -> None:
    work = run_sharecons(
        options,
        collect_metrics=options.variant == "metrics",
        instrumentation=_instrumentation(options.variant),
    )
    asyncio.run(work)
    sys.stdout.flush()
    os._exit(0)  # the SDK's export threads end after seconds


if __name__ == "__main__":
    main()
