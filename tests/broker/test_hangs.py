"""Brokers that hang: connections stay open, nothing is read or sent."""

import time
from datetime import timedelta

import anyio
import pytest

from sharecons.testing import EmbeddedBroker
from tests.broker.async_client import Client
from tests.broker.blocking_client import BlockingClient
from tests.broker.messages import METADATA, make_request

pytestmark = pytest.mark.anyio
VIRTUAL_CLOCK = True

HOUR = 3600.0
DELETE = make_request("delete_topics", 5, topic_names=("orders",), timeout=timedelta(0))


@pytest.fixture
async def kafka():
    async with EmbeddedBroker(brokers=2, listen=False, topics={"orders": 1}) as broker:
        yield broker


def has_topic(kafka):
    return kafka.cluster.topics.by_name("orders") is not None


async def responds(client, request=METADATA):
    with anyio.move_on_after(HOUR):
        await client.request(request)
        return True
    return False


async def test_hanging_broker_handles_requests_after_it_continues(kafka):
    client = Client(kafka.connect(1))
    async with anyio.create_task_group() as tasks:
        with kafka.faults.hang(1):
            tasks.start_soon(client.request, DELETE)
            await anyio.sleep(HOUR)
            assert has_topic(kafka)
    assert not has_topic(kafka)


async def test_other_brokers_respond_while_one_hangs(kafka):
    hanging, other = Client(kafka.connect(1)), Client(kafka.connect(2))
    with kafka.faults.hang(1):
        assert await responds(other)
        assert not await responds(hanging)


async def test_all_brokers_hang_without_a_node(kafka):
    with kafka.faults.hang():
        for node in (1, 2):
            assert not await responds(Client(kafka.connect(node)))
    assert await responds(Client(kafka.connect(1)))


async def test_response_under_way_is_held(kafka):
    kafka.faults.on("Metadata").delay(10)
    client = Client(kafka.connect(1))
    done = []

    async def request():
        await client.request(METADATA)
        done.append(anyio.current_time())

    began = anyio.current_time()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(request)
        await anyio.sleep(5)
        with kafka.faults.hang(1):
            await anyio.sleep(60)
            assert not done
    assert [began + 65] == done


async def test_closed_connection_is_noticed_after_the_hang(kafka):
    client = Client(kafka.connect(1))
    await client.request(METADATA)
    (connection,) = kafka._nodes[1]._connections
    with kafka.faults.hang(1):
        await client.stream.aclose()
        await anyio.sleep(HOUR)
        assert not connection.is_closed
    await anyio.sleep(1)
    assert connection.is_closed


async def test_stopped_broker_hangs_no_more(kafka):
    with kafka.faults.hang(1):
        client = Client(kafka.connect(1))
        await anyio.sleep(1)
        kafka.stop_broker(1)
        assert await client.ended()
        kafka.start_broker(1)
        assert await responds(Client(kafka.connect(1)))


async def test_clear_ends_the_hang(kafka):
    kafka.faults.hang(1)
    kafka.faults.clear()
    assert await responds(Client(kafka.connect(1)))


async def test_hang_of_an_unknown_broker_raises(kafka):
    with pytest.raises(LookupError, match="broker 3 does not exist"):
        kafka.faults.hang(3)


def test_kernel_accepts_connections_while_the_broker_hangs():
    with EmbeddedBroker() as kafka:
        with kafka.faults.hang():
            clients = [BlockingClient(kafka.bootstrap_servers) for _ in range(3)]
            for client in clients:
                client.send("metadata", 12, topics=None)
            time.sleep(0.1)  # real time: no response comes
            assert not any(client.has_response() for client in clients)
        for client in clients:
            assert client.receive().brokers
            client.close()
