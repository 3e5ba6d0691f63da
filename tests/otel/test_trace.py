"""The trace of a record: its send, retries, a retry topic, a dead letter, a redrive."""

from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind

from sharecons import (
    DeadLetter,
    Producer,
    Record,
    RetryPolicy,
    RetryTopic,
    ShareGroupAdmin,
)
from sharecons.dead_letters import DeadLetters
from sharecons.testing import EmbeddedBroker
from sharecons.testing.virtual_time import Backend
from sharecons.worker.machine import window
from tests.otel.recorded import Recorded, attributes_of, context_of, links_of
from tests.waiting import until
from tests.worker.working import settled, working

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_clock: Backend) -> Backend:
    return virtual_clock


POLICY = RetryPolicy(max_attempts=5, initial=0.5, maximum=0.5, jitter=0.0)


class FailingHandler:
    """Fails three times, is moved, becomes a dead letter, and succeeds at last."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.topics: list[str] = []
        self._monkeypatch = monkeypatch

    async def __call__(self, record: Record[Any, Any]) -> None:
        self.topics.append(record.topic)
        if len(self.topics) == 3:  # from now on, no record can wait in place
            self._monkeypatch.setattr(window, "USABLE", 0.0)
        if len(self.topics) <= 3:
            raise TimeoutError("slow")
        if record.topic == "orders.retry":
            raise DeadLetter("no such customer")


def described(spans: list[ReadableSpan]) -> list[tuple[str, SpanKind, Any, Any]]:
    """Return name, kind, disposition and error type of each span."""
    return [
        (
            span.name,
            span.kind,
            attributes_of(span).get("sharecons.disposition"),
            attributes_of(span).get("error.type"),
        )
        for span in sorted(spans, key=lambda span: span.start_time or 0)
    ]


@pytest.mark.parametrize("producer_as_parent", [False, True])
async def test_one_trace_has_a_record_from_its_send_to_its_redrive(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch, producer_as_parent: bool
) -> None:
    recorded = Recorded(producer_as_parent=producer_as_parent)
    tracer = recorded.provider.get_tracer("application")
    handle = FailingHandler(monkeypatch)
    observed: dict[str, Any] = {
        "instrumentation": recorded.instrumentation,
        "network": broker.network,
    }
    async with Producer(broker.bootstrap_servers, **observed) as producer:
        with tracer.start_as_current_span("checkout"):
            await producer.send("orders", b"tea", key=b"customer-7")

    async with working(
        broker,
        handle,
        retry=POLICY,
        retry_topics=[RetryTopic("orders.retry", 0.5)],
        dead_letter="orders.dead",
        instrumentation=recorded.instrumentation,
    ):
        await until(lambda: broker.records("orders.dead"))
        async with ShareGroupAdmin(
            broker.bootstrap_servers, network=broker.network
        ) as admin:
            letters = DeadLetters.from_admin(
                admin, "orders.dead", instrumentation=recorded.instrumentation
            )
            summary = await letters.redrive()
        await until(lambda: settled(broker, 2))

    assert 1 == summary.redriven
    assert ["orders"] * 3 + ["orders.retry", "orders"] == handle.topics
    spans = [span for span in recorded.spans if span.name != "checkout"]
    assert sorted(described(spans), key=str) == sorted(
        [
            ("send orders", SpanKind.PRODUCER, None, None),
            ("process orders", SpanKind.CONSUMER, "retry", "TimeoutError"),
            ("process orders", SpanKind.CONSUMER, "retry", "TimeoutError"),
            ("process orders", SpanKind.CONSUMER, "move", "TimeoutError"),
            ("send orders.retry", SpanKind.PRODUCER, None, None),
            ("settle orders", SpanKind.CLIENT, "accept", None),
            ("process orders.retry", SpanKind.CONSUMER, "dead_letter", None),
            ("send orders.dead", SpanKind.PRODUCER, None, None),
            ("settle orders.retry", SpanKind.CLIENT, "accept", None),
            ("send orders", SpanKind.PRODUCER, None, None),
            ("process orders", SpanKind.CONSUMER, "accept", None),
            ("settle orders", SpanKind.CLIENT, "accept", None),
        ],
        key=str,
    )
    sent, redriven = recorded.named("send orders")
    first, second, third, last = recorded.named("process orders")
    moved, retried = (
        recorded.one("send orders.retry"),
        recorded.one("process orders.retry"),
    )
    lettered = recorded.one("send orders.dead")
    settle, settle_last = recorded.named("settle orders")
    settle_retried = recorded.one("settle orders.retry")

    # The trace has every record that is written, each copy below its source.
    checkout = recorded.one("checkout")
    parents = [checkout, sent, moved, lettered]
    for child, parent in zip([sent, moved, lettered, redriven], parents, strict=True):
        assert is_child(child, parent)
    assert [[], [id_of(third)], [id_of(retried)], []] == [
        links_of(each) for each in (sent, moved, lettered, redriven)
    ]

    # Attempts are linked to the record that they process, or are below it.
    sources = [sent, sent, sent, moved, redriven]
    for attempt, source in zip(
        [first, second, third, retried, last], sources, strict=True
    ):
        assert [id_of(source)] == links_of(attempt)
        if producer_as_parent:
            assert is_child(attempt, source)
        else:
            assert attempt.parent is None

    # Settlements are below the last attempt.
    for settlement, attempt, source in (
        (settle, third, sent),
        (settle_retried, retried, moved),
        (settle_last, last, redriven),
    ):
        assert is_child(settlement, attempt)
        assert [id_of(source)] == links_of(settlement)
    traces = {context_of(span).trace_id for span in recorded.spans}
    assert (1 if producer_as_parent else 6) == len(traces)

    # The record itself has the context of the span that has written it.
    (copy,) = broker.records("orders.retry")
    headers = [value for name, value in copy.headers if name == "traceparent"]
    assert [f"{id_of(moved):016x}".encode()] == [
        value.split(b"-")[2] for value in headers if value is not None
    ]


def id_of(span: ReadableSpan) -> int:
    return context_of(span).span_id


def is_child(span: ReadableSpan, parent: ReadableSpan) -> bool:
    return (
        span.parent is not None
        and span.parent.span_id == id_of(parent)
        and context_of(span).trace_id == context_of(parent).trace_id
    )
