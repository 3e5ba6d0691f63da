"""The trace of a record: its send, retries, a retry topic, a dead letter, a redrive."""

from typing import Any

import pytest

from sharecons import Producer, RetryTopic, ShareGroupAdmin
from sharecons.dead_letters import DeadLetters
from sharecons.testing import EmbeddedBroker
from sharecons.testing.virtual_time import Backend
from tests.otel.journey import POLICY, FailingHandler, check_journey, is_child
from tests.otel.recorded import Recorded, context_of
from tests.waiting import until
from tests.worker.working import settled, working

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_clock: Backend) -> Backend:
    return virtual_clock


@pytest.mark.parametrize("producer_as_parent", [False, True])
async def test_one_trace_has_a_record_from_its_send_to_its_redrive(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch, producer_as_parent: bool
) -> None:
    recorded = Recorded(producer_as_parent=producer_as_parent)
    tracer = recorded.provider.get_tracer("application")
    handle = FailingHandler(monkeypatch, source="orders", retry="orders.retry")
    observed: dict[str, Any] = {
        "instrumentation": recorded.instrumentation,
        "network": broker.network,
    }
    async with Producer(
        bootstrap_servers=broker.bootstrap_servers, **observed
    ) as producer:
        with tracer.start_as_current_span("checkout"):
            await producer.send("orders", b"tea", key=b"customer-7")
    sent = recorded.one("send orders")

    async with working(
        broker,
        handle,
        retry=POLICY,
        retry_topics=[RetryTopic("orders.retry", 0.2)],
        dead_letter="orders.dead",
        instrumentation=recorded.instrumentation,
    ):
        await until(lambda: broker.records("orders.dead"))
        async with ShareGroupAdmin(
            bootstrap_servers=broker.bootstrap_servers, network=broker.network
        ) as admin:
            letters = DeadLetters.from_admin(
                admin, "orders.dead", instrumentation=recorded.instrumentation
            )
            summary = await letters.redrive()
        await until(lambda: settled(broker, 2))

    assert 1 == summary.redriven
    assert handle.expected == handle.topics
    assert is_child(sent, recorded.one("checkout"))
    assert 13 == len(recorded.spans)
    check_journey(
        recorded,
        sent,
        source="orders",
        retry="orders.retry",
        dead="orders.dead",
        producer_as_parent=producer_as_parent,
    )
    # A copy has the context of its own span, and no other.
    (copy,) = broker.records("orders.retry")
    parents = [value for name, value in copy.headers if name == "traceparent"]
    moved = context_of(recorded.one("send orders.retry"))
    assert [f"00-{moved.trace_id:032x}-{moved.span_id:016x}-01".encode()] == [
        value[:-2] + b"01" for value in parents if value
    ]
