"""Starts and ends the spans of one client, and measures their operations."""

import time
from collections.abc import Sequence
from typing import Final, NamedTuple, final

from opentelemetry.context import Context
from opentelemetry.metrics import Counter, Histogram, MeterProvider, get_meter
from opentelemetry.trace import (
    INVALID_SPAN,
    Link,
    Span,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
)

from sharecons.error_text import traceback_of
from sharecons.guard import full_type_name, guarded, text_by
from sharecons.instrumentation import Client
from sharecons.otel.attributes import (
    BATCH_MESSAGE_COUNT,
    CLIENT_ID,
    CLUSTER_ID,
    DESTINATION,
    ERROR_TYPE,
    GROUP,
    OPERATION_NAME,
    OPERATION_TYPE,
    SYSTEM,
    Attributes,
    Conventions,
)
from sharecons.otel.failures import Failures
from sharecons.plain_copy import plain_copy
from sharecons.version import VERSION

__all__ = ["MAX_LINKS", "Instruments", "Operation", "Operations"]

MAX_LINKS: Final = 128
"""The default limit of the SDK (OTEL_SPAN_LINK_COUNT_LIMIT), which drops others."""

NANOSECONDS: Final = 1_000_000_000

BUCKETS: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25),
    *(0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
)
"""Seconds, as the conventions advise. The SDK's default is for milliseconds."""


class Instruments(NamedTuple):
    """The metrics of the conventions; times in seconds."""

    operation_duration: Histogram
    process_duration: Histogram
    consumed_messages: Counter
    sent_messages: Counter

    @classmethod
    def of(cls, provider: MeterProvider | None) -> "Instruments":
        """Return the metrics of a provider; None is the global one."""
        schema_url = Conventions.selected().schema_url
        meter = get_meter("sharecons", VERSION, provider, schema_url)
        return cls(
            meter.create_histogram(
                "messaging.client.operation.duration",
                unit="s",
                description=(
                    "Duration of messaging operation initiated by a producer or "
                    "consumer client."
                ),
                explicit_bucket_boundaries_advisory=BUCKETS,
            ),
            meter.create_histogram(
                "messaging.process.duration",
                unit="s",
                description="Duration of processing operation.",
                explicit_bucket_boundaries_advisory=BUCKETS,
            ),
            meter.create_counter(
                "messaging.client.consumed.messages",
                unit="{message}",
                description=(
                    "Number of messages that were delivered to the application."
                ),
            ),
            meter.create_counter(
                "messaging.client.sent.messages",
                unit="{message}",
                description=(
                    "Number of messages producer attempted to send to the broker."
                ),
            ),
        )


@final
class Operation:
    """An operation that has begun.

    Attributes:
        name: receive, process, settle or send.
        topic: None if it is not known.
        span: its span.
        began: when it began, on the clock of `time.perf_counter`.
    """

    __slots__ = ("began", "name", "span", "topic")

    def __init__(self, name: str, topic: str | None, span: Span, began: float) -> None:
        self.name = name
        self.topic = topic
        self.span = span
        self.began = began


