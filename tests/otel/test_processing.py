"""`process` spans of a worker's handlers, however they end."""

from typing import Any

import anyio
import pytest
from opentelemetry import baggage, trace
from opentelemetry.trace import SpanKind, StatusCode

from sharecons import (
    Attempt,
    BatchHandler,
    HandlerBatch,
    Record,
    Reject,
    Retry,
    RetryPolicy,
    ShareGroupAdmin,
)
from sharecons.instrumentation import Client
from sharecons.testing import EmbeddedBroker, make_record
from sharecons.testing.virtual_time import Backend
from sharecons.worker.outcomes import LockLost
from tests.otel.recorded import Recorded, attributes_of, context_of, links_of
from tests.waiting import until
from tests.worker.working import on_real_clock, settled, working

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_clock: Backend) -> Backend:
    return virtual_clock


SENT = 0xABCDEF0123456789
HEADERS = (
    ("traceparent", f"00-{'1' * 32}-{SENT:016x}-01".encode()),
    ("baggage", b"customer=7"),
)
ONCE = RetryPolicy(max_attempts=1)
CLIENT = Client("till", "billing", lambda: None)


def current_span_id() -> int:
    return trace.get_current_span().get_span_context().span_id


async def test_span_has_the_attributes_of_its_record(
    broker: EmbeddedBroker, recorded: Recorded
) -> None:
    broker.produce("orders", [None], keys=["customer-7"], headers=HEADERS)
    currents: list[tuple[int, object]] = []

    async def handle(record: Record[Any, Any]) -> None:
        await anyio.lowlevel.checkpoint()
        currents.append((current_span_id(), baggage.get_baggage("customer")))

    async with working(
        broker, handle, instrumentation=recorded.instrumentation, client_id="till"
    ):
        await until(lambda: settled(broker, 1))
    async with ShareGroupAdmin(
        bootstrap_servers=broker.bootstrap_servers, network=broker.network
    ) as admin:
        cluster = await admin.describe_cluster()

    span = recorded.one("process orders")
    assert SpanKind.CONSUMER is span.kind
    assert [(context_of(span).span_id, "7")] == currents
    assert ([SENT], None) == (links_of(span), span.parent)
    assert StatusCode.UNSET is span.status.status_code
    assert {
        "messaging.system": "kafka",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "orders",
        "messaging.destination.partition.id": "0",
        "messaging.consumer.group.name": "billing",
        "messaging.client.id": "till",
        "messaging.kafka.cluster.id": cluster.cluster_id,
        "messaging.kafka.offset": 0,
        "messaging.kafka.message.key": "customer-7",
        "messaging.kafka.message.tombstone": True,
        "sharecons.delivery.count": 1,
        "sharecons.disposition": "accept",
    } == attributes_of(span)


async def test_retries_in_place_are_spans_of_one_delivery(
    broker: EmbeddedBroker, recorded: Recorded
) -> None:
    broker.produce("orders", [b"tea"])
    calls = 0

    async def fail_twice(record: Record[Any, Any]) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise Retry(after=0.1)
        if calls == 2:
            raise ConnectionError("no route")

    async with working(broker, fail_twice, instrumentation=recorded.instrumentation):
        await until(lambda: settled(broker, 1))

    by_decision, by_error, done = recorded.named("process orders")
    dispositions = ("sharecons.disposition", "error.type")
    assert [("retry", None), ("retry", "ConnectionError"), ("accept", None)] == [
        tuple(attributes_of(span).get(each) for each in dispositions)
        for span in (by_decision, by_error, done)
    ]
    assert StatusCode.UNSET is by_decision.status.status_code
    assert (StatusCode.ERROR, "no route") == (
        by_error.status.status_code,
        by_error.status.description,
    )
    (event,) = by_error.events
    assert "exception" == event.name
    names = ("messaging.destination.name", "error.type")
    assert {("orders", None): 2, ("orders", "ConnectionError"): 1} == recorded.counts(
        "messaging.process.duration", *names
    )
    assert {("orders", None): 1} == recorded.counts(
        "messaging.client.consumed.messages", *names
    )


