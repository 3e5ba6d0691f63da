"""Heartbeat and describe requests: access, coordinators, settings and limits."""

import uuid

import pytest

from sharecons.testing.broker.acls import Operation, Resource
from sharecons.testing.broker.groups.classic import ClassicGroup
from tests.broker.either import Embedded


@pytest.fixture
def embedded():
    return Embedded()


def beat(embedded, member_id="m", epoch=0, topics=None, **values):
    return embedded.request(
        "share_group_heartbeat",
        1,
        group_id=values.pop("group_id", "g"),
        member_id=member_id,
        member_epoch=epoch,
        subscribed_topic_names=topics,
        **values,
    )


def describe(embedded, *group_ids):
    return embedded.request("share_group_describe", 1, group_ids=list(group_ids)).groups


def test_denied_topic_rejects_heartbeat_without_creating_group(embedded):
    topic, other = embedded.create_topic(), embedded.create_topic()
    embedded.deny(Resource.TOPIC, topic, Operation.DESCRIBE)
    response = beat(embedded, topics=[other, topic])

    assert "topic_authorization_failed" == response.error_code.name
    assert embedded.cluster.groups.get("g") is None
    assert not beat(embedded, topics=[other]).error_code


def test_group_with_hidden_topic_is_not_described(embedded):
    topic = embedded.create_topic()
    beat(embedded, topics=[topic])
    embedded.deny(Resource.TOPIC, topic, Operation.DESCRIBE)
    (found,) = describe(embedded, "g")

    assert "topic_authorization_failed" == found.error_code.name
    assert not found.members


def test_id_of_a_classic_group_is_not_found(embedded):
    embedded.cluster.groups.add(ClassicGroup("g"))
    response = beat(embedded, topics=["t"])
    (found,) = describe(embedded, "g")

    assert "group_id_not_found" == response.error_code.name
    assert "Group g is not a share group." == response.error_message
    assert "Group g is not a share group." == found.error_message


def test_intervals_come_from_group_settings(embedded):
    topic = embedded.create_topic()
    embedded.cluster.configs.set_group(
        "g",
        {
            "share.heartbeat.interval.ms": "200",
            "share.session.timeout.ms": "1500",
            "share.assignment.interval.ms": "0",
        },
    )
    assert 0.2 == beat(embedded, topics=[topic]).heartbeat_interval.total_seconds()

    assert beat(embedded, epoch=2).assignment.topic_partitions
    embedded.sleep(1.5)
    assert "unknown_member_id" == beat(embedded, epoch=3).error_code.name


def test_max_size_limits_members():
    embedded = Embedded(settings={"group.share.max.size": "1"})
    beat(embedded, "a", topics=["t"])

    assert "group_max_size_reached" == beat(embedded, "b", topics=["t"]).error_code.name


def test_describe_removes_expired_members(embedded):
    beat(embedded, topics=[embedded.create_topic()])
    embedded.sleep(45)
    (found,) = describe(embedded, "g")

    assert ("Empty", 3) == (found.group_state, found.group_epoch)


def test_deleted_topic_is_not_described(embedded):
    topic = embedded.create_topic()
    beat(embedded, topics=[topic])
    embedded.sleep(1)
    assert beat(embedded, epoch=2).assignment.topic_partitions
    embedded.cluster.topics.delete(embedded.cluster.topics.by_name(topic))
    (found,) = describe(embedded, "g")

    assert (topic,) == found.members[0].subscribed_topic_names
    assert () == found.members[0].assignment.topic_partitions


def test_assignment_has_topic_ids(embedded):
    topic = embedded.create_topic(3)
    beat(embedded, topics=[topic])
    embedded.sleep(1)
    (assigned,) = beat(embedded, epoch=2).assignment.topic_partitions

    assert embedded.cluster.topics.by_name(topic).topic_id == assigned.topic_id
    assert (0, 1, 2) == assigned.partitions
    assert isinstance(assigned.topic_id, uuid.UUID)
