"""`OpenTelemetry`: spans and metrics of the clients that it is given to."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast, final

from opentelemetry.metrics import MeterProvider
from opentelemetry.propagators.textmap import TextMapPropagator
from opentelemetry.trace import (
    ProxyTracerProvider,
    TracerProvider,
    get_tracer,
    get_tracer_provider,
)

from sharecons.batch import Batch
from sharecons.config.validation import check_bool
from sharecons.consumer.share_consumer import ShareConsumer
from sharecons.errors import ConfigurationError
from sharecons.instrumentation import Client, set_default
from sharecons.otel.attributes import Conventions
from sharecons.otel.failures import Failures
from sharecons.otel.member_observer import OtelMemberObserver
from sharecons.otel.operations import Instruments, Operations
from sharecons.otel.propagation import Propagation
from sharecons.otel.send_observer import OtelSendObserver
from sharecons.record import Record
from sharecons.version import VERSION

__all__ = ["OpenTelemetry", "instrument", "is_configured", "uninstrument"]


@final
class OpenTelemetry:
    """Spans and metrics of consumers, workers and producers.

        worker = ShareWorker("orders", charge, group_id="billing",
                             instrumentation=OpenTelemetry())

    One object can observe any number of clients. Spans are `send`, `receive`, `process`
    and `settle` with the name of the topic (OpenTelemetry's semantic conventions for
    messaging, version 1.44). docs/opentelemetry.md has their attributes and links.

    Args:
        tracer_provider: makes the spans; None is the global provider.
        meter_provider: makes the metrics; None is the global provider.
        propagator: reads and writes the context in headers; None is the global one.
        producer_as_parent: a `process` span of a single record is a child of the span
            that has sent the record, unless another span is current. By default it is
            linked to it only.

    Raises:
        ConfigurationError: an argument is of another type.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        propagator: TextMapPropagator | None = None,
        producer_as_parent: bool = False,
    ) -> None:
        _check_type("tracer_provider", tracer_provider, TracerProvider)
        _check_type("meter_provider", meter_provider, MeterProvider)
        _check_type("propagator", propagator, TextMapPropagator)
        check_bool("producer_as_parent", producer_as_parent)
        self._tracer = get_tracer(
            "sharecons", VERSION, tracer_provider, Conventions.selected().schema_url
        )
        self._instruments = Instruments.of(meter_provider)
        self._failures = Failures()
        self._propagation = Propagation(propagator, self._failures)
        self._producer_as_parent = producer_as_parent

    @contextmanager
    def process(
        self,
        consumer: ShareConsumer[Any, Any],
        received: Record[Any, Any] | Batch[Any, Any],
    ) -> Iterator[None]:
        """Return a context manager whose block processes what a consumer has received.

            async for record in consumer:
                with telemetry.process(consumer, record):
                    await charge(record.value)

        The `process` span is current in the block, and has its exception. A worker's
        handlers need no such block.

        Raises:
            ConfigurationError: the consumer has another instrumentation, or none.
        """
        observer = consumer.observer
        if not isinstance(observer, OtelMemberObserver):
            raise ConfigurationError(
                "the consumer has no OpenTelemetry instrumentation; create it with "
                "ShareConsumer(..., instrumentation=OpenTelemetry())"
            )
        is_batch = isinstance(received, Batch)
        records = received if is_batch else (received,)
        with observer.processing(cast("Any", records), is_batch=is_batch):
            yield

    # Called by the clients (`sharecons.instrumentation.Instrumentation`).

    def observe_producer(self, client: Client) -> OtelSendObserver:
        """Return what observes the records that an application writes."""
        operations = self._operations(client)
        return OtelSendObserver(operations, self._propagation, continues=False)

    def observe_copies(self, client: Client) -> OtelSendObserver:
        """Return what observes copies of records: retries, dead letters, redrives."""
        operations = self._operations(client._replace(group_id=None))
        return OtelSendObserver(operations, self._propagation, continues=True)

    def observe_member(self, client: Client) -> OtelMemberObserver:
        """Return what observes a member of a share group."""
        return OtelMemberObserver(
            self._operations(client),
            self._propagation,
            producer_as_parent=self._producer_as_parent,
        )

    def _operations(self, client: Client) -> Operations:
        return Operations(self._tracer, self._instruments, client, self._failures)


def instrument(instrumentation: OpenTelemetry | None = None) -> OpenTelemetry:
    """Observe all clients that are created from now on without the argument.

    Return the instrumentation: the given one, or one with the global providers.

    Raises:
        ConfigurationError: it is of another type.
    """
    _check_type("instrumentation", instrumentation, OpenTelemetry)
    chosen = OpenTelemetry() if instrumentation is None else instrumentation
    set_default(chosen)
    return chosen


def uninstrument() -> None:
    """Observe no clients that are created from now on without the argument."""
    set_default(None)


def is_configured() -> bool:
    """Return whether the process has a global provider of spans.

    `opentelemetry-instrument` sets one before a program starts.
    """
    return not isinstance(get_tracer_provider(), ProxyTracerProvider)


def _check_type(name: str, value: object, kind: type) -> None:
    if value is not None and not isinstance(value, kind):
        raise ConfigurationError(
            f"{name} must be a {kind.__name__} of OpenTelemetry or None, not "
            f"{value!r:.200}"
        )