async def test_handler_that_exceeds_its_timeout_has_failed_with_a_timeout(
    broker: EmbeddedBroker, recorded: Recorded
) -> None:
    broker.produce("orders", [b"tea"])

    async def hang(record: Record[Any, Any]) -> None:
        await anyio.sleep(60.0)

    async with working(
        broker,
        hang,
        timeout=0.5,
        retry=ONCE,
        instrumentation=recorded.instrumentation,
    ):
        await until(lambda: settled(broker, 1))

    attributes = attributes_of(recorded.one("process orders"))
    assert ("TimeoutError", "reject") == (
        attributes["error.type"],
        attributes["sharecons.disposition"],
    )


async def test_handler_that_the_end_of_the_worker_cancels(
    broker: EmbeddedBroker, recorded: Recorded
) -> None:
    broker.produce("orders", [b"tea"])
    has_begun = anyio.Event()

    async def hang(record: Record[Any, Any]) -> None:
        has_begun.set()
        await anyio.sleep(60.0)

    async with working(
        broker, hang, instrumentation=recorded.instrumentation
    ) as worker:
        await has_begun.wait()
        worker.stop_now()

    attributes = attributes_of(recorded.one("process orders"))
    assert "cancelled" == attributes["error.type"]
    # The release of the record is a settlement, by the worker.
    settlement = recorded.one("settle orders")
    assert "release" == attributes_of(settlement)["sharecons.disposition"]


async def test_handler_that_loses_its_lock(
    broker: EmbeddedBroker, recorded: Recorded
) -> None:
    broker.set_group_config("billing", {"share.record.lock.duration.ms": 1000})
    broker.produce("orders", [b"tea"])
    broker.faults.on("ShareAcknowledge").cut()

    async def run_long(record: Record[Any, Any]) -> None:
        await anyio.sleep(1.2 if record.delivery_count == 1 else 0.0)

    async with working(broker, run_long, instrumentation=recorded.instrumentation):
        await until(lambda: settled(broker, 1))

    lost, done = recorded.named("process orders")
    assert ("lock_lost", "lock_lost", 1) == tuple(
        attributes_of(lost)[name]
        for name in ("error.type", "sharecons.disposition", "sharecons.delivery.count")
    )
    assert 2 == attributes_of(done)["sharecons.delivery.count"]
    # Nothing is settled for the lost delivery, and both were delivered.
    settlement = recorded.one("settle orders")
    assert 2 == attributes_of(settlement)["sharecons.delivery.count"]
    assert {("orders",): 2} == recorded.counts(
        "messaging.client.consumed.messages", "messaging.destination.name"
    )


@pytest.mark.parametrize("producer_as_parent", [False, True])
async def test_span_is_not_below_the_span_in_which_the_worker_was_started(
    broker: EmbeddedBroker, producer_as_parent: bool
) -> None:
    recorded = Recorded(producer_as_parent=producer_as_parent)
    broker.produce("orders", [b"tea"], headers=HEADERS)
    tracer = recorded.provider.get_tracer("application")

    async def handle(record: Record[Any, Any]) -> None:
        with tracer.start_as_current_span("charge"):
            await anyio.lowlevel.checkpoint()

    with tracer.start_as_current_span("main"):
        async with working(broker, handle, instrumentation=recorded.instrumentation):
            await until(lambda: settled(broker, 1))

    span, charge = recorded.one("process orders"), recorded.one("charge")
    parent = None if span.parent is None else span.parent.span_id
    assert (SENT if producer_as_parent else None) == parent
    assert charge.parent is not None
    assert context_of(span).span_id == charge.parent.span_id


async def test_batch_is_one_span_with_a_link_to_each_record(
    broker: EmbeddedBroker,
) -> None:
    recorded = Recorded(producer_as_parent=True)
    for number in range(3):
        parent = f"00-{'1' * 32}-{number + 1:016x}-01".encode()
        broker.produce("orders", [b"tea"], headers=[("traceparent", parent)])
    batches: list[list[int]] = []

    async def handle(batch: HandlerBatch[Any, Any]) -> None:
        batches.append([record.offset for record in batch])
        for record in batch:
            if record.offset == 1:
                batch.fail(record, ValueError("no order"))

    async with working(
        broker,
        BatchHandler(handle, max_records=3, max_wait=1.0),
        retry=ONCE,
        instrumentation=recorded.instrumentation,
    ):
        await until(lambda: settled(broker, 3))

    assert [[0, 1, 2]] == batches
    span = recorded.one("process orders")
    attributes = attributes_of(span)
    assert ([1, 2, 3], None) == (links_of(span), span.parent)
    assert [("0", 0, 1), ("0", 1, 1), ("0", 2, 1)] == [
        tuple((link.attributes or {}).values()) for link in span.links
    ]
    assert (3, "0", "ValueError") == (
        attributes["messaging.batch.message_count"],
        attributes["messaging.destination.partition.id"],
        attributes["error.type"],
    )
    assert not {"messaging.kafka.offset", "sharecons.disposition"} & set(attributes)


