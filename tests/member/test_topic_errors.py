"""Consumers whose topic is missing or forbidden, and the settings of their group."""

import logging

import anyio
import pytest

from sharecons.errors import AuthorizationError, BrokerError
from tests.net.embedded import (
    STORM,
    SlowNetwork,
    busiest_second,
    consuming,
    next_record,
    requests,
    running,
)
from tests.waiting import until

pytestmark = pytest.mark.anyio

ALTER_CONFIGS = "IncrementalAlterConfigs"
OFFSET_RESET = "share.auto.offset.reset"


async def test_forbidden_topic_in_metadata_is_raised_once():
    """The permission can be granted later."""
    async with running(1) as broker:
        metadata = broker.faults.on("Metadata", times=None)
        fault = metadata.refuse("TOPIC_AUTHORIZATION_FAILED", each=True)
        async with consuming(broker) as consumer:
            with pytest.raises(AuthorizationError, match="'orders'.*READ"):
                await anext(aiter(consumer))
            assert await next_record(consumer, within=20) is None
            fault.undo()
            assert 0 == (await next_record(consumer)).offset
        assert busiest_second(broker) <= STORM


async def test_topic_that_is_forbidden_later_is_a_problem_until_it_is_allowed(caplog):
    caplog.set_level(logging.INFO, logger="sharecons")
    async with running(1) as broker, consuming(broker) as consumer:
        assert 0 == (await next_record(consumer)).offset
        fetches = broker.faults.on("ShareFetch", times=None)
        fault = fetches.refuse_partitions("TOPIC_AUTHORIZATION_FAILED")
        with pytest.raises(AuthorizationError, match="'orders'.*READ"):
            await anext(aiter(consumer))
        assert await next_record(consumer, within=20) is None
        assert not consumer.connected
        (problem,) = consumer.problems
        assert "partitions cannot be fetched, retrying (partitions orders-0" in problem
        assert "the principal needs READ on the topic" in problem

        fault.undo()
        assert 0 == (await next_record(consumer)).offset
        assert consumer.connected
        await until(lambda: not consumer.problems)
    lines = [r.getMessage() for r in caplog.records if "be fetched" in r.getMessage()]
    assert 1 == len(lines)
    assert "partitions are fetched again" in caplog.text


async def test_invalid_topic_name_is_raised():
    async with running(1) as broker:
        metadata = broker.faults.on("Metadata", times=None)
        metadata.refuse("INVALID_TOPIC_EXCEPTION", each=True)
        async with consuming(broker) as consumer:
            with pytest.raises(BrokerError, match="no name for a topic"):
                await anext(aiter(consumer))


async def test_missing_topic_is_awaited_with_one_warning(caplog):
    caplog.set_level(logging.WARNING, logger="sharecons")
    async with running(topic=None) as broker:
        broker.set_group_config("billing", {"share.heartbeat.interval.ms": 1000})
        async with consuming(broker) as consumer:
            assert await next_record(consumer, within=30) is None
            lookups = len(requests(broker, "Metadata"))
            broker.create_topic("orders")
            broker.produce("orders", [b"0"])
            appeared_at = anyio.current_time()
            assert 0 == (await next_record(consumer)).offset

            assert anyio.current_time() - appeared_at < 3
    warnings = [r for r in caplog.records if "waiting for topic" in r.getMessage()]
    assert 1 == len(warnings)
    assert "topic=orders" in warnings[0].getMessage()
    assert "advice='create the topic, or correct its name'" in warnings[0].getMessage()
    assert lookups < 30 * 3


# Settings of the group.


def offset_reset(broker):
    return broker.cluster.configs.group_value("billing", OFFSET_RESET)


async def test_offset_reset_is_set_before_joining():
    async with running(1) as broker:
        broker.set_group_config("billing", {OFFSET_RESET: "latest"})
        async with consuming(broker, auto_offset_reset="earliest"):
            pass

        assert "earliest" == offset_reset(broker)
        joins = requests(broker, "ShareGroupHeartbeat")[:1]
        changes = requests(broker, ALTER_CONFIGS)
        assert changes
        assert all(change.at < join.at for join in joins for change in changes)


async def test_offset_reset_that_is_set_already_is_not_set_again():
    async with running(1) as broker:
        broker.set_group_config("billing", {OFFSET_RESET: "earliest"})
        async with consuming(broker, auto_offset_reset="earliest"):
            pass

        assert [] == requests(broker, ALTER_CONFIGS)


@pytest.mark.parametrize("api", ["DescribeConfigs", ALTER_CONFIGS])
async def test_forbidden_offset_reset_raises_immediately(api):
    async with running(1) as broker:
        broker.set_group_config("billing", {OFFSET_RESET: "latest"})
        broker.faults.on(api, times=None).refuse("GROUP_AUTHORIZATION_FAILED")
        network = SlowNetwork(broker)

        with pytest.raises(AuthorizationError, match="ALTER_CONFIGS"):
            async with consuming(broker, network=network, auto_offset_reset="earliest"):
                pass

        assert 0 == network.open


async def test_offset_reset_that_is_not_applied_raises():
    async with running(1) as broker:
        broker.set_group_config("billing", {OFFSET_RESET: "latest"})
        # A response without an error, but the request is not handled.
        broker.faults.on(ALTER_CONFIGS, times=None).refuse("NONE")
        network = SlowNetwork(broker)
        started = anyio.current_time()

        with pytest.raises(BrokerError, match="does not return it after 5 s"):
            async with consuming(broker, network=network, auto_offset_reset="earliest"):
                pass

        assert anyio.current_time() - started < 6
        assert 0 == network.open
        assert busiest_second(broker) <= 100


@pytest.mark.parametrize(
    "code",
    [
        "CLUSTER_AUTHORIZATION_FAILED",
        "GROUP_AUTHORIZATION_FAILED",
        "INVALID_REQUEST",
        "INVALID_CONFIG",
    ],
)
async def test_forbidden_config_read_is_ignored(code):
    async with running(1) as broker:
        fault = broker.faults.on("DescribeConfigs", times=None).refuse(code)
        async with consuming(broker) as consumer:
            assert 0 == (await next_record(consumer)).offset
        assert fault.hits
