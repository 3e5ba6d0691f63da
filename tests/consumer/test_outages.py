"""Reports of outages: log lines, `connected` and the last heartbeat."""

import logging
import re

import anyio
import pytest

from sharecons.testing import EmbeddedBroker
from tests.consumer.consuming import consuming
from tests.waiting import until

pytestmark = pytest.mark.anyio


@pytest.fixture
async def cluster():
    async with EmbeddedBroker(listen=False) as cluster:
        cluster.create_topic("orders", partitions=4)
        cluster.set_group_config("billing", {"share.heartbeat.interval.ms": 1000})
        yield cluster


@pytest.fixture
def logged(caplog):
    """Return the messages of a level that contain a text."""
    caplog.set_level(logging.DEBUG, "sharecons")

    def messages(level, text):
        named = [each for each in caplog.records if each.levelname == level]
        return [each.getMessage() for each in named if text in each.getMessage()]

    return messages


async def test_unreachable_broker_is_logged_once_and_when_it_is_back(cluster, logged):
    # The coordinator and the only leader: several tasks reconnect.
    ((node, address),) = cluster.brokers.items()
    async with consuming(cluster) as consumer:
        await until(lambda: consumer.assignment)
        cluster.stop_broker(node)
        await until(lambda: logged("WARNING", "unreachable, retrying"))
        await anyio.sleep(3)  # several attempts

        warnings = logged("WARNING", "unreachable, retrying")
        assert len(warnings) == 1
        assert f"broker={address}" in warnings[0]
        assert "reason=" in warnings[0]
        assert not logged("INFO", "reachable again")

        cluster.start_broker(node)
        await until(lambda: logged("INFO", "reachable again"))
        (message,) = logged("INFO", "reachable again")
        assert f"broker={address}" in message
        assert re.search(r"seconds=\d", message)

        cluster.stop_broker(node)
        await until(lambda: len(logged("WARNING", "unreachable, retrying")) == 2)


async def test_connected_follows_the_heartbeats(cluster):
    consumer = consuming(cluster)
    assert not consumer.connected
    assert consumer.seconds_since_heartbeat is None
    async with consumer:
        await until(lambda: consumer.connected)
        assert 0 <= consumer.seconds_since_heartbeat < 5
        for node in cluster.brokers:
            cluster.stop_broker(node)
        await until(lambda: not consumer.connected)
        await until(lambda: consumer.seconds_since_heartbeat > 1.5)
        for node in cluster.brokers:
            cluster.start_broker(node)
        await until(lambda: consumer.connected)
        assert consumer.seconds_since_heartbeat < 1.5
    assert not consumer.connected


async def test_connected_is_false_when_heartbeats_have_no_response(cluster):
    async with consuming(cluster) as consumer:
        await until(lambda: consumer.connected)
        cluster.faults.on("ShareGroupHeartbeat", times=None).stall()
        await until(lambda: not consumer.connected)
        await consumer.aclose(timeout=0.1)


async def test_connected_is_false_without_topics(cluster):
    async with consuming(cluster) as consumer:
        await until(lambda: consumer.connected)
        consumer.unsubscribe()
        assert not consumer.connected
        consumer.subscribe("orders")
        await until(lambda: consumer.connected)


async def test_closing_logs_no_assignment(cluster, logged):
    async with consuming(cluster) as consumer:
        await until(lambda: consumer.assignment)
    assert logged("INFO", "assigned")
    assert not logged("INFO", "partitions=0")
    assert not logged("WARNING", "")
