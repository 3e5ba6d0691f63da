"""Heartbeats get the same responses from the embedded broker and a real Kafka."""

import uuid

import pytest

from tests.broker.share_group_dialogue import STEPS, play


def test_responses_equal_recorded_ones(either):
    responses = play(either, f"group-{uuid.uuid4().hex[:8]}")

    for number, (step, response) in enumerate(zip(STEPS, responses, strict=True)):
        assert step.expected == response, f"step {number}: {step}"


FIRST = {"member_id": "m", "member_epoch": 0, "subscribed_topic_names": ["t"]}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"member_epoch": -2}, "MemberEpoch is invalid."),
        (
            {"subscribed_topic_names": None},
            "SubscribedTopicNames must be set in first request.",
        ),
        ({"member_epoch": 3}, "Share group {group} not found."),
        ({"member_epoch": -1}, "Group {group} not found."),
    ],
)
def test_errors_have_kafkas_messages(either, fields, message):
    group = f"group-{uuid.uuid4().hex[:8]}"
    either.find(group)
    request = {"group_id": group, **FIRST, **fields}
    response = either.request("share_group_heartbeat", 1, **request)

    assert response.error_code
    assert message.format(group=group) == response.error_message


def test_fenced_member_epoch_has_kafkas_message(either):
    group, topic = f"group-{uuid.uuid4().hex[:8]}", either.create_topic()
    either.find(group)

    def beat(**values):
        return either.request("share_group_heartbeat", 1, group_id=group, **values)

    beat(member_id="m", member_epoch=0, subscribed_topic_names=[topic])
    greater = beat(member_id="m", member_epoch=9)
    smaller = beat(member_id="m", member_epoch=1)
    unknown = beat(member_id="n", member_epoch=1)

    assert greater.error_message == (
        "The share group member has a greater member epoch (9) than the one known by "
        "the group coordinator (2). The member must abandon all its partitions and "
        "rejoin."
    )
    assert smaller.error_message == (
        "The share group member has a smaller member epoch (1) than the one known by "
        "the group coordinator (2), and it does not match the previous member epoch "
        "(0). The member must abandon all its partitions and rejoin."
    )
    assert f"Member n is not a member of group {group}." == unknown.error_message


def test_describe_returns_members_and_operations(either):
    group, topic = f"group-{uuid.uuid4().hex[:8]}", either.create_topic(2)
    either.find(group)
    either.request(
        "share_group_heartbeat",
        1,
        group_id=group,
        member_id="m",
        member_epoch=0,
        rack_id="r",
        subscribed_topic_names=[topic],
    )
    groups = either.request(
        "share_group_describe",
        1,
        group_ids=[group, "", "unknown"],
        include_authorized_operations=True,
    ).groups
    by_id = {each.group_id: each for each in groups}
    found, (member,) = by_id[group], by_id[group].members

    assert ("Stable", "simple", 3400) == (
        found.group_state,
        found.assignor_name,
        found.authorized_operations,
    )
    assert ("m", "r", "test", (topic,)) == (
        member.member_id,
        member.rack_id,
        member.client_id,
        member.subscribed_topic_names,
    )
    assert member.client_host.startswith("/127.0.0.1")
    assert "invalid_group_id" == by_id[""].error_code.name
    assert "group_id_not_found" == by_id["unknown"].error_code.name
    assert "Group unknown not found." == by_id["unknown"].error_message
