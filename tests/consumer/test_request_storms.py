"""Valid responses that repeatedly come too early cause no request storm."""

import anyio
import pytest

from sharecons.admin import ShareGroupAdmin
from sharecons.inspection.peek import peek
from sharecons.testing import EmbeddedBroker
from tests.consumer import consuming as fast
from tests.net.embedded import SlowNetwork
from tests.waiting import until

pytestmark = pytest.mark.anyio


SECONDS = 4.0
LATEST = -1


@pytest.fixture
async def broker():
    async with EmbeddedBroker(listen=False) as broker:
        broker.create_topic("orders")
        yield broker


def consuming(broker, **options):
    return fast.consuming(broker, network=SlowNetwork(broker), **options)


class Reading:
    """Reads a consumer in a task."""

    def __init__(self, consumer):
        self._consumer = consumer
        self.values = []

    async def run(self):
        async for record in self._consumer:
            self.values.append(record.value)

    async def arrives(self, broker, value, within):
        """Produce a record, and wait until it is read: less than `within` seconds."""
        broker.produce("orders", [value])
        began = anyio.current_time()
        await until(lambda: value in self.values)
        assert anyio.current_time() - began < within


def empty(request, context):
    return {"responses": (), "node_endpoints": ()}


def heartbeat(milliseconds):
    def respond(request, context):
        return {
            "member_id": request.member_id,
            "member_epoch": max(1, request.member_epoch),
            "heartbeat_interval": milliseconds / 1000,
        }

    return respond


def no_topics(request, context):
    return {"brokers": (), "topics": ()}


@pytest.mark.parametrize("options", [{}, {"max_wait": 0.0}], ids=["", "no wait"])
async def test_empty_fetch_responses_cause_no_request_storm(broker, options):
    async with consuming(broker, **options) as consumer:
        reading = Reading(consumer)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reading.run)
            await reading.arrives(broker, b"before", 5)
            fault = broker.faults.on("ShareFetch", times=None).respond(empty)
            await anyio.sleep(SECONDS)
            hits = fault.hits
            fault.undo()
            await reading.arrives(broker, b"after", 1.5)
            await reading.arrives(broker, b"again", 0.2)
            tasks.cancel_scope.cancel()

    assert hits < (150 if options else 40)


async def test_two_empty_fetch_responses_delay_no_record(broker):
    async with consuming(broker) as consumer:
        reading = Reading(consumer)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reading.run)
            await reading.arrives(broker, b"before", 5)
            await anyio.sleep(0.6)  # the fetch waits at the broker now
            broker.faults.on("ShareFetch", times=2).respond(empty)
            await anyio.sleep(0.6)
            await reading.arrives(broker, b"after", 0.1)
            tasks.cancel_scope.cancel()


async def test_member_leaves_and_joins_again_if_nothing_else_helps(broker, caplog):
    async with consuming(broker) as consumer:
        reading = Reading(consumer)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reading.run)
            await reading.arrives(broker, b"before", 5)
            joins = broker.faults.on(
                "ShareGroupHeartbeat",
                times=None,
                where=lambda request, context: request.member_epoch <= 0,
            ).delay(0.0)
            fault = broker.faults.on("ShareFetch", times=None).respond(empty)
            await until(lambda: joins.hits == 2)
            fault.undo()
            await reading.arrives(broker, b"after", 2)
            tasks.cancel_scope.cancel()

    assert 1 == caplog.text.count("returns empty responses without waiting")


async def test_member_that_holds_records_does_not_leave_for_empty_responses(broker):
    async with consuming(broker, acknowledgement="explicit") as consumer:
        broker.produce("orders", [b"held"])
        (record,) = await consumer.poll(timeout=5)
        rebalances = consumer.metrics()["rebalance-total"]
        fault = broker.faults.on("ShareFetch", times=None).respond(empty)
        with anyio.move_on_after(SECONDS):
            await anext(aiter(consumer))

        assert fault.hits < 60
        assert record.held
        record.accept()
        (result,) = await consumer.commit()
        assert result.error is None
        assert rebalances == consumer.metrics()["rebalance-total"]


