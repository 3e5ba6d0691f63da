"""Which clients are observed, and failures of the application's OpenTelemetry."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.trace import StatusCode
from opentelemetry.trace.propagation.tracecontext import (
    TraceContextTextMapPropagator,
)

from sharecons import (
    ConfigurationError,
    DeadLetterQueue,
    Producer,
    Record,
    RetryPolicy,
    ShareConsumer,
    ShareWorker,
)
from sharecons.config.not_given import NOT_GIVEN
from sharecons.dead_letters import DeadLetters
from sharecons.instrumentation import choose_instrumentation
from sharecons.otel import OpenTelemetry, instrument, uninstrument
from sharecons.testing import EmbeddedBroker
from sharecons.testing.virtual_time import Backend
from tests.guides import Guide
from tests.hostile import (
    NoAttributes,
    NoText,
    nested_causes,
    nested_groups,
    no_name,
)
from tests.otel.recorded import Recorded
from tests.waiting import until
from tests.worker.working import settled, working


@pytest.fixture
def anyio_backend(virtual_clock: Backend) -> Backend:
    return virtual_clock


@pytest.fixture
def default(recorded: Recorded) -> Iterator[OpenTelemetry]:
    yield instrument(recorded.instrumentation)
    uninstrument()


def test_clients_are_not_observed_by_default() -> None:
    assert choose_instrumentation(NOT_GIVEN) is None
    assert ShareConsumer("orders", group_id="billing").observer is None


def test_instrument_observes_clients_that_are_created_afterwards(
    default: OpenTelemetry,
) -> None:
    assert default is choose_instrumentation(NOT_GIVEN)
    assert ShareConsumer("orders", group_id="billing").observer is not None
    off = ShareConsumer("orders", group_id="billing", instrumentation=None)
    assert off.observer is None
    uninstrument()
    assert choose_instrumentation(NOT_GIVEN) is None


def test_instrument_without_argument_uses_the_global_providers() -> None:
    assert isinstance(instrument(), OpenTelemetry)
    uninstrument()


@pytest.mark.parametrize(
    "new_client",
    [
        lambda given: ShareConsumer("orders", group_id="g", instrumentation=given),
        lambda given: ShareWorker("orders", print, group_id="g", instrumentation=given),
        lambda given: Producer(instrumentation=given),
        lambda given: DeadLetters("orders.dead", instrumentation=given),
    ],
)
@pytest.mark.parametrize("given", [True, OpenTelemetry])
def test_other_objects_are_rejected(new_client: Any, given: object) -> None:
    with pytest.raises(ConfigurationError, match=r"instrumentation must be an inst.*"):
        new_client(given)


@pytest.mark.parametrize("name", ["tracer_provider", "meter_provider", "propagator"])
def test_arguments_of_other_types_are_rejected(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} must be a "):
        OpenTelemetry(**{name: "w3c"})  # type: ignore[arg-type]


def test_producer_as_parent_must_be_a_bool() -> None:
    with pytest.raises(ConfigurationError, match="producer_as_parent"):
        OpenTelemetry(producer_as_parent=1)  # type: ignore[arg-type]


def test_block_for_a_consumer_that_is_not_observed_is_an_error() -> None:
    consumer = ShareConsumer("orders", group_id="billing", instrumentation=None)
    with pytest.raises(ConfigurationError, match="has no OpenTelemetry"):
        with OpenTelemetry().process(consumer, ()):  # type: ignore[arg-type]
            pass


class RaisingProcessor(SpanProcessor):
    def on_start(self, span: Span, parent_context: Any = None) -> None:
        raise LookupError("on_start")


class RaisingAtEnd(SpanProcessor):
    def on_end(self, span: ReadableSpan) -> None:
        raise LookupError("on_end")


class CancellingAtEnd(SpanProcessor):
    def on_end(self, span: ReadableSpan) -> None:
        raise asyncio.CancelledError


class RaisingPropagator(TraceContextTextMapPropagator):
    def extract(self, *arguments: Any, **options: Any) -> Any:
        raise LookupError("extract")

    def inject(self, *arguments: Any, **options: Any) -> Any:
        raise LookupError("inject")


class WithoutFields(TraceContextTextMapPropagator):
    @property
    def fields(self) -> set[str]:
        raise LookupError("fields")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("processor", "options"),
    [
        (RaisingProcessor, {}),
        (RaisingAtEnd, {}),
        (CancellingAtEnd, {}),
        (SpanProcessor, {"propagator": RaisingPropagator()}),
        (SpanProcessor, {"propagator": WithoutFields()}),
    ],
)
async def test_failures_are_logged_and_records_are_processed(
    broker: EmbeddedBroker,
    caplog: pytest.LogCaptureFixture,
    processor: Any,
    options: dict[str, Any],
) -> None:
    provider = TracerProvider()
    provider.add_span_processor(processor())
    telemetry = OpenTelemetry(tracer_provider=provider, **options)
    calls: list[int] = []

    async def handle(record: Record[Any, Any]) -> None:
        calls.append(record.offset)

    async with Producer(
        bootstrap_servers=broker.bootstrap_servers,
        network=broker.network,
        instrumentation=telemetry,
    ) as producer:
        await producer.send("orders", b"tea", headers=[("tea", b"green")])
    async with working(broker, handle, instrumentation=telemetry):
        await until(lambda: settled(broker, 1))

    assert [0] == calls
    lines = [line for line in caplog.messages if "OpenTelemetry failed" in line]
    assert 1 == len(lines)


class Key(str):
    def __str__(self) -> str:
        raise LookupError("key")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("make", "text"),
    [
        (NoText, "<NoText: its text raised RuntimeError>"),
        (NoAttributes, "bad"),
        (no_name, "bad"),
        (nested_causes, "3000"),
        (nested_groups, "3000 (2 sub-exceptions)"),
    ],
)
async def test_span_of_a_hostile_exception_ends_with_its_type_and_text(
    broker: EmbeddedBroker,
    recorded: Recorded,
    caplog: pytest.LogCaptureFixture,
    make: Callable[[], Exception],
    text: str,
) -> None:
    broker.produce("orders", [b"tea", b"milk"])
    error = make()

    async def handle(record: Record[Any, Any]) -> None:
        if record.value == b"tea":
            raise error

    async with working(
        broker,
        handle,
        instrumentation=recorded.instrumentation,
        retry=RetryPolicy(max_attempts=1),
        dead_letter=DeadLetterQueue("orders.dead"),
    ) as worker:
        await until(lambda: settled(broker, 2))

    assert (1, 1) == (worker.stats.accepted, worker.stats.dead_lettered)
    failed, _ = recorded.named("process orders")
    assert (StatusCode.ERROR, text) == (
        failed.status.status_code,
        failed.status.description,
    )
    assert "exception" in [event.name for event in failed.events]
    assert "OpenTelemetry failed" not in caplog.text


@pytest.mark.anyio
async def test_key_whose_text_raises_is_left_out(
    broker: EmbeddedBroker, recorded: Recorded
) -> None:
    broker.produce("orders", [b"tea"], keys=[b"7"])
    received: list[int] = []

    async def handle(record: Record[Any, Any]) -> None:
        received.append(record.offset)

    async with working(
        broker,
        handle,
        instrumentation=recorded.instrumentation,
        key_deserializer=lambda key: Key(key.decode()),
    ) as worker:
        await until(lambda: settled(broker, 1))

    assert ([0], 1) == (received, worker.stats.accepted)
    span = recorded.one("process orders")
    assert "messaging.kafka.message.key" not in (span.attributes or {})


# The guide.


def test_every_program_of_the_guide_compiles() -> None:
    assert 2 == Guide("opentelemetry.md").compile()


def test_guide_names_every_attribute_metric_and_argument() -> None:
    from sharecons.otel import attributes

    text = Guide("opentelemetry.md").text
    expected = [
        *(
            value
            for name, value in vars(attributes).items()
            if name in attributes.__all__ and isinstance(value, str)
        ),
        *attributes.OLD_NAMES.values(),
        "messaging.client.operation.duration",
        "messaging.process.duration",
        "messaging.client.consumed.messages",
        "messaging.client.sent.messages",
        "producer_as_parent",
    ]
    assert [
        name for name in expected if f"`{name}`" not in text and "http" not in name
    ] == []
