"""A pool that closes while requests are in progress, or has a frozen broker."""

from functools import partial

import anyio
import pytest

from sharecons.errors import ConnectionFailedError, RequestTimedOutError
from sharecons.net.broker_pool import BrokerPool, Deadline
from sharecons.net.cluster import Cluster
from sharecons.protocol.admin.requests import TopicMetadataRequest
from sharecons.protocol.partitions import Endpoint
from tests.net.embedded import SlowNetwork, running

pytestmark = pytest.mark.anyio

REQUEST = TopicMetadataRequest(names=())


class Pool:
    """A pool that knows the brokers of an embedded cluster."""

    def __init__(self, broker):
        self.network = SlowNetwork(broker)
        addresses = [each.split(":") for each in broker.brokers.values()]
        cluster = Cluster(
            [Endpoint(host, int(port)) for host, port in addresses],
            self.network,
            client_id="me",
            software_version="1",
            choose=lambda count: 0,
        )
        self.brokers = BrokerPool(cluster)

    async def learn(self):
        await self.brokers.request_topics((), Deadline(30))


async def close_during(pool, request, fault):
    """Close the pool while a request is stalled; return the seconds until it ends.

    Undo the fault after the close.
    """
    began = anyio.current_time()

    async def fail():
        with pytest.raises(ConnectionFailedError, match="closed"):
            await request()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(fail)
        await anyio.wait_all_tasks_blocked()
        await pool.brokers.aclose()
        fault.undo()
    return anyio.current_time() - began


async def test_request_to_any_broker_ends_when_the_pool_closes():
    async with running() as broker:
        pool = Pool(broker)
        await pool.learn()
        fault = broker.faults.on("Metadata", times=None).stall()

        request = partial(pool.brokers.send_to_any, REQUEST, Deadline(30))
        assert await close_during(pool, request, fault) < 1
        assert pool.network.open == 0


async def test_request_to_a_broker_opens_no_connection_once_the_pool_is_closed():
    async with running() as broker:
        pool = Pool(broker)
        await pool.learn()
        await pool.brokers.aclose()

        with pytest.raises(ConnectionFailedError, match="closed"):
            await pool.brokers.send(1, REQUEST, Deadline(30))
        assert pool.network.open == 0


async def test_connection_that_opens_while_the_pool_closes_is_closed():
    async with running() as broker:
        pool = Pool(broker)
        await pool.learn()
        fault = broker.faults.on("ApiVersions", times=None).stall()

        request = partial(pool.brokers.send, 1, REQUEST, Deadline(30))
        await close_during(pool, request, fault)
        assert pool.network.open == 0


async def test_broker_that_has_not_responded_in_time_serves_no_look_ups():
    """The connection to any broker is to the first one, and is open."""
    async with running(brokers=2) as broker:
        pool = Pool(broker)
        await pool.learn()
        broker.faults.hang(1)
        with pytest.raises(RequestTimedOutError):
            await pool.brokers.send(1, REQUEST, Deadline(30))

        began = anyio.current_time()
        await pool.learn()
        assert anyio.current_time() - began < 2
