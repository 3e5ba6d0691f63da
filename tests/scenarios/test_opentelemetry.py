"""The spans of a record on both brokers, with aiokafka's producer and with Producer."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from opentelemetry.instrumentation.aiokafka import AIOKafkaInstrumentor
from opentelemetry.sdk.trace import ReadableSpan

from sharecons import Producer, RetryTopic
from sharecons.dead_letters import DeadLetters
from tests.kafka_plugin import Admin
from tests.otel.journey import POLICY, FailingHandler, check_journey
from tests.otel.recorded import Recorded, attributes_of
from tests.scenarios.queue import Queue
from tests.waiting import until

pytestmark = pytest.mark.anyio


@pytest.fixture
async def recorded() -> AsyncIterator[Recorded]:
    """Spans of sharecons, and of aiokafka by its own instrumentation."""
    recorded, instrumentor = Recorded(), AIOKafkaInstrumentor()
    instrumentor.instrument(tracer_provider=recorded.provider)
    yield recorded
    instrumentor.uninstrument()


async def send_by_aiokafka(queue: Queue, recorded: Recorded) -> ReadableSpan:
    async with AIOKafkaProducer(
        bootstrap_servers=queue.admin.bootstrap_servers
    ) as producer:
        await producer.send_and_wait(queue.topic, b"tea", key=b"customer-7")
    return recorded.one(f"{queue.topic} send")


async def send_by_sharecons(queue: Queue, recorded: Recorded) -> ReadableSpan:
    async with Producer(
        bootstrap_servers=queue.admin.bootstrap_servers,
        instrumentation=recorded.instrumentation,
    ) as producer:
        await producer.send(queue.topic, b"tea", key=b"customer-7")
    return recorded.one(f"send {queue.topic}")


@pytest.mark.both_loops
async def test_record_has_one_trace_from_its_producer_to_its_redrive(
    admin: Admin,
    recorded: Recorded,
    monkeypatch: pytest.MonkeyPatch,
    anyio_backend_name: str,
) -> None:
    queue = Queue(admin)
    retry, dead = admin.create_topic(), admin.create_topic()
    handle = FailingHandler(monkeypatch, source=queue.topic, retry=retry)
    # aiokafka needs asyncio.
    send: Any = (
        send_by_aiokafka if anyio_backend_name == "asyncio" else send_by_sharecons
    )
    sent = await send(queue, recorded)

    async with queue.worker(
        handle,
        retry=POLICY,
        retry_topics=[RetryTopic(retry, 0.2)],
        dead_letter=dead,
        handle_signals=False,
        instrumentation=recorded.instrumentation,
    ) as worker:
        await until(lambda: worker.stats.dead_lettered == 1)
        async with DeadLetters(
            dead,
            bootstrap_servers=admin.bootstrap_servers,
            instrumentation=recorded.instrumentation,
        ) as letters:
            summary = await letters.redrive()
        await until(lambda: worker.stats.accepted == 1)

    assert 1 == summary.redriven
    assert handle.expected == handle.topics
    check_journey(recorded, sent, source=queue.topic, retry=retry, dead=dead)
    clusters = {
        attributes_of(span).get("messaging.kafka.cluster.id")
        for span in recorded.spans
        if span.name.startswith(("process", "settle"))
    }
    assert 1 == len(clusters)
    assert None not in clusters
