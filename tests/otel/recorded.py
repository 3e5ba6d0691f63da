"""Spans and metrics in memory, and reading them."""

from collections.abc import Iterator
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext

from sharecons.otel import OpenTelemetry

__all__ = ["Recorded", "attributes_of", "context_of", "links_of"]


class Recorded:
    """The spans and metrics of an instrumentation with providers of its own.

    Attributes:
        provider: also makes spans of the application.
        instrumentation: for clients.
    """

    def __init__(self, **options: Any) -> None:
        self._exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.meter_provider = MeterProvider([self._reader])
        self.instrumentation = OpenTelemetry(
            tracer_provider=self.provider,
            meter_provider=self.meter_provider,
            **options,
        )

    @property
    def spans(self) -> list[ReadableSpan]:
        """All spans that have ended, in this order."""
        return list(self._exporter.get_finished_spans())

    @property
    def names(self) -> list[str]:
        """Their names."""
        return [span.name for span in self.spans]

    def named(self, name: str) -> list[ReadableSpan]:
        """Return the spans of a name, in the order of their ends."""
        return [span for span in self.spans if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        """Return the only span of a name."""
        (span,) = self.named(name)
        return span

    def points(self, name: str) -> list[tuple[dict[str, Any], Any]]:
        """Return the attributes and the data point of each series of a metric."""
        return [
            (dict(point.attributes or {}), point)
            for metric in self._metrics()
            if metric.name == name
            for point in metric.data.data_points
        ]

    def counts(self, name: str, *attributes: str) -> dict[Any, int]:
        """Return the values of a metric, or its counts, by these attributes."""
        counts: dict[Any, int] = {}
        for found, point in self.points(name):
            key = tuple(found.get(each) for each in attributes)
            value = point.count if hasattr(point, "count") else point.value
            counts[key] = counts.get(key, 0) + value
        return counts

    def _metrics(self) -> Iterator[Any]:
        data = self._reader.get_metrics_data()
        for resource in data.resource_metrics if data is not None else ():
            for scope in resource.scope_metrics:
                yield from scope.metrics


def context_of(span: ReadableSpan) -> SpanContext:
    context = span.get_span_context()
    assert context is not None
    return context


def links_of(span: ReadableSpan) -> list[int]:
    """Return the ids of the spans that a span is linked to, sorted."""
    return sorted(link.context.span_id for link in span.links)


def attributes_of(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})
