"""Waiting for partitions, and the fetches that fix where a new group starts."""

import anyio
import pytest

from sharecons.errors import (
    AuthorizationError,
    ClosedError,
    ConsumerStateError,
    GroupError,
    NotSubscribedError,
)
from tests.net.embedded import (
    GROUP,
    SlowNetwork,
    consuming,
    next_record,
    read_records,
    record_requests,
    requests,
    running,
)

pytestmark = pytest.mark.anyio


def start_at_end(broker):
    broker.set_group_config(GROUP, {"share.auto.offset.reset": "latest"})


async def test_assigned_returns_the_partitions_and_reading_starts_after_it():
    async with running(3, partitions=3) as broker:
        start_at_end(broker)
        async with consuming(broker) as consumer:
            assigned = await consumer.assigned()
            broker.produce("orders", [b"new"], partition=0)
            record = await next_record(consumer)

    assert {0, 1, 2} == {each.partition for each in assigned}
    assert b"new" == record.value


async def test_each_leader_gets_one_fetch_without_records():
    async with running(5, brokers=2, partitions=4) as broker:
        fetches = record_requests(broker, "ShareFetch")
        async with consuming(broker) as consumer:
            await consumer.assigned()
            await anyio.sleep(60)
            await consumer.assigned()
            sent = [
                (request.max_records, context.node_id) for request, context in fetches
            ]
            in_flight = broker.group(GROUP).partition("orders", 0).in_flight

    assert [(-1, 1), (-1, 2)] == sorted(sent)
    assert not in_flight


async def test_partition_with_a_new_leader_is_fetched_there():
    async with running(1, brokers=2) as broker:
        fetches = record_requests(broker, "ShareFetch")
        async with consuming(broker) as consumer:
            await consumer.assigned()
            broker.move_leader("orders", 0, to=2)
            # The metadata is older than the move; a read shows it.
            await next_record(consumer)
            sent = [context.node_id for _, context in fetches]
            assert await consumer.assigned()

    assert 2 in sent


async def test_start_is_fixed_again_when_the_broker_restarts():
    async with running(1) as broker:
        start_at_end(broker)
        async with consuming(broker) as consumer:
            await consumer.assigned()
            broker.stop_broker(1)
            await anyio.sleep(2)
            broker.start_broker(1)
            await anyio.sleep(5)
            fetched = requests(broker, "ShareFetch", anyio.current_time() - 5)
            await consumer.assigned()

    assert 1 == len(fetched)


async def test_partition_of_a_later_subscription_is_waited_for():
    async with running(1) as broker:
        start_at_end(broker)
        broker.create_topic("refunds", 1)
        async with consuming(broker) as consumer:
            await consumer.assigned()
            consumer.subscribe("refunds")
            assigned = await consumer.assigned()
            broker.produce("refunds", [b"new"])
            record = await next_record(consumer)

    assert {"refunds"} == {each.topic for each in assigned}
    assert b"new" == record.value


async def test_assigned_waits_for_a_topic_that_is_created_later():
    async with running(topic=None) as broker, consuming(broker) as consumer:
        with anyio.move_on_after(20) as limit:
            await consumer.assigned()
        broker.create_topic("orders", 1)
        assigned = await consumer.assigned()

    assert limit.cancelled_caught
    assert 1 == len(assigned)


async def test_assigned_beside_a_waiting_reader_returns():
    received = []
    async with running() as broker:
        start_at_end(broker)

        async def read(consumer):
            async for record in consumer:
                received.append(record.value)  # noqa: PERF401 (never ends)

        async with (
            consuming(broker) as consumer,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(read, consumer)
            await consumer.assigned()
            broker.produce("orders", [b"new"])
            await anyio.sleep(5)
            tasks.cancel_scope.cancel()

    assert [b"new"] == received


async def test_assigned_before_the_start_and_after_the_close_is_an_error():
    async with running() as broker:
        async with consuming(broker) as consumer:
            pass
        with pytest.raises(ClosedError):
            await consumer.assigned()
        network = SlowNetwork(broker)
        consumer = type(consumer)("orders", group_id=GROUP, network=network)
        with pytest.raises(ConsumerStateError, match="not started"):
            await consumer.assigned()


async def close(consumer):
    await consumer.aclose()


async def unsubscribe(consumer):
    consumer.unsubscribe()


@pytest.mark.parametrize(
    ("end", "error", "text"),
    [(close, ClosedError, None), (unsubscribe, NotSubscribedError, "subscribe")],
)
async def test_wait_for_partitions_ends(end, error, text):
    async with running(topic=None) as broker, consuming(broker) as consumer:
        async with anyio.create_task_group() as tasks:

            async def wait():
                with pytest.raises(error, match=text):
                    await consumer.assigned()

            tasks.start_soon(wait)
            await anyio.sleep(5)
            await end(consumer)


async def test_fatal_error_ends_a_wait_for_partitions():
    async with running() as broker:
        heartbeats = broker.faults.on("ShareGroupHeartbeat", times=None)
        heartbeats.refuse("GROUP_MAX_SIZE_REACHED")
        async with consuming(broker) as consumer:
            with pytest.raises(GroupError, match="GROUP_MAX_SIZE_REACHED"):
                await consumer.assigned()


async def test_forbidden_topic_ends_a_wait_and_is_raised_by_the_reader():
    async with running(1) as broker:
        fetches = broker.faults.on("ShareFetch", times=None)
        fetches.refuse_partitions("TOPIC_AUTHORIZATION_FAILED")
        async with consuming(broker) as consumer:
            with pytest.raises(AuthorizationError, match="orders"):
                await consumer.assigned()
            with pytest.raises(AuthorizationError, match="orders"):
                await anext(aiter(consumer))


async def test_rejected_negative_record_limit_is_not_fatal():
    async with running(2) as broker:
        fetches = broker.faults.on(
            "ShareFetch", times=None, where=lambda request, _: request.max_records < 0
        )
        fetches.refuse("INVALID_REQUEST")
        async with consuming(broker) as consumer:
            await consumer.assigned()
            records = await read_records(consumer, 2)

        assert fetches
        assert [0, 1] == [record.offset for record in records]