async def test_outcome_by_another_middleware_is_the_disposition(
    broker: EmbeddedBroker, recorded: Recorded
) -> None:
    broker.produce("orders", [b"tea"])
    currents: list[int] = []

    async def handle(record: Record[Any, Any]) -> None:
        pass

    async def reject(attempt: Any, call_next: Any) -> None:
        await call_next()
        currents.append(current_span_id())
        raise Reject("too late")

    async with working(
        broker,
        handle,
        middleware=[reject],
        instrumentation=recorded.instrumentation,
    ):
        await until(lambda: settled(broker, 1))

    span = recorded.one("process orders")
    assert "reject" == attributes_of(span)["sharecons.disposition"]
    assert "error.type" not in attributes_of(span)
    assert [context_of(span).span_id] == currents


@on_real_clock
async def test_span_is_current_in_the_thread_of_a_plain_function(
    recorded: Recorded,
) -> None:
    currents: list[int] = []

    def handle(record: Record[Any, Any]) -> None:
        currents.append(current_span_id())

    async with EmbeddedBroker(
        settings={"group.share.assignment.interval.ms": "0"}, listen=False
    ) as broker:
        broker.create_topic("orders")
        broker.produce("orders", [b"tea"])
        async with working(broker, handle, instrumentation=recorded.instrumentation):
            await until(lambda: settled(broker, 1))

    assert [context_of(recorded.one("process orders")).span_id] == currents


# The context after the handler.


def sent_record() -> Record[Any, Any]:
    return make_record(b"tea", headers=HEADERS, topic="orders")


@pytest.mark.parametrize("raised", [ValueError("no"), Retry(), KeyboardInterrupt()])
async def test_span_is_not_current_after_a_handler_that_raises(
    recorded: Recorded, raised: BaseException
) -> None:
    observer = recorded.instrumentation.observe_member(CLIENT)
    currents: list[int] = []

    async def call_next() -> None:
        await anyio.lowlevel.checkpoint()
        currents.append(current_span_id())
        raise raised

    with pytest.raises(type(raised)) as found:
        await observer.process(Attempt(sent_record(), 1, "charge"), call_next)

    assert raised is found.value
    assert trace.INVALID_SPAN is trace.get_current_span()
    assert [context_of(recorded.one("process orders")).span_id] == currents


@pytest.mark.parametrize("lost", [False, True])
async def test_span_is_not_current_after_a_handler_that_is_cancelled(
    recorded: Recorded, lost: bool
) -> None:
    observer = recorded.instrumentation.observe_member(CLIENT)
    attempt = Attempt(sent_record(), 1, "charge")

    async def call_next() -> None:
        if lost:
            attempt.outcome = LockLost()
        scope.cancel()
        await anyio.sleep_forever()

    with anyio.CancelScope() as scope:
        try:
            await observer.process(attempt, call_next)
        finally:
            after = trace.get_current_span()

    assert scope.cancelled_caught
    assert trace.INVALID_SPAN is after is trace.get_current_span()
    error_type = attributes_of(recorded.one("process orders"))["error.type"]
    assert ("lock_lost" if lost else "cancelled") == error_type


async def test_span_of_the_caller_is_current_again(recorded: Recorded) -> None:
    observer = recorded.instrumentation.observe_member(CLIENT)
    tracer = recorded.provider.get_tracer("application")

    async def call_next() -> None:
        await anyio.lowlevel.checkpoint()

    with tracer.start_as_current_span("main") as main:
        await observer.process(Attempt(sent_record(), 1, "charge"), call_next)
        assert main is trace.get_current_span()
