"""Checks of the heartbeat and describe handlers beyond the group itself."""

import uuid

import pytest

from sharecons.testing.broker.acls import (
    Acl,
    Operation,
    Pattern,
    Permission,
    Resource,
)
from sharecons.testing.broker.groups.classic import ClassicGroup
from tests.broker.either import Ours


@pytest.fixture
def ours():
    return Ours()


def beat(ours, member_id="m", epoch=0, topics=None, **values):
    return ours.ask(
        "share_group_heartbeat",
        1,
        group_id=values.pop("group_id", "g"),
        member_id=member_id,
        member_epoch=epoch,
        subscribed_topic_names=topics,
        **values,
    )


def describe(ours, *group_ids):
    return ours.ask("share_group_describe", 1, group_ids=list(group_ids)).groups


def deny(ours, resource, name, operation=Operation.ALL):
    ours.cluster.authorizer.add(
        Acl(
            resource=resource,
            name=name,
            pattern=Pattern.LITERAL,
            principal="User:ANONYMOUS",
            host="*",
            operation=operation,
            permission=Permission.DENY,
        )
    )


def test_denied_topic_rejects_heartbeat_without_creating_group(ours):
    topic, other = ours.create_topic(), ours.create_topic()
    deny(ours, Resource.TOPIC, topic, Operation.DESCRIBE)
    answer = beat(ours, topics=[other, topic])

    assert "topic_authorization_failed" == answer.error_code.name
    assert ours.cluster.groups.get("g") is None
    assert not beat(ours, topics=[other]).error_code


def test_denied_group_cannot_be_joined_or_described(ours):
    deny(ours, Resource.GROUP, "g")

    assert "group_authorization_failed" == beat(ours, topics=["t"]).error_code.name
    (found,) = describe(ours, "g")
    assert "group_authorization_failed" == found.error_code.name


def test_group_with_hidden_topic_is_not_described(ours):
    topic = ours.create_topic()
    beat(ours, topics=[topic])
    deny(ours, Resource.TOPIC, topic, Operation.DESCRIBE)
    (found,) = describe(ours, "g")

    assert "topic_authorization_failed" == found.error_code.name
    assert not found.members


def test_other_brokers_return_not_coordinator():
    ours = Ours(brokers=2)
    right = ours.cluster.coordinators.node_for(0, "g", ours.cluster.running)
    answer = beat(ours, topics=["t"], node_id=3 - right)

    assert "not_coordinator" == answer.error_code.name
    assert not beat(ours, topics=["t"], node_id=right).error_code


def test_id_of_a_classic_group_is_not_found(ours):
    ours.cluster.groups.add(ClassicGroup("g"))
    answer = beat(ours, topics=["t"])
    (found,) = describe(ours, "g")

    assert "group_id_not_found" == answer.error_code.name
    assert "Group g is not a share group." == answer.error_message
    assert "Group g is not a share group." == found.error_message


def test_intervals_come_from_group_settings(ours):
    topic = ours.create_topic()
    ours.cluster.configs.set_group(
        "g",
        {
            "share.heartbeat.interval.ms": "200",
            "share.session.timeout.ms": "1500",
            "share.assignment.interval.ms": "0",
        },
    )
    assert 0.2 == beat(ours, topics=[topic]).heartbeat_interval.total_seconds()

    assert beat(ours, epoch=2).assignment.topic_partitions
    ours.sleep(1.5)
    assert "unknown_member_id" == beat(ours, epoch=3).error_code.name


def test_max_size_limits_members():
    ours = Ours(settings={"group.share.max.size": "1"})
    beat(ours, "a", topics=["t"])

    assert "group_max_size_reached" == beat(ours, "b", topics=["t"]).error_code.name


def test_describe_removes_expired_members(ours):
    beat(ours, topics=[ours.create_topic()])
    ours.sleep(45)
    (found,) = describe(ours, "g")

    assert ("Empty", 3) == (found.group_state, found.group_epoch)


def test_deleted_topic_is_not_described(ours):
    topic = ours.create_topic()
    beat(ours, topics=[topic])
    ours.sleep(1)
    assert beat(ours, epoch=2).assignment.topic_partitions
    ours.cluster.topics.delete(ours.cluster.topics.by_name(topic))
    (found,) = describe(ours, "g")

    assert (topic,) == found.members[0].subscribed_topic_names
    assert () == found.members[0].assignment.topic_partitions


def test_assignment_has_topic_ids(ours):
    topic = ours.create_topic(3)
    beat(ours, topics=[topic])
    ours.sleep(1)
    (assigned,) = beat(ours, epoch=2).assignment.topic_partitions

    assert ours.cluster.topics.by_name(topic).topic_id == assigned.topic_id
    assert (0, 1, 2) == assigned.partitions
    assert isinstance(assigned.topic_id, uuid.UUID)
