"""Rare requests of tools, to the embedded broker and to a real Kafka."""

import pytest

from tests.broker.clients import new_name
from tests.broker.configs import BROKER, GROUP, SET, TOPIC, alter
from tests.broker.either import BOTH, Embedded, either_broker
from tests.broker.raw_batches import NOW, batch

LOGGERS, METRICS = 8, 16


@pytest.fixture(params=BOTH)
def broker(request):
    return either_broker(request)


# ListConfigResources


def resources(broker, version, *kinds):
    fields = {"resource_types": kinds} if version else {}
    response = broker.request("list_config_resources", version, **fields)
    assert not response.error_code
    return {
        (getattr(each, "resource_type", METRICS), each.resource_name)
        for each in response.config_resources
    }


def test_resources_of_a_kind_are_listed(broker):
    topic, group = broker.create_topic(), new_name("group")
    alter(broker, GROUP, group, ("share.heartbeat.interval.ms", SET, "6000"))
    broker.sleep(0.3)

    assert {(BROKER, "1")} == resources(broker, 1, BROKER)
    assert (TOPIC, topic) in resources(broker, 1, TOPIC)
    assert (GROUP, group) in resources(broker, 1, GROUP)
    everything = {(BROKER, "1"), (LOGGERS, "1"), (TOPIC, topic), (GROUP, group)}
    assert everything <= resources(broker, 1)
    assert not resources(broker, 0)


def test_unknown_resource_types_are_rejected(broker):
    response = broker.request("list_config_resources", 1, resource_types=(TOPIC, 77))

    assert ("unsupported_version", ()) == (
        response.error_code.name,
        response.config_resources,
    )


# DescribeTopicPartitions


def describe(broker, *names, limit=2000, cursor=None):
    return broker.request(
        "describe_topic_partitions",
        0,
        topics=[{"name": name} for name in names],
        response_partition_limit=limit,
        cursor=cursor,
    )


def test_topics_are_described_with_replicas(broker):
    topic = broker.create_topic(2)
    (response,) = describe(broker, topic).topics

    assert (topic, False) == (response.name, response.is_internal)
    assert [
        (0, 1, (1,), (1,), (), (), ()),
        (1, 1, (1,), (1,), (), (), ()),
    ] == [
        (
            place.partition_index,
            place.leader_id,
            place.replica_nodes,
            place.isr_nodes,
            place.eligible_leader_replicas,
            place.last_known_elr,
            place.offline_replicas,
        )
        for place in response.partitions
    ]
    assert 0b110111111000 == response.topic_authorized_operations


def pages(broker, *names, limit):
    """Request all pages; return the partitions of each page."""
    cursor, found = None, []
    while cursor or not found:
        response = describe(broker, *names, limit=limit, cursor=cursor)
        found.append(
            [
                (topic.name, [place.partition_index for place in topic.partitions])
                for topic in response.topics
            ]
        )
        after = response.next_cursor
        cursor = after and {
            "topic_name": after.topic_name,
            "partition_index": after.partition_index,
        }
    return found


def test_cursor_continues_a_full_page(broker):
    one, two = sorted(broker.create_topic(3) for _ in range(2))

    assert [[(one, [0, 1, 2]), (two, [0, 1, 2])]] == pages(broker, two, one, limit=6)
    assert [[(one, [0, 1])], [(one, [2]), (two, [0])], [(two, [1, 2])]] == pages(
        broker, one, two, limit=2
    )
    assert [[(one, [0, 1, 2])], [(two, [0, 1, 2])]] == pages(broker, one, two, limit=3)
    assert 6 == len(pages(broker, one, two, limit=0))


def test_missing_topics_are_errors(broker):
    topic = broker.create_topic()
    response = describe(broker, "nowhere", "no/slash", topic)

    assert {
        "nowhere": "unknown_topic_or_partition",
        "no/slash": "invalid_topic_exception",
        topic: "none",
    } == {each.name: each.error_code.name for each in response.topics}
    assert {None} == {each.topic_id for each in response.topics if each.name != topic}


def test_invalid_cursor_is_rejected(broker):
    topic = broker.create_topic()
    cursor = {"topic_name": topic, "partition_index": -1}
    response = describe(broker, topic, cursor=cursor)

    assert ["invalid_request"] == [each.error_code.name for each in response.topics]


# OffsetForLeaderEpoch


def end_of(broker, topic, epoch, known=-1, partition=0):
    fields = {
        "partition": partition,
        "current_leader_epoch": known,
        "leader_epoch": epoch,
    }
    (response,) = broker.request(
        "offset_for_leader_epoch",
        4,
        replica_id=-1,
        topics=[{"topic": topic, "partitions": [fields]}],
    ).topics
    (found,) = response.partitions
    return found.error_code.name, found.leader_epoch, found.end_offset


def test_current_epoch_ends_at_log_end(broker):
    topic = broker.create_topic()

    assert ("none", 0, 0) == end_of(broker, topic, 0)
    assert ("none", 0, 0) == end_of(broker, topic, 0, known=0)
    assert ("none", -1, -1) == end_of(broker, topic, 1)
    assert ("none", -1, -1) == end_of(broker, topic, -1)


def test_epoch_lookup_checks_leader_and_current_epoch(broker):
    topic = broker.create_topic()

    assert ("unknown_leader_epoch", -1, -1) == end_of(broker, topic, 0, known=1)
    unknown = ("unknown_topic_or_partition", -1, -1)
    assert unknown == end_of(broker, "nowhere", 0)
    assert unknown == end_of(broker, topic, 0, partition=9)


def test_past_epochs_end_where_the_next_begins():
    embedded = Embedded(brokers=2)
    topic = embedded.cluster.add_topic("topic", [[1, 2]])
    log = topic.partitions[0].log

    def produce_result(count, epoch):
        for _ in range(count):
            log.append(batch("x"), NOW, leader_epoch=epoch)

    produce_result(3, 0)
    produce_result(2, 4)
    for node in (2, 1, 2, 1, 2, 1):
        embedded.cluster.move_leader("topic", 0, node)

    assert ("none", 0, 3) == end_of(embedded, "topic", 0)
    assert ("none", 0, 3) == end_of(embedded, "topic", 2)
    assert ("none", 4, 5) == end_of(embedded, "topic", 4)
    assert ("none", 4, 5) == end_of(embedded, "topic", 5)
    assert ("none", 6, 5) == end_of(embedded, "topic", 6)
    assert ("fenced_leader_epoch", -1, -1) == end_of(embedded, "topic", 0, known=5)


# SaslHandshake, SaslAuthenticate


@pytest.mark.parametrize("version", [0, 1])
def test_sasl_handshake_without_sasl_is_an_error(broker, version):
    response = broker.request("sasl_handshake", version, mechanism="PLAIN")

    assert ("illegal_sasl_state", ()) == (response.error_code.name, response.mechanisms)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_sasl_authenticate_without_sasl_is_an_error(broker, version):
    response = broker.request("sasl_authenticate", version, auth_bytes=b"x")

    assert ("illegal_sasl_state", b"") == (
        response.error_code.name,
        response.auth_bytes,
    )
    assert (
        "SaslAuthenticate request received after successful authentication"
        == response.error_message
    )
