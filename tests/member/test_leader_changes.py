"""Consumers whose partitions get another leader."""

import itertools

import anyio
import pytest

from tests.net.embedded import (
    STORM,
    busiest_second,
    consuming,
    next_record,
    requests,
    running,
)
from tests.scenarios.interrupted_network import InterruptedNetwork
from tests.waiting import until

pytestmark = pytest.mark.anyio

FETCH = "ShareFetch"


def hide_broker(broker, node):
    """Leave a broker out of all metadata."""

    def without(response, context):
        known = [each for each in response["brokers"] if each["node_id"] != node]
        return {**response, "brokers": known}

    broker.faults.on("Metadata", times=None).change(without)


def change_leaders(response, change, endpoints):
    """Change the leader in each partition of a response, and the endpoints."""
    responses = [
        {
            **topic,
            "partitions": [
                {**each, "current_leader": change(each["current_leader"])}
                for each in topic["partitions"]
            ],
        }
        for topic in response["responses"]
    ]
    return {**response, "responses": responses, "node_endpoints": endpoints}


@pytest.mark.parametrize("node", [2, 0])
async def test_leader_hint_is_followed_without_a_metadata_request(node):
    """The metadata has no such broker, and 0 is a valid node id."""

    def rename(leader):
        return {**leader, "leader_id": node} if leader else leader

    def rename_broker_2(response, context):
        endpoints = [{**each, "node_id": node} for each in response["node_endpoints"]]
        return change_leaders(response, rename, endpoints)

    async with running(1, brokers=2) as broker:
        hide_broker(broker, 2)
        broker.faults.on(FETCH, node=1, times=None).change(rename_broker_2)
        async with consuming(broker) as consumer:
            assert 0 == (await next_record(consumer)).offset
            broker.move_leader("orders", 0, to=2)
            broker.produce("orders", [b"b"])
            moved_at = anyio.current_time()
            record = await next_record(consumer)

            assert b"b" == record.value or 0 == record.offset
            assert anyio.current_time() - moved_at < 2
            assert requests(broker, FETCH, moved_at, node=2)
            assert [] == requests(broker, "Metadata", moved_at)
            # The consumer stops fetching from the old leader.
            assert len(requests(broker, FETCH, moved_at, node=1)) <= 2


async def test_leader_change_without_a_hint_requests_metadata():
    def without_hints(response, context):
        return change_leaders(response, lambda leader: {}, endpoints=[])

    async with running(1, brokers=2) as broker:
        broker.faults.on(FETCH, times=None).change(without_hints)
        async with consuming(broker) as consumer:
            await next_record(consumer)
            broker.move_leader("orders", 0, to=2)
            broker.produce("orders", [b"b"])
            moved_at = anyio.current_time()
            await next_record(consumer)

            assert anyio.current_time() - moved_at < 3
            assert 1 <= len(requests(broker, "Metadata", moved_at)) <= 3


async def test_records_of_a_replaced_leader_are_not_delivered():
    """A broker that was paused responds as if it still were the leader."""
    results = []
    async with running(1, brokers=2) as broker:
        broker.create_topic("refunds", partitions=1)
        network = InterruptedNetwork(broker.network)
        settings = {"network": network, "on_acknowledged": results.extend}
        async with consuming(broker, **settings) as consumer:

            async def replace_leader():
                network.on_records = None
                broker.move_leader("orders", 0, to=2)
                consumer.subscribe("orders", "refunds")  # requests metadata
                await until(lambda: requests(broker, FETCH, node=2))

            network.on_records = replace_leader
            (record,) = await consumer.poll(timeout=10.0)
            assert [] == await consumer.poll(timeout=2.0)

    assert (b"0", 1) == (record.value, record.delivery_count)
    assert [None] == [result.error for result in results]


async def test_outdated_leader_hint_is_ignored():
    async with running(1, brokers=2) as broker:
        for node in (2, 1, 2, 1):
            broker.move_leader("orders", 0, to=node)  # each move adds 1 to the epoch
        broker.faults.on(FETCH, times=2).refuse_partitions(
            "NOT_LEADER_OR_FOLLOWER", leader=lambda: (2, 3)
        )
        async with consuming(broker) as consumer:
            assert 0 == (await next_record(consumer)).offset

        assert {1} == {request.node_id for request in requests(broker, FETCH)}


async def test_brokers_that_return_each_other_as_leader_cause_no_request_storm():
    epochs = itertools.count(1)
    async with running(1, brokers=2) as broker:
        for node, other in ((1, 2), (2, 1)):
            broker.faults.on(FETCH, node=node, times=None).refuse_partitions(
                "NOT_LEADER_OR_FOLLOWER",
                leader=lambda other=other: (other, next(epochs)),
            )
        async with consuming(broker) as consumer:
            assert await next_record(consumer) is None

        assert {1, 2} == {request.node_id for request in requests(broker, FETCH)}
        assert busiest_second(broker) <= STORM


async def test_stopped_leader_is_replaced_by_the_leader_in_metadata():
    async with running(1, brokers=2) as broker:
        async with consuming(broker) as consumer:
            await next_record(consumer)
            broker.stop_broker(1)
            broker.produce("orders", [b"b"])
            stopped_at = anyio.current_time()
            await next_record(consumer)

            assert anyio.current_time() - stopped_at < 5
            assert 2 == requests(broker, FETCH)[-1].node_id
