"""Rare requests of tools, to the embedded broker and to a real Kafka."""

import pytest

from tests.broker.clients import new_name
from tests.broker.configs import BROKER, GROUP, SET, TOPIC, alter
from tests.broker.either import Embedded, becoming
from tests.broker.raw_batches import NOW, batch

LOGGERS, METRICS = 8, 16


# ListConfigResources


def resources(either, version, *kinds):
    fields = {"resource_types": kinds} if version else {}
    response = either.request("list_config_resources", version, **fields)
    assert not response.error_code
    return {
        (getattr(each, "resource_type", METRICS), each.resource_name)
        for each in response.config_resources
    }


def test_resources_of_a_kind_are_listed(either):
    topic, group = either.create_topic(), new_name("group")
    alter(either, GROUP, group, ("share.heartbeat.interval.ms", SET, "6000"))

    assert becoming(either, True, lambda: (GROUP, group) in resources(either, 1, GROUP))
    assert {(BROKER, "1")} == resources(either, 1, BROKER)
    assert (TOPIC, topic) in resources(either, 1, TOPIC)
    everything = {(BROKER, "1"), (LOGGERS, "1"), (TOPIC, topic), (GROUP, group)}
    assert everything <= resources(either, 1)
    assert not resources(either, 0)


def test_unknown_resource_types_are_rejected(either):
    response = either.request("list_config_resources", 1, resource_types=(TOPIC, 77))

    assert ("unsupported_version", ()) == (
        response.error_code.name,
        response.config_resources,
    )


# DescribeTopicPartitions


def describe(either, *names, limit=2000, cursor=None):
    return either.request(
        "describe_topic_partitions",
        0,
        topics=[{"name": name} for name in names],
        response_partition_limit=limit,
        cursor=cursor,
    )


def test_topics_are_described_with_replicas(either):
    topic = either.create_topic(2)
    (response,) = describe(either, topic).topics

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


def pages(either, *names, limit):
    """Request all pages; return the partitions of each page."""
    cursor, found = None, []
    while cursor or not found:
        response = describe(either, *names, limit=limit, cursor=cursor)
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


def test_cursor_continues_a_full_page(either):
    one, two = sorted(either.create_topic(3) for _ in range(2))

    assert [[(one, [0, 1, 2]), (two, [0, 1, 2])]] == pages(either, two, one, limit=6)
    assert [[(one, [0, 1])], [(one, [2]), (two, [0])], [(two, [1, 2])]] == pages(
        either, one, two, limit=2
    )
    assert [[(one, [0, 1, 2])], [(two, [0, 1, 2])]] == pages(either, one, two, limit=3)
    assert 6 == len(pages(either, one, two, limit=0))


def test_missing_topics_are_errors(either):
    topic = either.create_topic()
    response = describe(either, "nowhere", "no/slash", topic)

    assert {
        "nowhere": "unknown_topic_or_partition",
        "no/slash": "invalid_topic_exception",
        topic: "none",
    } == {each.name: each.error_code.name for each in response.topics}
    assert {None} == {each.topic_id for each in response.topics if each.name != topic}


def test_invalid_cursor_is_rejected(either):
    topic = either.create_topic()
    cursor = {"topic_name": topic, "partition_index": -1}
    response = describe(either, topic, cursor=cursor)

    assert ["invalid_request"] == [each.error_code.name for each in response.topics]


# OffsetForLeaderEpoch


def end_of(either, topic, epoch, known=-1, partition=0):
    fields = {
        "partition": partition,
        "current_leader_epoch": known,
        "leader_epoch": epoch,
    }
    (response,) = either.request(
        "offset_for_leader_epoch",
        4,
        replica_id=-1,
        topics=[{"topic": topic, "partitions": [fields]}],
    ).topics
    (found,) = response.partitions
    return found.error_code.name, found.leader_epoch, found.end_offset


def test_current_epoch_ends_at_log_end(either):
    topic = either.create_topic()

    assert ("none", 0, 0) == end_of(either, topic, 0)
    assert ("none", 0, 0) == end_of(either, topic, 0, known=0)
    assert ("none", -1, -1) == end_of(either, topic, 1)
    assert ("none", -1, -1) == end_of(either, topic, -1)


def test_epoch_lookup_checks_leader_and_current_epoch(either):
    topic = either.create_topic()

    assert ("unknown_leader_epoch", -1, -1) == end_of(either, topic, 0, known=1)
    unknown = ("unknown_topic_or_partition", -1, -1)
    assert unknown == end_of(either, "nowhere", 0)
    assert unknown == end_of(either, topic, 0, partition=9)


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
def test_sasl_handshake_without_sasl_is_an_error(either, version):
    response = either.request("sasl_handshake", version, mechanism="PLAIN")

    assert ("illegal_sasl_state", ()) == (response.error_code.name, response.mechanisms)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_sasl_authenticate_without_sasl_is_an_error(either, version):
    response = either.request("sasl_authenticate", version, auth_bytes=b"x")

    assert ("illegal_sasl_state", b"") == (
        response.error_code.name,
        response.auth_bytes,
    )
    assert (
        "SaslAuthenticate request received after successful authentication"
        == response.error_message
    )