@final
class Operations:
    """The operations of one client."""

    def __init__(
        self,
        tracer: Tracer,
        instruments: Instruments,
        client: Client,
        failures: Failures,
    ) -> None:
        self._instruments = instruments
        self._failures = failures
        self._tracer = tracer
        self._client = client
        self._conventions = Conventions.selected()
        self._has_other_names = self._conventions is not Conventions.V1_44
        self._cluster_id: str | None = None
        self._by_operation: dict[tuple[str, str | None], Attributes] = {}
        self._metric_attributes_of: dict[
            tuple[str, str | None, str | None], Attributes
        ] = {}

    def start(
        self,
        name: str,
        topic: str | None,
        kind: SpanKind,
        *,
        context: Context | None = None,
        links: Sequence[Link] = (),
        count: int | None = None,
        attributes: Attributes | None = None,
        began: float | None = None,
    ) -> Operation:
        """Start an operation.

        Args:
            topic: None if it is not known, or not one.
            context: has the parent; None is the current context.
            links: up to MAX_LINKS.
            count: the number of messages; None if the call is for a single one.
            attributes: further attributes.
            began: when it began, on the clock of `time.perf_counter`; None is now.
        """
        now = time.perf_counter()
        if began is None:
            began = now
        described = self._span_attributes(name, topic).copy()
        if count is not None:
            described[BATCH_MESSAGE_COUNT] = count
        if attributes:
            described |= attributes
        if self._has_other_names:
            described = self._conventions.of_span(described)
            links = [self._renamed(each) for each in links]

        def fail(_: BaseException) -> Span:
            self._failures.report(f"start a span {name}")
            return INVALID_SPAN

        span = guarded(
            lambda: self._tracer.start_span(
                name if topic is None else f"{name} {topic}",
                context,
                kind,
                described,
                links,
                start_time=time.time_ns() - int((now - began) * NANOSECONDS),
            ),
            fail,
        )
        return Operation(name, topic, span, began)

    def end(
        self,
        operation: Operation,
        attributes: Attributes | None = None,
        *,
        error_type: str | None = None,
        error: BaseException | None = None,
    ) -> None:
        """End an operation, and measure it.

        Args:
            error_type: None if it has succeeded.
            error: is recorded in the span.
        """

        def fail(_: BaseException) -> None:
            self._failures.report(f"end a span {operation.name}")

        span, attributes = operation.span, attributes or {}
        guarded(lambda: self._measure(operation, error_type), fail)
        guarded(lambda: self._describe(span, attributes, error_type, error), fail)
        guarded(span.end, fail)

    def _describe(
        self,
        span: Span,
        attributes: Attributes,
        error_type: str | None,
        error: BaseException | None,
    ) -> None:
        if not span.is_recording():
            return
        if self._has_other_names:
            attributes = self._conventions.of_span(attributes)
        if attributes:
            span.set_attributes(attributes)
        if error is not None:
            error = plain_copy(error)
            _record_exception(span, error)
        if error_type is not None:
            span.set_attribute(ERROR_TYPE, error_type)
            reason = None if error is None else text_by(str, error)
            span.set_status(Status(StatusCode.ERROR, reason))

    def _measure(self, operation: Operation, error_type: str | None) -> None:
        seconds = time.perf_counter() - operation.began
        described = self._metric_attributes(operation.name, operation.topic, error_type)
        if operation.name == "process":
            self._instruments.process_duration.record(seconds, described)
        else:
            described = {**described, OPERATION_TYPE: operation.name}
            self._instruments.operation_duration.record(seconds, described)

    def count_consumed(self, name: str, topic: str | None, count: int) -> None:
        """Count messages that the application has received by this operation."""
        self._count(self._instruments.consumed_messages, name, topic, count)

    def count_sent(
        self, topic: str | None, count: int, error_type: str | None = None
    ) -> None:
        """Count messages that were sent, or that an error prevents from being sent."""
        self._count(self._instruments.sent_messages, "send", topic, count, error_type)

    def _count(
        self,
        counter: Counter,
        name: str,
        topic: str | None,
        count: int,
        error_type: str | None = None,
    ) -> None:
        if count == 0:
            return
        guarded(
            lambda: counter.add(
                count, self._metric_attributes(name, topic, error_type)
            ),
            lambda _: self._failures.report("count messages"),
        )

    def _span_attributes(self, name: str, topic: str | None) -> Attributes:
        """Return the attributes of all spans of an operation; do not change them."""
        cluster_id = self._client.cluster_id()
        if cluster_id != self._cluster_id:  # None before the client has metadata
            self._cluster_id = cluster_id
            self._by_operation.clear()
        described = self._by_operation.get((name, topic))
        if described is None:
            attributes: Attributes = {
                SYSTEM: "kafka",
                OPERATION_NAME: name,
                OPERATION_TYPE: name,
                CLIENT_ID: self._client.client_id,
            }
            if topic is not None:
                attributes[DESTINATION] = topic
            if self._client.group_id is not None:
                attributes[GROUP] = self._client.group_id
            if cluster_id is not None:
                attributes[CLUSTER_ID] = cluster_id
            self._by_operation[name, topic] = described = attributes
        return described

    def _metric_attributes(
        self, name: str, topic: str | None, error_type: str | None
    ) -> Attributes:
        """Return the attributes of a measurement; do not change them."""
        key = (name, topic, error_type)
        described = self._metric_attributes_of.get(key)
        if described is None:
            attributes: Attributes = {SYSTEM: "kafka", OPERATION_NAME: name}
            if topic is not None:
                attributes[DESTINATION] = topic
            if self._client.group_id is not None:
                attributes[GROUP] = self._client.group_id
            if error_type is not None:
                attributes[ERROR_TYPE] = error_type
            described = self._conventions.of_metric(attributes)
            self._metric_attributes_of[key] = described
        return described

    def _renamed(self, link: Link) -> Link:
        attributes = dict(link.attributes or {})
        return Link(link.context, self._conventions.of_metric(attributes))


def _record_exception(span: Span, error: BaseException) -> None:
    """Record an exception in a span, even if the SDK cannot format it."""
    guarded(
        lambda: span.record_exception(error),
        lambda _: span.add_event(
            "exception",
            {
                "exception.type": full_type_name(error),
                "exception.message": text_by(str, error),
                "exception.stacktrace": traceback_of(error),
            },
        ),
    )
