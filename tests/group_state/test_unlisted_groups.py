"""Groups that the list leaves out, as of brokers that stop, and deleted ones."""

import pytest

from sharecons._record import TopicPartition
from sharecons.group_state.collector import GroupCollector

pytestmark = pytest.mark.anyio


@pytest.fixture
def kafka(embedded_kafka):
    yield embedded_kafka
    embedded_kafka.cluster.broker.faults.clear()


@pytest.fixture
async def collector(kafka, admin, group):
    """A collector that has read the group, and then a list without it."""
    topic = kafka.admin.create_topic(1)
    start = {TopicPartition(topic, 0): 0}
    (await admin.alter_share_group_offsets(group, start)).check()
    collector = GroupCollector(admin, [group])
    await collector.collect()
    assert [group] == list(collector.latest)
    fault = kafka.cluster.broker.faults.on("ListGroups", times=None)
    fault.change(lambda response, context: {**response, "groups": []})
    return collector


async def test_group_that_its_coordinator_still_has_is_read(collector, group):
    collected = await collector.collect()

    assert ([group], ()) == (list(collected.groups), collected.error_messages)


async def test_group_that_cannot_be_described_keeps_its_values(kafka, collector, group):
    fault = kafka.cluster.broker.faults.on("ShareGroupDescribe", times=None)
    with fault.refuse("GROUP_AUTHORIZATION_FAILED", each=True):
        collected = await collector.collect()

    assert "GROUP_AUTHORIZATION_FAILED" in collected.error_messages[0]
    assert "Empty" == collector.latest[group].group.state


@pytest.mark.slow("waits for a coordinator that does not respond")
async def test_coordinator_that_does_not_respond_delays_no_others(
    kafka, collector, group
):
    with kafka.cluster.broker.faults.on("ShareGroupDescribe", times=None).stall():
        collected = await collector.collect()

    assert collected.reached
    assert "no response in 2 s" in collected.error_messages[0]
    assert "Empty" == collector.latest[group].group.state


async def test_group_that_was_deleted_is_left_out(admin, collector, group):
    (await admin.delete_share_groups(group)).check()

    collected = await collector.collect()

    assert ({}, {}) == (collected.groups, collector.latest)
    assert () == collected.error_messages


async def test_group_that_is_deleted_after_it_was_listed_is_left_out(
    kafka, admin, collector, group
):
    kafka.cluster.broker.faults.clear()
    fault = kafka.cluster.broker.faults.on("ShareGroupDescribe")
    with fault.refuse("GROUP_ID_NOT_FOUND", each=True):
        collected = await collector.collect()

    assert ({}, {}) == (collected.groups, collector.latest)
    assert () == collected.error_messages