@pytest.mark.parametrize(("milliseconds", "max_hits"), [(0, 3), (1, 45)])
async def test_invalid_heartbeat_interval_causes_no_request_storm(
    broker, milliseconds, max_hits
):
    async with consuming(broker) as consumer:
        reading = Reading(consumer)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reading.run)
            await reading.arrives(broker, b"before", 5)
            heartbeats = broker.faults.on("ShareGroupHeartbeat", times=None)
            fault = heartbeats.respond(heartbeat(milliseconds))
            await until(lambda: fault.hits)  # after the heartbeat interval of 5 s
            await anyio.sleep(SECONDS)
            assert fault.hits <= max_hits
            await reading.arrives(broker, b"after", 0.2)
            tasks.cancel_scope.cancel()


async def test_metadata_without_topics_causes_no_request_storm(broker):
    fault = broker.faults.on("Metadata", times=None).respond(no_topics)
    async with consuming(broker) as consumer:
        reading = Reading(consumer)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reading.run)
            await anyio.sleep(SECONDS)
            assert fault.hits < 20
            fault.undo()
            await reading.arrives(broker, b"after", 2)
            tasks.cancel_scope.cancel()


async def test_missing_acknowledgement_results_cause_no_request_storm(broker):
    failed = []
    async with consuming(broker, on_acknowledged=failed.extend) as consumer:
        reading = Reading(consumer)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reading.run)
            await reading.arrives(broker, b"before", 5)
            await until(lambda: failed)
            fault = broker.faults.on("ShareAcknowledge", times=None).respond(empty)
            for number in range(20):
                await reading.arrives(broker, b"%d" % number, 0.5)
            await anyio.sleep(1)
            assert fault.hits <= 20
            fault.undo()
            await reading.arrives(broker, b"after", 0.5)
            tasks.cancel_scope.cancel()


def no_records(request, context):
    topics = [
        {
            "topic_id": topic.topic_id,
            "partitions": [
                {
                    "partition_index": each.partition,
                    "error_code": 0,
                    "high_watermark": 100,
                    "log_start_offset": 0,
                    "aborted_transactions": (),
                    "records": b"",
                }
                for each in topic.partitions
            ],
        }
        for topic in request.topics
    ]
    return {"error_code": 0, "session_id": 0, "responses": topics}


def one_record(request, context):
    topics = [
        {
            "name": topic.name,
            "partitions": [
                {
                    "partition_index": each.partition_index,
                    "error_code": 0,
                    "timestamp": -1,
                    "offset": int(each.timestamp == LATEST),
                }
                for each in topic.partitions
            ],
        }
        for topic in request.topics
    ]
    return {"topics": topics}


async def test_peek_at_logs_without_records_causes_no_request_storm(broker):
    broker.produce("orders", [b"1", b"2"])
    fault = broker.faults.on("Fetch", times=None).respond(no_records)
    async with ShareGroupAdmin(
        bootstrap_servers=broker.bootstrap_servers, network=SlowNetwork(broker)
    ) as admin:
        with anyio.fail_after(10):
            peeked = await peek(admin, "orders")

    (error,) = peeked.errors.values()
    assert "orders-0: the broker returned nothing from offset 0 on" in str(error)
    assert fault.hits < 10


async def test_missing_state_records_cause_no_request_storm(broker):
    broker.produce("orders", [b"1", b"2"])
    async with consuming(broker, acknowledgement="explicit") as consumer:
        for record in await consumer.poll(timeout=5):
            record.reject()
        await consumer.commit()
    broker.faults.on("ListOffsets", times=None).respond(one_record)
    fault = broker.faults.on("Fetch", times=None).respond(no_records)
    async with ShareGroupAdmin(
        bootstrap_servers=broker.bootstrap_servers,
        timeout=3,
        network=SlowNetwork(broker),
    ) as admin:
        results = await admin.read_state_records("billing")

    (error,) = results.errors.values()
    assert "was not read to its end within 3 s" in str(error)
    assert fault.hits < 20
