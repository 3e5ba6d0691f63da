"""`receive` and `settle` spans of a consumer, and what it processes itself."""

from typing import Any

import anyio
import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanContext, SpanKind, StatusCode

from sharecons import AuthorizationError, DeserializationError, ShareConsumer
from sharecons.otel.member_observer import OtelMemberObserver
from sharecons.testing import EmbeddedBroker
from sharecons.testing.virtual_time import Backend
from tests.otel.recorded import Recorded, attributes_of, context_of, links_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_clock: Backend) -> Backend:
    return virtual_clock


DISPOSITION = "sharecons.disposition"
COUNT = "messaging.batch.message_count"


def produce(broker: EmbeddedBroker, count: int) -> None:
    """Write records, each sent by a span whose id is its offset plus 1."""
    for number in range(count):
        parent = f"00-{'1' * 32}-{number + 1:016x}-01".encode()
        broker.produce("orders", [b"tea"], headers=[("traceparent", parent)])


def consuming(
    broker: EmbeddedBroker, recorded: Recorded, **options: Any
) -> ShareConsumer[bytes, bytes]:
    return ShareConsumer(
        "orders",
        group_id="billing",
        bootstrap_servers=broker.bootstrap_servers,
        network=broker.network,
        instrumentation=recorded.instrumentation,
        **options,
    )


async def test_each_record_of_a_loop_is_a_span(
    broker: EmbeddedBroker, recorded: Recorded
) -> None:
    produce(broker, 3)
    async with consuming(broker, recorded) as consumer:
        async for record in consumer:
            if record.offset == 2:
                record.accept()
                break

    assert isinstance(consumer.observer, OtelMemberObserver)
    assert 0 == consumer.observer.unsettled
    spans = recorded.named("receive orders")
    assert [(SpanKind.CLIENT, offset, [offset + 1], None) for offset in range(3)] == [
        (
            span.kind,
            attributes_of(span)["messaging.kafka.offset"],
            links_of(span),
            span.parent,
        )
        for span in spans
    ]
    assert not any(COUNT in attributes_of(span) for span in spans)
    settlements = recorded.named("settle orders")
    assert 3 == sum(attributes_of(span)[COUNT] for span in settlements)
    assert {"accept"} == {attributes_of(span)[DISPOSITION] for span in settlements}
    assert [1, 2, 3] == sorted(
        link for settlement in settlements for link in links_of(settlement)
    )
    names = ("messaging.operation.name", "messaging.consumer.group.name")
    assert {("receive", "billing"): 3} == recorded.counts(
        "messaging.client.consumed.messages", *names
    )
    durations = recorded.counts("messaging.client.operation.duration", *names)
    assert 3 == durations.pop(("receive", "billing"))
    assert {("settle", "billing"): len(settlements)} == durations


async def test_prefetched_records_have_no_spans_even_when_they_are_released(
    broker: EmbeddedBroker, recorded: Recorded
) -> None:
    broker.produce("orders", [b"tea"] * 10)
    held: list[Any] = []
    async with consuming(broker, recorded, acknowledgement="explicit") as consumer:
        while consumer.metrics()["records-fetched-total"] == len(held):
            held += await consumer.poll(timeout=5.0, max_records=1)
        for record in held:
            record.accept()

    assert [1] * len(held) == [
        attributes_of(span)[COUNT] for span in recorded.named("receive orders")
    ]
    settlements = [attributes_of(span) for span in recorded.named("settle orders")]
    assert {"accept"} == {each[DISPOSITION] for each in settlements}
    assert len(held) == sum(each[COUNT] for each in settlements)


async def test_batch_is_one_span(broker: EmbeddedBroker, recorded: Recorded) -> None:
    produce(broker, 3)
    counts: list[int] = []
    async with consuming(broker, recorded) as consumer:
        async for batch in consumer.batches():
            counts.append(len(batch))
            if sum(counts) == 3:
                batch.accept()
                break

    spans = recorded.named("receive orders")
    assert counts == [attributes_of(span)[COUNT] for span in spans]
    assert [1, 2, 3] == [link for span in spans for link in links_of(span)]


async def test_poll_that_returns_nothing_is_no_span(
    broker: EmbeddedBroker, recorded: Recorded
) -> None:
    async with consuming(broker, recorded) as consumer:
        assert [] == await consumer.poll(timeout=1.0)

    assert [] == recorded.spans


async def test_types_of_acknowledgements_are_different_spans(
    broker: EmbeddedBroker, recorded: Recorded
) -> None:
    produce(broker, 3)
    async with consuming(broker, recorded, acknowledgement="explicit") as consumer:
        held: dict[int, Any] = {}
        while len(held) < 3:
            for record in await consumer.poll(timeout=5.0):
                held[record.offset] = record
        held[0].accept()
        held[1].reject()
        held[2].renew()
        await consumer.commit()
        held[2].release()
        await consumer.commit()

    settlements = recorded.named("settle orders")
    assert [("accept", 0), ("reject", 1), ("release", 2)] == sorted(
        (
            (
                attributes_of(span)[DISPOSITION],
                attributes_of(span)["messaging.kafka.offset"],
            )
            for span in settlements
        ),
        key=lambda each: each[1],
    )


