"""`send` spans of a producer."""

from typing import Any

import anyio
import pytest
from opentelemetry.trace import SpanKind, StatusCode

from sharecons import BrokerError, Error, Producer, ProducerRecord
from sharecons.testing import EmbeddedBroker
from sharecons.testing.virtual_time import Backend
from tests.otel.recorded import Recorded, attributes_of, context_of, links_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_clock: Backend) -> Backend:
    return virtual_clock


GIVEN = 0xABCDEF0123456789
HEADERS = (("traceparent", f"00-{'1' * 32}-{GIVEN:016x}-01".encode()),)
NAMES = ("messaging.destination.name", "error.type")


def producing(broker: EmbeddedBroker, recorded: Recorded, **options: Any) -> Producer:
    return Producer(
        bootstrap_servers=broker.bootstrap_servers,
        network=broker.network,
        instrumentation=recorded.instrumentation,
        **options,
    )


def parents(broker: EmbeddedBroker, topic: str) -> list[int | None]:
    """Return the id of the span in the headers of each record."""
    return [
        int((dict(record.headers)["traceparent"] or b"").split(b"-")[2], 16)
        for record in broker.records(topic)
    ]


async def test_span_is_below_the_current_one_and_its_context_is_in_the_record(
    broker: EmbeddedBroker, recorded: Recorded
) -> None:
    tracer = recorded.provider.get_tracer("application")
    async with producing(broker, recorded, client_id="till") as producer:
        await producer.send("orders", b"tea")  # the first response has the cluster's id
        with tracer.start_as_current_span("checkout") as checkout:
            await producer.send("orders", None, key=b"7", headers=[("tea", b"green")])

    span = recorded.named("send orders")[1]
    assert span.parent is not None
    assert checkout.get_span_context().span_id == span.parent.span_id
    assert (SpanKind.PRODUCER, []) == (span.kind, links_of(span))
    attributes = attributes_of(span)
    assert len(attributes.pop("messaging.kafka.cluster.id")) > 10
    assert {
        "messaging.system": "kafka",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "orders",
        "messaging.destination.partition.id": "0",
        "messaging.client.id": "till",
        "messaging.kafka.offset": 1,
        "messaging.kafka.message.key": "7",
        "messaging.kafka.message.tombstone": True,
    } == attributes
    assert context_of(span).span_id == parents(broker, "orders")[1]
    assert ("tea", b"green") == broker.records("orders")[1].headers[0]


async def test_context_of_the_application_is_kept(
    broker: EmbeddedBroker, recorded: Recorded
) -> None:
    async with producing(broker, recorded) as producer:
        await producer.send("orders", b"tea", headers=HEADERS)

    span = recorded.one("send orders")
    assert (SpanKind.CLIENT, [GIVEN]) == (span.kind, links_of(span))
    assert HEADERS == broker.records("orders")[0].headers


async def test_records_of_one_call_are_one_span_for_each_topic(
    broker: EmbeddedBroker, recorded: Recorded
) -> None:
    async with producing(broker, recorded) as producer:
        await producer.send_many(
            [
                ProducerRecord("orders", b"tea"),
                ProducerRecord("orders.retry", b"tea"),
                ProducerRecord("orders", b"milk", headers=HEADERS),
                ProducerRecord("orders", b"sugar"),
            ]
        )

    orders, retry = recorded.one("send orders"), recorded.one("send orders.retry")
    assert (SpanKind.PRODUCER, [GIVEN]) == (orders.kind, links_of(orders))
    assert 3 == attributes_of(orders)["messaging.batch.message_count"]
    assert "messaging.batch.message_count" not in attributes_of(retry)
    own = context_of(orders).span_id
    assert [own, GIVEN, own] == parents(broker, "orders")
    assert [context_of(retry).span_id] == parents(broker, "orders.retry")
    assert {("orders", None): 3, ("orders.retry", None): 1} == recorded.counts(
        "messaging.client.sent.messages", *NAMES
    )
    assert {("orders", None): 1, ("orders.retry", None): 1} == recorded.counts(
        "messaging.client.operation.duration", *NAMES
    )


async def test_rejected_record_has_kafkas_name_of_the_error(
    broker: EmbeddedBroker, recorded: Recorded
) -> None:
    broker.create_topic("small", 1, config={"max.message.bytes": 500})
    async with producing(broker, recorded) as producer:
        with pytest.raises(BrokerError):
            await producer.send("small", b"x" * 1000)
        good, bad = await producer.send_many(
            [ProducerRecord("orders", b"tea"), ProducerRecord("small", b"x" * 1000)]
        )

    assert not isinstance(good, Error)
    assert isinstance(bad, Error)
    for span in recorded.named("send small"):
        assert "MESSAGE_TOO_LARGE" == attributes_of(span)["error.type"]
        assert StatusCode.ERROR is span.status.status_code
    assert {("orders", None): 1, ("small", "MESSAGE_TOO_LARGE"): 2} == recorded.counts(
        "messaging.client.sent.messages", *NAMES
    )


async def test_part_of_a_batch_that_fails_is_an_error_of_its_span(
    broker: EmbeddedBroker, recorded: Recorded
) -> None:
    broker.create_topic("small", 2, config={"max.message.bytes": 500})
    async with producing(broker, recorded) as producer:
        await producer.send_many(
            [
                ProducerRecord("small", b"x", partition=0),
                ProducerRecord("small", b"x" * 1000, partition=1),
            ]
        )

    attributes = attributes_of(recorded.one("send small"))
    assert "MESSAGE_TOO_LARGE" == attributes["error.type"]
    assert {("small", None): 1, ("small", "MESSAGE_TOO_LARGE"): 1} == recorded.counts(
        "messaging.client.sent.messages", *NAMES
    )


async def test_cancelled_call_is_a_span_with_an_error(
    broker: EmbeddedBroker, recorded: Recorded
) -> None:
    broker.faults.on("Produce").stall()
    async with producing(broker, recorded) as producer:
        with anyio.move_on_after(1.0) as scope:
            await producer.send("orders", b"tea")
        broker.faults.clear()
        await producer.aclose(timeout=0.1)

    assert scope.cancelled_caught
    assert "cancelled" == attributes_of(recorded.one("send orders"))["error.type"]
