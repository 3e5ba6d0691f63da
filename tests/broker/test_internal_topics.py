"""The topics of coordinators: when they exist, and how requests show them."""

import uuid

import pytest

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.coordinators import GROUP, SHARE, TRANSACTION
from tests.broker.blocking_client import BlockingClient
from tests.broker.either import Embedded
from tests.waiting import until_true

OFFSETS = "__consumer_offsets"
TRANSACTIONS = "__transaction_state"
STATES = "__share_group_state"
SHARE_KEY = "g:AAAAAAAAAAAAAAAAAAAAAQ:0"

# The partition counts and replication factors are settings of the cluster.
EXPECTED_CONFIGS = {
    OFFSETS: {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    },
    STATES: {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "min.insync.replicas": "1",
        "retention.ms": "-1",
        "segment.bytes": "104857600",
    },
}


def make_kafka(**settings):
    """Return three brokers, of which the first coordinates group "g"."""
    dotted = {name.replace("_", "."): str(value) for name, value in settings.items()}
    kafka = Embedded(3, dotted)
    kafka.cluster.coordinators.move(GROUP, "g", 1)
    return kafka


@pytest.fixture
def kafka():
    return make_kafka()


def listed(kafka, *names, **values):
    topics = [{"name": name, "topic_id": None} for name in names] or None
    values.setdefault("allow_auto_topic_creation", False)
    return kafka.request("metadata", 12, topics=topics, **values).topics


def find(kafka, key_type, key):
    values = {"key_type": key_type, "coordinator_keys": (key,)}
    (found,) = kafka.request("find_coordinator", 6, **values).coordinators
    return found.error_code


def beat(kafka):
    return kafka.request(
        "share_group_heartbeat",
        1,
        group_id="g",
        member_id="m",
        member_epoch=0,
        subscribed_topic_names=("orders",),
    )


@pytest.mark.parametrize(
    ("key_type", "key", "name"),
    [
        (GROUP, "g", OFFSETS),
        (TRANSACTION, "t", TRANSACTIONS),
        (SHARE, SHARE_KEY, STATES),
    ],
)
def test_first_request_for_a_coordinator_creates_its_topic(kafka, key_type, key, name):
    assert () == listed(kafka)

    assert ErrorCode.none == find(kafka, key_type, key)

    (topic,) = listed(kafka)
    assert (name, True, 50) == (topic.name, topic.is_internal, len(topic.partitions))
    assert {3} == {len(each.replica_nodes) for each in topic.partitions}
    topic_id = topic.topic_id
    find(kafka, key_type, key)
    assert topic_id == listed(kafka)[0].topic_id


def test_first_partition_of_a_share_group_creates_the_state_topic(kafka):
    beat(kafka)
    assert () == listed(kafka)

    kafka.cluster.add_topic("orders", [[1]])
    beat(kafka)

    assert {"orders": False, STATES: True} == {
        each.name: each.is_internal for each in listed(kafka)
    }


def test_settings_decide_partitions_and_replicas():
    kafka = make_kafka(
        offsets_topic_num_partitions=4, offsets_topic_replication_factor=2
    )
    find(kafka, GROUP, "g")

    (topic,) = listed(kafka)
    assert 4 == len(topic.partitions)
    assert {2} == {len(each.replica_nodes) for each in topic.partitions}


def test_topic_that_cannot_be_created_leaves_no_coordinator():
    kafka = make_kafka(offsets_topic_replication_factor=4)

    assert ErrorCode.coordinator_not_available == find(kafka, GROUP, "g")
    assert () == listed(kafka)


def test_share_group_whose_state_topic_cannot_be_created_assigns_nothing():
    kafka = make_kafka(share_coordinator_state_topic_replication_factor=4)
    kafka.cluster.add_topic("orders", [[1]])

    for _ in range(3):
        assert () == beat(kafka).assignment.topic_partitions
        kafka.sleep(5)
    assert ["orders"] == [each.name for each in listed(kafka)]


def test_metadata_creates_internal_topics_as_coordinators_do(kafka):
    listed(kafka, OFFSETS, allow_auto_topic_creation=True)

    (topic,) = listed(kafka)
    assert (OFFSETS, 50) == (topic.name, len(topic.partitions))


@pytest.mark.parametrize("name", EXPECTED_CONFIGS)
@pytest.mark.newer_kafka
def test_internal_topics_of_a_share_group_are_those_of_kafka(any_kafka, name):
    topic = any_kafka.admin.create_topic(1)
    group = f"group-{uuid.uuid4().hex[:8]}"
    any_kafka.admin.group_coordinator(group)
    with BlockingClient(any_kafka.bootstrap_servers) as client:

        def has_partitions():
            response = client.request(
                "share_group_heartbeat",
                1,
                group_id=group,
                member_id="m",
                member_epoch=0,
                subscribed_topic_names=(topic,),
            )
            return response.assignment and response.assignment.topic_partitions

        until_true(has_partitions, what="the member has partitions")
        topics = client.request("metadata", 12, topics=None).topics
        assert {name} <= {each.name for each in topics if each.is_internal}
        assert topic in {each.name for each in topics if not each.is_internal}
        resource = {"resource_type": 2, "resource_name": name}
        described = client.request(
            "describe_configs",
            4,
            resources=[{**resource, "configuration_keys": None}],
        )
        (result,) = described.results
        own = {
            each.name: each.value for each in result.configs if each.config_source == 1
        }
    assert EXPECTED_CONFIGS[name] == own
