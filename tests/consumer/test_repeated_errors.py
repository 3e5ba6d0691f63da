"""Errors that brokers repeat: the application receives each one once."""

import anyio
import pytest

from sharecons import ShareConsumer
from sharecons.errors import AuthorizationError, BrokerError
from sharecons.protocol.codes import Code
from sharecons.testing import EmbeddedBroker
from tests.waiting import until

pytestmark = pytest.mark.anyio


PARTITIONS = 5
QUIET = 2.0
"""Seconds in which no further error is raised."""


@pytest.fixture(params=[1, 3], ids=["one broker", "three brokers"])
async def broker(request):
    async with EmbeddedBroker(brokers=request.param, listen=False) as broker:
        for topic in ("orders", "refunds"):
            broker.create_topic(topic, partitions=PARTITIONS)
        yield broker


class FailingLeaders:
    """Leaders that return an error for partitions of `orders`.

    Attributes:
        returned: the number of errors that they have returned.
    """

    def __init__(self, broker):
        self.returned = 0
        self._broker = broker
        self._fault = None

    def fail(self, code, partition=None):
        """Return an error for one partition, or for all."""
        fetches = self._broker.faults.on("ShareFetch", times=None)
        self._fault = fetches.refuse_partitions(
            code, topic="orders", partition=partition, leader=self._count
        )

    def recover(self):
        self._fault.undo()

    def _count(self):
        """Count an error; its response has no leader."""
        self.returned += 1
        return -1, -1


@pytest.fixture
def leaders(broker):
    return FailingLeaders(broker)


class Reader:
    def __init__(self, broker, *topics):
        self.broker = broker
        self.values = []
        self.errors = []
        self.consumer = ShareConsumer(
            *topics,
            group_id="billing",
            bootstrap_servers=broker.bootstrap_servers,
            network=broker.network,
            auto_offset_reset="earliest",
        )

    async def read(self):
        while True:
            try:
                async for record in self.consumer:
                    self.values.append(record.value)
            except BrokerError as error:
                self.errors.append(error)

    async def gets_all(self, topic, word):
        """Produce to each partition, and return when all is consumed."""
        values = [b"%b-%d" % (word, index) for index in range(PARTITIONS)]
        for index, value in enumerate(values):
            self.broker.produce(topic, [value], partition=index)
        await until(lambda: set(values) <= set(self.values), within=10)

    async def fails(self, count):
        """Wait until `count` errors were raised."""
        await until(lambda: len(self.errors) >= count, within=10)


@pytest.mark.parametrize(
    "code",
    [
        Code.TOPIC_AUTHORIZATION_FAILED,
        Code.GROUP_AUTHORIZATION_FAILED,
        Code.CORRUPT_MESSAGE,
        Code.INVALID_REQUEST,
    ],
)
async def test_error_of_all_partitions_is_raised_once(broker, leaders, code):
    leaders.fail(code)
    reader = Reader(broker, "orders", "refunds")
    async with reader.consumer, anyio.create_task_group() as tasks:
        tasks.start_soon(reader.read)
        await reader.fails(1)
        before = leaders.returned
        for number in range(3):
            await reader.gets_all("refunds", b"refund-%d" % number)
            await anyio.sleep(QUIET / 3)

        assert [code] == [error.code for error in reader.errors]
        # After the first requests, each partition is fetched once a second.
        assert leaders.returned - before <= PARTITIONS * (QUIET + 6)

        leaders.recover()
        await reader.gets_all("orders", b"order")
        assert 1 == len(reader.errors)
        leaders.fail(code)
        await reader.fails(2)
        await anyio.sleep(QUIET / 3)
        assert [code, code] == [error.code for error in reader.errors]
        tasks.cancel_scope.cancel()


async def test_corrupt_partition_does_not_hold_up_its_topic(broker, leaders):
    leaders.fail(Code.CORRUPT_MESSAGE, partition=3)
    reader = Reader(broker, "orders")
    broker.produce("orders", [b"damaged"], partition=3)
    async with reader.consumer, anyio.create_task_group() as tasks:
        tasks.start_soon(reader.read)
        await reader.fails(1)
        for number in range(30):
            broker.produce("orders", [b"%d" % number], partition=number % 3)
            await anyio.sleep(QUIET / 30)

        assert ["fetching orders-3: CORRUPT_MESSAGE"] == [str(e) for e in reader.errors]
        assert {b"%d" % number for number in range(30)} <= set(reader.values)
        leaders.recover()
        await reader.gets_all("orders", b"order")
        assert b"damaged" in reader.values
        tasks.cancel_scope.cancel()


async def test_error_is_raised_again_after_the_subscription_changed(broker, leaders):
    leaders.fail(Code.TOPIC_AUTHORIZATION_FAILED)
    reader = Reader(broker, "orders")
    async with reader.consumer, anyio.create_task_group() as tasks:
        tasks.start_soon(reader.read)
        await reader.fails(1)
        reader.consumer.subscribe("refunds")
        await reader.gets_all("refunds", b"refund")
        reader.consumer.subscribe("orders")
        await reader.fails(2)
        reader.consumer.subscribe("orders", "refunds")
        await reader.fails(3)
        await anyio.sleep(QUIET / 3)
        assert 3 == len(reader.errors)
        tasks.cancel_scope.cancel()


async def test_moved_partitions_do_not_repeat_their_error(broker, leaders):
    leaders.fail(Code.TOPIC_AUTHORIZATION_FAILED)
    reader = Reader(broker, "orders", "refunds")
    nodes = sorted(broker.brokers)
    async with reader.consumer, anyio.create_task_group() as tasks:
        tasks.start_soon(reader.read)
        await reader.fails(1)
        for turn in range(PARTITIONS):
            to = nodes[turn % len(nodes)]
            broker.move_leader("orders", turn, to)
            broker.move_leader("refunds", turn, to)
            await reader.gets_all("refunds", b"refund-%d" % turn)
        await anyio.sleep(QUIET / 3)
        assert 1 == len(reader.errors)

        leaders.recover()
        await reader.gets_all("orders", b"order")
        leaders.fail(Code.CORRUPT_MESSAGE)
        await reader.fails(2)
        tasks.cancel_scope.cancel()


async def test_rejected_heartbeats_raise_one_error(broker):
    """Metadata names no topic, so the error is the group's."""
    fault = broker.faults.on("ShareGroupHeartbeat", times=None)
    reader = Reader(broker, "orders")
    async with reader.consumer, anyio.create_task_group() as tasks:
        with fault.refuse("TOPIC_AUTHORIZATION_FAILED") as rejected:
            tasks.start_soon(reader.read)
            await reader.fails(1)
            await anyio.sleep(QUIET)
            assert [AuthorizationError] == [type(error) for error in reader.errors]
            assert "READ on the group and on its topics" in str(reader.errors[0])
            assert 3 <= rejected.hits <= 20
        await reader.gets_all("orders", b"order")
        assert 1 == len(reader.errors)
        tasks.cancel_scope.cancel()
