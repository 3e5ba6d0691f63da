"""Many groups are read with few requests."""

from collections import Counter

import pytest

from sharecons._record import TopicPartition
from sharecons.group_state.collector import GroupCollector

pytestmark = [pytest.mark.anyio, pytest.mark.slow("creates many groups")]

COUNT = 30


@pytest.fixture
def kafka(embedded_kafka):
    yield embedded_kafka
    embedded_kafka.cluster.broker.faults.clear()


@pytest.fixture
async def groups(kafka, admin, group):
    """Groups that each wait for another partition of one topic."""
    topic = kafka.admin.create_topic(COUNT)
    for number in range(COUNT):
        kafka.admin.produce(topic, [b"x"], partition=number)
        start = {TopicPartition(topic, number): 0}
        (await admin.alter_share_group_offsets(f"{group}-{number}", start)).check()
    return f"{group}-*"


async def test_groups_are_read_with_one_request_of_each_kind(kafka, admin, groups):
    broker, collector = kafka.cluster.broker, GroupCollector(admin, [groups])
    sent = []
    for _ in range(2):
        broker.forget_requests()
        collected = await collector.collect()
        sent.append(Counter(each.api for each in broker.requests))

    assert COUNT == len(collected.groups)
    assert not collected.error_counts
    for once in ("ShareGroupDescribe", "DescribeShareGroupOffsets", "DescribeConfigs"):
        assert [1, 1] == [each[once] for each in sent], once
    # Topics and coordinators: of groups, and of their partitions' states, of which the
    # first one finds out whether they can be read.
    for few in ("Metadata", "FindCoordinator"):
        assert all(each[few] <= 8 for each in sent), few
    assert [2, 2] == [each["ListOffsets"] for each in sent]
    assert [1, 0] == [each["Fetch"] for each in sent]
    assert [COUNT, COUNT] == [each["ReadShareGroupState"] for each in sent]


async def test_groups_at_the_same_partition_have_their_own_oldest_record(
    kafka, admin, group
):
    topic = kafka.admin.create_topic()
    kafka.admin.produce(topic, [b"x"] * COUNT)
    key = TopicPartition(topic, 0)
    for number in range(3):
        start = {key: number}
        (await admin.alter_share_group_offsets(f"{group}-{number}", start)).check()
    collected = await GroupCollector(admin, [f"{group}-*"]).collect()

    assert [0, 1, 2] == [
        collected.groups[f"{group}-{number}"].partitions[key].oldest.offset
        for number in range(3)
    ]


async def test_collection_that_fails_leaves_earlier_values_with_their_time(
    kafka, admin, groups
):
    collector = GroupCollector(admin, [groups], limit=0.5)
    first = await collector.collect()
    faults = kafka.cluster.broker.faults
    with faults.on("ListGroups", times=None).stall():
        failed = await collector.collect()

    assert {} == failed.groups
    for group_id, group in collector.latest.items():
        (one,) = group.partitions.values()
        assert (0, 1) == (one.start_offset, one.lag)
        assert first.groups[group_id].at == one.read_at("offsets") < failed.at
        assert "took more than 0.5 s" in str(one.unread["offsets"].error)
