"""The producer on the embedded broker, with faults: each record is written once.

In virtual time.
"""

from collections import Counter

import anyio
import pytest

from sharecons.errors import BrokerError, ClosedError, RequestTimedOutError
from sharecons.testing import EmbeddedBroker
from tests.producer.running import producing_on

pytestmark = pytest.mark.anyio


def values(broker: EmbeddedBroker, topic: str = "orders") -> Counter[bytes]:
    return Counter(record.value for record in broker.records(topic))


@pytest.mark.parametrize(
    "fault",
    [
        lambda found: found.cut(),
        lambda found: found.cut(after=True),
        lambda found: found.refuse("NOT_ENOUGH_REPLICAS_AFTER_APPEND"),
        lambda found: found.refuse("NOT_LEADER_OR_FOLLOWER"),
        lambda found: found.refuse("LEADER_NOT_AVAILABLE"),
    ],
    ids=["cut", "cut after", "replicas", "not the leader", "no leader"],
)
async def test_temporary_fault_causes_no_duplicates(broker, fault) -> None:
    async with producing_on(broker) as producer:
        await producer.send("orders", b"first")
        fault(broker.faults.on("Produce", times=3))

        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                for number in range(100):
                    tasks.start_soon(producer.send, "orders", b"%d" % number)

    expected = Counter([b"first", *(b"%d" % number for number in range(100))])
    assert expected == values(broker)


async def test_record_for_a_deleted_topic_was_not_written(broker) -> None:
    async with producing_on(broker, delivery_timeout=2.0) as producer:
        await producer.send("orders", b"a")
        broker.delete_topic("orders")

        with pytest.raises(BrokerError, match=r"was not written: UNKNOWN_TOPIC"):
            await producer.send("orders", b"b")


async def test_records_go_to_a_topic_created_again_with_fewer_partitions(
    broker,
) -> None:
    async with producing_on(broker, delivery_timeout=5.0) as producer:
        await producer.send("orders", b"a", partition=2)
        broker.delete_topic("orders")
        broker.create_topic("orders", partitions=1)
        with pytest.raises(BrokerError, match=r"has no partition 2: it has 1"):
            await producer.send("orders", b"b", partition=2)
        broker.delete_topic("orders")
        broker.create_topic("orders", partitions=3)
        await producer.send("orders", b"c", partition=2)
        broker.delete_topic("orders")
        broker.create_topic("orders", partitions=1)
        for number in range(10):
            await producer.send("orders", b"%d" % number, key=b"%d" % number)

    assert Counter(b"%d" % number for number in range(10)) == values(broker)


@pytest.mark.parametrize("api", ["Metadata", "InitProducerId"])
async def test_failed_look_ups_are_repeated(broker, api) -> None:
    broker.faults.on(api, times=2).cut()

    with anyio.fail_after(20):
        async with producing_on(broker) as producer:
            await producer.send("orders", b"a")

    assert {b"a": 1} == values(broker)


async def test_record_that_is_not_confirmed_in_time_fails(broker) -> None:
    broker.faults.on("Produce", times=None).refuse("NOT_ENOUGH_REPLICAS")

    async with producing_on(broker, delivery_timeout=0.5) as producer:
        with pytest.raises(
            RequestTimedOutError, match="might have been written"
        ) as caught:
            await producer.send("orders", b"a")

    assert "NOT_ENOUGH_REPLICAS" in str(caught.value)


async def test_topic_that_does_not_exist_fails_after_the_timeout(broker) -> None:
    async with producing_on(broker, delivery_timeout=0.5) as producer:
        with pytest.raises(BrokerError, match="'missing' does not exist") as caught:
            await producer.send("missing", b"a")

    assert "UNKNOWN_TOPIC_OR_PARTITION" == caught.value.name


async def test_partition_that_does_not_exist_is_named(broker) -> None:
    async with producing_on(broker) as producer:
        with pytest.raises(BrokerError, match="has no partition 9: it has 3"):
            await producer.send("orders", b"a", partition=9)


async def test_cancelled_send_does_not_affect_later_sends(broker) -> None:
    stalled = broker.faults.on("Produce", times=1).stall()
    async with producing_on(broker) as producer:
        with anyio.move_on_after(0.2):
            await producer.send("orders", b"cancelled")
        stalled.undo()
        position = await producer.send("orders", b"kept", partition=1)

    assert ("orders", 1, 0) == position
    assert 1 == values(broker)[b"kept"]


async def test_closed_producer_raises_in_every_waiting_send(broker) -> None:
    broker.faults.on("Produce", times=None).stall()
    errors: list[Exception] = []
    async with anyio.create_task_group() as senders:
        async with producing_on(broker) as producer:

            async def send() -> None:
                try:
                    await producer.send("orders", b"a")
                except ClosedError as error:
                    errors.append(error)

            for _ in range(3):
                senders.start_soon(send)
            await anyio.sleep(0.3)
    with pytest.raises(ClosedError):
        await producer.send("orders", b"late")

    assert 3 == len(errors)


async def test_send_waits_while_the_buffer_is_full(broker) -> None:
    stalled = broker.faults.on("Produce", times=None).stall()
    async with producing_on(broker, max_buffered=1000) as producer:
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(producer.send, "orders", b"x" * 100)
            await anyio.sleep(0.2)
            buffered = producer.buffered
            stalled.undo()
            tasks.cancel_scope.cancel()

    assert 1000 <= buffered < 1000 + 200
