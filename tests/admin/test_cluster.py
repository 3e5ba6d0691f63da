"""The cluster, its topics, and consumer groups' offsets, on both Kafkas."""

import pytest

from sharecons import TopicPartition
from sharecons.admin import CommittedOffset
from tests.admin.acquired import code_of

pytestmark = pytest.mark.anyio


async def test_the_cluster_is_described(admin, kafka):
    cluster = await admin.describe_cluster(authorized_operations=True)

    (broker,) = cluster.brokers.values()
    assert kafka.bootstrap_servers.endswith(f":{broker.port}")
    assert cluster.cluster_id
    assert cluster.controller_id == broker.node_id
    assert not broker.fenced
    assert {"DESCRIBE", "CLUSTER_ACTION"} <= cluster.authorized_operations


async def test_features_contain_share_groups_and_their_apis(admin, kafka):
    features = await admin.describe_features()

    assert (2 if kafka.version >= "4.4" else 1) == features.share_version
    assert 78 in features.apis


async def test_describe_topics_with_an_unknown_topic_returns_its_error(admin, kafka):
    topic = kafka.admin.create_topic(3)

    described = await admin.describe_topics(
        topic, "no-such-topic", authorized_operations=True
    )
    everything = await admin.describe_topics()

    found = described[topic].value
    assert [0, 1, 2] == list(found.partitions)
    assert found.partitions[0].leader in found.partitions[0].replicas
    assert 16 == len(found.topic_id)
    assert {"READ", "DESCRIBE"} <= found.authorized_operations
    assert "UNKNOWN_TOPIC_OR_PARTITION" == code_of(described["no-such-topic"])
    assert topic in everything


async def test_list_consumer_group_offsets_returns_committed_offsets(
    admin, kafka, group
):
    topic = kafka.admin.create_topic(2)
    first, second, none = (TopicPartition(topic, n) for n in (0, 1, 9))

    committed = await admin.alter_consumer_group_offsets(
        group, {first: 5, none: CommittedOffset(offset=1)}
    )
    everything = (await admin.list_consumer_group_offsets(group))[group].value
    named = await admin.list_consumer_group_offsets(group, partitions=[first, second])

    assert committed[first].ok
    assert "UNKNOWN_TOPIC_OR_PARTITION" == code_of(committed[none])
    assert {first: CommittedOffset(offset=5)} == everything.found
    assert {first: CommittedOffset(offset=5), second: None} == named[group].value.found


async def test_alter_consumer_group_offsets_of_a_share_group_is_rejected(
    admin, kafka, group
):
    here = TopicPartition(kafka.admin.create_topic(), 0)
    (await admin.alter_share_group_offsets(group, {here: 0})).check()

    committed = await admin.alter_consumer_group_offsets(group, {here: 1})

    assert "GROUP_ID_NOT_FOUND" == code_of(committed[here])