async def test_rejected_acknowledgement_has_the_name_of_the_error(
    broker: EmbeddedBroker, recorded: Recorded
) -> None:
    produce(broker, 1)
    async with consuming(broker, recorded, acknowledgement="explicit") as consumer:
        (record,) = await consumer.poll(timeout=5.0)
        for api in ("ShareAcknowledge", "ShareFetch"):
            broker.faults.on(api).refuse_partitions("INVALID_RECORD_STATE")
        record.accept()
        (result,) = await consumer.commit()
        broker.faults.clear()

    assert result.error is not None
    first = recorded.named("settle orders")[0]
    assert "INVALID_RECORD_STATE" == attributes_of(first)["error.type"]
    assert StatusCode.ERROR is first.status.status_code


async def test_record_that_cannot_be_deserialized_is_a_span_with_the_error(
    broker: EmbeddedBroker, recorded: Recorded
) -> None:
    produce(broker, 1)

    def fail(value: bytes) -> object:
        raise ValueError("not JSON")

    async with consuming(broker, recorded, value_deserializer=fail) as consumer:
        with pytest.raises(DeserializationError) as raised:
            await anext(aiter(consumer))
        raised.value.record.reject()

    span = recorded.one("receive orders")
    assert "sharecons.errors.DeserializationError" == attributes_of(span)["error.type"]
    assert [1] == links_of(span)
    settlement = recorded.one("settle orders")
    assert "reject" == attributes_of(settlement)[DISPOSITION]


async def test_cancelled_wait_is_no_span_and_loses_nothing(
    broker: EmbeddedBroker, recorded: Recorded
) -> None:
    async with consuming(broker, recorded) as consumer:
        loop = aiter(consumer)
        with anyio.move_on_after(1.0):
            await anext(loop)
        produce(broker, 1)
        record = await anext(loop)
        record.accept()

    assert 1 == len(recorded.named("receive orders"))


async def test_loop_ends_when_the_consumer_is_closed(
    broker: EmbeddedBroker, recorded: Recorded
) -> None:
    produce(broker, 1)
    offsets: list[int] = []
    async with consuming(broker, recorded) as consumer:
        async for record in consumer:
            offsets.append(record.offset)
            await consumer.aclose()

    assert [0] == offsets
    assert ["receive orders"] == [
        name for name in recorded.names if name.startswith("receive")
    ]


async def test_leaving_a_loop_releases_its_current_record(
    broker: EmbeddedBroker, recorded: Recorded
) -> None:
    produce(broker, 1)
    async with consuming(broker, recorded) as consumer:
        async for record in consumer:
            assert 1 == record.delivery_count
            break
        again = await anext(aiter(consumer))
        again.accept()

    assert 2 == again.delivery_count
    dispositions = [
        attributes_of(span)[DISPOSITION] for span in recorded.named("settle orders")
    ]
    assert ["release", "accept"] == dispositions


# Records that the application processes.


@pytest.mark.parametrize("producer_as_parent", [False, True])
async def test_block_processes_a_record(
    broker: EmbeddedBroker, producer_as_parent: bool
) -> None:
    recorded = Recorded(producer_as_parent=producer_as_parent)
    produce(broker, 1)
    currents: list[SpanContext] = []
    async with consuming(broker, recorded) as consumer:
        record = await anext(aiter(consumer))

        def charge() -> None:
            with recorded.instrumentation.process(consumer, record):
                currents.append(trace.get_current_span().get_span_context())
                raise LookupError("no customer")

        with pytest.raises(LookupError):
            charge()
        assert trace.INVALID_SPAN is trace.get_current_span()
        record.reject()

    (current,) = currents
    span = recorded.one("process orders")
    parent = None if span.parent is None else span.parent.span_id
    assert (1 if producer_as_parent else None) == parent
    assert (context_of(span).span_id, [1]) == (current.span_id, links_of(span))
    assert "LookupError" == attributes_of(span)["error.type"]
    settlement = recorded.one("settle orders")
    assert settlement.parent is not None
    assert current.span_id == settlement.parent.span_id
    # The record was counted when it was received.
    assert {("receive",): 1} == recorded.counts(
        "messaging.client.consumed.messages", "messaging.operation.name"
    )


async def test_block_within_another_span_is_below_it(broker: EmbeddedBroker) -> None:
    recorded = Recorded(producer_as_parent=True)
    tracer = recorded.provider.get_tracer("application")
    produce(broker, 1)
    async with consuming(broker, recorded) as consumer:
        record = await anext(aiter(consumer))
        with (
            tracer.start_as_current_span("request") as request,
            recorded.instrumentation.process(consumer, record),
        ):
            pass
        record.accept()

    span = recorded.one("process orders")
    assert span.parent is not None
    assert request.get_span_context().span_id == span.parent.span_id
    assert [1] == links_of(span)


async def test_topic_that_cannot_be_read_is_a_span_with_the_error(
    broker: EmbeddedBroker, recorded: Recorded
) -> None:
    broker.faults.on("ShareFetch").refuse_partitions("TOPIC_AUTHORIZATION_FAILED")
    async with consuming(broker, recorded) as consumer:
        with pytest.raises(AuthorizationError):
            await consumer.poll(timeout=5.0)

    span = recorded.one("receive")
    assert "TOPIC_AUTHORIZATION_FAILED" == attributes_of(span)["error.type"]
