"""Offsets of share groups: described, altered and deleted, as on a real Kafka."""

import uuid

import pytest

from sharecons.testing.broker.acls import Operation, Resource
from tests.broker.either import Embedded

ABSENT = "This server does not host this topic-partition."


@pytest.fixture
def group(either):
    group_id = f"group-{uuid.uuid4().hex[:8]}"
    either.find(group_id)
    return group_id


def describe(broker, group, topics=None, version=1):
    (found,) = broker.request(
        "describe_share_group_offsets",
        version,
        groups=[
            {
                "group_id": group,
                "topics": topics
                and [
                    {"topic_name": name, "partitions": partitions}
                    for name, partitions in topics.items()
                ],
            }
        ],
    ).groups
    assert not found.error_code
    return {
        (topic.topic_name, each.partition_index): (
            each.start_offset,
            each.lag if version else None,
        )
        for topic in found.topics
        for each in topic.partitions
    }


def alter(broker, group, **topics):
    return broker.request(
        "alter_share_group_offsets",
        0,
        group_id=group,
        topics=[
            {
                "topic_name": name,
                "partitions": [
                    {"partition_index": index, "start_offset": offset}
                    for index, offset in offsets.items()
                ],
            }
            for name, offsets in topics.items()
        ],
    )


def delete(broker, group, *topics):
    return broker.request(
        "delete_share_group_offsets",
        0,
        group_id=group,
        topics=[{"topic_name": name} for name in topics],
    )


def beat(broker, group, epoch, topics=None):
    response = broker.request(
        "share_group_heartbeat",
        1,
        group_id=group,
        member_id="m",
        member_epoch=epoch,
        subscribed_topic_names=topics,
    )
    assert not response.error_code
    broker.sleep(0.5)


def results(altered):
    return {
        (topic.topic_name, each.partition_index): each.error_code
        and (each.error_code.name, each.error_message)
        for topic in altered.responses
        for each in topic.partitions
    }


@pytest.mark.parametrize("version", [0, 1])
def test_unknown_group_has_no_offsets(either, group, version):
    topic = either.create_topic()
    lag = -1 if version else None

    assert {} == describe(either, group, None, version)
    assert {(topic, 0): (-1, lag), ("nothing", 3): (-1, lag)} == describe(
        either, group, {topic: [0], "nothing": [3]}, version
    )


def test_assigned_partitions_are_listed_before_first_fetch(either, group):
    topic = either.create_topic(2)
    beat(either, group, 0, [topic])

    assert {(topic, 0): (-1, -1), (topic, 1): (-1, -1)} == describe(either, group)


def test_alter_creates_group_at_offset(either, group):
    topic = either.create_topic(3)
    altered = alter(either, group, **{topic: {0: 0, 1: 7}})

    assert not altered.error_code
    assert {(topic, 0): 0, (topic, 1): 0} == results(altered)
    assert {(topic, 0): (0, 0), (topic, 1): (7, -7)} == describe(either, group)
    (found,) = either.request("share_group_describe", 1, group_ids=[group]).groups
    assert ("Empty", 1, 1) == (
        found.group_state,
        found.group_epoch,
        found.assignment_epoch,
    )


def test_alter_fails_for_unknown_partitions(either, group):
    topic = either.create_topic()
    altered = alter(either, group, nothing={0: 1}, **{topic: {0: 5, 9: 5}})
    absent = ("unknown_topic_or_partition", ABSENT)

    assert {("nothing", 0): absent, (topic, 0): 0, (topic, 9): absent} == results(
        altered
    )


def test_group_with_a_member_keeps_its_offsets(either, group):
    topic = either.create_topic()
    beat(either, group, 0, [topic])
    for response in (
        alter(either, group, **{topic: {0: 5}}),
        delete(either, group, topic),
    ):
        assert "non_empty_group" == response.error_code.name
        assert "The group is not empty." == response.error_message
        assert not response.responses

    beat(either, group, -1)
    assert not alter(either, group, **{topic: {0: 5}}).error_code


