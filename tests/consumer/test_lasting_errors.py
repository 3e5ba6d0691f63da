"""The state of a consumer whose requests are rejected again and again."""

import anyio
import pytest

from sharecons.testing import EmbeddedBroker
from tests.net.embedded import consuming, running
from tests.waiting import until

pytestmark = pytest.mark.anyio

PARTITIONS = 2


async def read(consumer):
    async for _ in consumer:
        pass


class Reading:
    """A consumer that reads in a task while the block runs."""

    def __init__(self, broker):
        self._consuming = consuming(broker)
        self._tasks = anyio.create_task_group()

    async def __aenter__(self):
        consumer = await self._consuming.__aenter__()
        await self._tasks.__aenter__()
        self._tasks.start_soon(read, consumer)
        await until(lambda: consumer.connected and consumer.assignment)
        return consumer

    async def __aexit__(self, *error):
        self._tasks.cancel_scope.cancel()
        await self._tasks.__aexit__(*error)
        await self._consuming.__aexit__(*error)


def count(consumer):
    return consumer.metrics()["sharecons-problems"]


async def test_rejected_fetches_are_a_problem_until_one_is_accepted():
    async with running(1) as broker, Reading(broker) as consumer:
        with broker.faults.on("ShareFetch", times=None).refuse("UNKNOWN_SERVER_ERROR"):
            await anyio.sleep(2)
            assert consumer.connected
            assert (0, ()) == (count(consumer), consumer.problems)
            await anyio.sleep(5)
            assert not consumer.connected
            assert 1 == count(consumer)
            assert consumer.problems == (
                "fetches rejected, retrying (node_id 1): UNKNOWN_SERVER_ERROR; "
                "if this lasts, read the log of that broker",
            )
        await until(lambda: consumer.connected)
        assert (0, ()) == (count(consumer), consumer.problems)


async def test_problem_of_a_leader_ends_when_its_partitions_move():
    async with running(1, brokers=2) as broker, Reading(broker) as consumer:
        fault = broker.faults.on("ShareFetch", node=1, times=None)
        with fault.refuse("SHARE_SESSION_LIMIT_REACHED"):
            await until(lambda: not consumer.connected)
            broker.move_leader("orders", 0, to=2)
            await until(lambda: consumer.connected)


@pytest.mark.parametrize("failing", [1, PARTITIONS])
async def test_connected_is_false_while_all_partitions_fail(failing):
    async with running(1, partitions=PARTITIONS) as broker, Reading(broker) as consumer:
        for partition in range(failing):
            fault = broker.faults.on("ShareFetch", times=None)
            fault.refuse_partitions("KAFKA_STORAGE_ERROR", partition=partition)
        if failing == PARTITIONS:
            broker.faults.clear()
            fault = broker.faults.on("ShareFetch", times=None)
            fault.refuse_partitions("KAFKA_STORAGE_ERROR")
        await until(lambda: any("fetched" in each for each in consumer.problems))
        # The same requests had acknowledgements: these can be a problem as well.
        (problem,) = (each for each in consumer.problems if "fetched" in each)
        assert "orders-0" in problem
        assert ("orders-1" in problem) == (failing == PARTITIONS)
        assert consumer.connected == (failing < PARTITIONS)
        broker.faults.clear()
        await until(lambda: not consumer.problems)
        assert consumer.connected


async def test_rejected_heartbeats_are_a_problem():
    async with running(1) as broker, Reading(broker) as consumer:
        fault = broker.faults.on("ShareGroupHeartbeat", times=None)
        with fault.refuse("COORDINATOR_LOAD_IN_PROGRESS"):
            await until(lambda: consumer.problems)
            assert "COORDINATOR_LOAD_IN_PROGRESS" in consumer.problems[0]
            assert not consumer.connected
        await until(lambda: not consumer.problems)


async def test_partitions_without_a_leader_are_a_problem():
    async with running(brokers=2, topic=None) as broker:
        broker.create_topic("orders", partitions=2, replication=1)  # one on each broker
        async with Reading(broker) as consumer:
            broker.stop_broker(2)
            await until(lambda: any("no leader" in each for each in consumer.problems))
            (problem,) = (each for each in consumer.problems if "no leader" in each)
            assert problem == (
                "partitions have no leader, waiting (topic orders, partitions 1); "
                "check the brokers that have their replicas"
            )
            broker.start_broker(2)
            await until(
                lambda: not any("no leader" in each for each in consumer.problems)
            )


@pytest.mark.parametrize("factor", [3, 2])
async def test_member_without_partitions_is_a_problem_until_it_has_some(factor):
    settings = {
        "share.coordinator.state.topic.replication.factor": factor,
        "group.share.heartbeat.interval.ms": 1000,
    }
    async with EmbeddedBroker(brokers=2, settings=settings, listen=False) as broker:
        broker.create_topic("orders")
        async with consuming(broker) as consumer:
            await anyio.sleep(9)
            assert consumer.connected
            assert not consumer.problems
            await anyio.sleep(3)
            if factor > len(broker.brokers):
                (problem,) = consumer.problems
                assert problem.startswith(
                    "no partitions assigned, waiting (topics orders): the brokers"
                )
                consumer.unsubscribe()
                await anyio.sleep(3)
            assert not consumer.problems


async def test_member_whose_brokers_are_down_does_not_wait_for_an_assignment():
    settings = {"share.coordinator.state.topic.replication.factor": 2}
    async with EmbeddedBroker(settings=settings, listen=False) as broker:
        broker.create_topic("orders")
        async with consuming(broker) as consumer:
            await until(lambda: consumer.connected)
            broker.stop_broker(1)
            await anyio.sleep(30)
            assert consumer.problems
            assert not any("no partitions" in each for each in consumer.problems)


async def test_member_of_a_missing_topic_waits_for_the_topic_only():
    async with running(topic=None) as broker, consuming(broker) as consumer:
        await anyio.sleep(20)
        assert ["waiting for topic"] == [p.split(" (")[0] for p in consumer.problems]


async def test_closed_consumer_has_no_problems():
    async with running(1) as broker:
        async with Reading(broker) as consumer:
            broker.faults.on("ShareFetch", times=None).refuse("UNKNOWN_SERVER_ERROR")
            await until(lambda: consumer.problems)
        assert (0, ()) == (count(consumer), consumer.problems)