def test_delete_removes_offsets_by_topic(either, group):
    topic, other, third = (either.create_topic() for _ in range(3))
    alter(either, group, **{topic: {0: 1}, other: {0: 2}})
    deleted = delete(either, group, topic, third, "nothing").responses
    reported = {
        each.topic_name: each.error_code and (each.error_code.name, each.error_message)
        for each in deleted
    }

    assert {
        topic: 0,
        third: (
            "unknown_topic_or_partition",
            "There is no offset information to delete.",
        ),
        "nothing": ("unknown_topic_or_partition", ABSENT),
    } == reported
    assert {(other, 0): (2, -2)} == describe(either, group)


@pytest.mark.newer_kafka
def test_negative_and_repeated_offsets_are_accepted(either, group):
    """Kafka 4.4.0 has no INVALID_REQUEST for them; the last one counts."""
    topic = either.create_topic()
    offsets = [{"partition_index": 0, "start_offset": each} for each in (-5, 3, 4)]
    named = [{"topic_name": topic, "partitions": [offset]} for offset in offsets]

    response = either.request(
        "alter_share_group_offsets", 0, group_id=group, topics=named
    )

    (result,) = response.responses
    assert [0, 0, 0] == [each.partition_index for each in result.partitions]
    assert {"none"} == {each.error_code.name for each in result.partitions}
    assert {(topic, 0): (4, -4)} == describe(either, group)


@pytest.mark.newer_kafka
def test_topic_named_twice_is_deleted_once(either, group):
    topic = either.create_topic()
    alter(either, group, **{topic: {0: 4}})

    response = either.request(
        "delete_share_group_offsets",
        0,
        group_id=group,
        topics=[{"topic_name": topic}] * 2,
    )

    (result,) = response.responses
    assert ("none", None) == (result.error_code.name, result.error_message)


def test_delete_of_missing_group_is_an_error(either, group):
    response = delete(either, group, "t")

    assert "group_id_not_found" == response.error_code.name
    assert f"Group {group} not found." == response.error_message


def test_group_without_a_name_has_no_offsets(either):
    for response in (alter(either, "", t={0: 0}), delete(either, "", "t")):
        assert "invalid_group_id" == response.error_code.name
        assert "The group id is invalid." == response.error_message
    assert {} == describe(either, "")


def test_deleted_topic_is_initialised_again_for_the_next_member():
    embedded = Embedded()
    topic = embedded.create_topic()
    beat(embedded, "g", 0, [topic])
    beat(embedded, "g", -1)
    delete(embedded, "g", topic)
    assert {} == describe(embedded, "g")

    beat(embedded, "g", 0, [topic])
    assert {(topic, 0): (-1, -1)} == describe(embedded, "g")


def test_deleted_topic_is_omitted_from_all():
    embedded = Embedded()
    topic, other = embedded.create_topic(), embedded.create_topic()
    alter(embedded, "g", **{topic: {0: 1}, other: {0: 2}})
    embedded.cluster.delete_topic(embedded.cluster.topics.by_name(topic))

    assert {(other, 0): (2, -2)} == describe(embedded, "g")


def test_denied_topics_are_errors_by_name_and_omitted_from_all():
    embedded = Embedded()
    topic = embedded.create_topic()
    alter(embedded, "g", **{topic: {0: 1}})
    embedded.deny_only(Resource.TOPIC, topic, Operation.ALL)
    (found,) = embedded.request(
        "describe_share_group_offsets",
        1,
        groups=[
            {"group_id": "g", "topics": [{"topic_name": topic, "partitions": [0]}]}
        ],
    ).groups
    (deleted,) = delete(embedded, "g", topic).responses
    altered = results(alter(embedded, "g", **{topic: {0: 2}}))
    denied = "topic_authorization_failed"

    assert {} == describe(embedded, "g")
    assert denied == found.topics[0].partitions[0].error_code.name
    assert denied == deleted.error_code.name
    assert denied == altered[topic, 0][0]
