"""Listing, describing and deleting groups, on both Kafkas."""

import pytest

from sharecons import TopicPartition
from sharecons.admin import CommittedOffset
from tests.admin.acquired import accept_records, acquired, code_of

pytestmark = pytest.mark.anyio


async def test_a_group_with_a_member_is_described(admin, kafka, group):
    topic = kafka.admin.create_topic(2)
    kafka.admin.produce(topic, ["a"] * 5, partition=0)
    async with acquired(kafka, group, topic, 5) as (consumer, _):
        results = await admin.describe_share_groups(group, authorized_operations=True)

    described = results[group].value
    (member,) = described.members
    assert ("Stable", "simple") == (described.state, described.assignor)
    assert described.group_epoch == described.assignment_epoch == member.member_epoch
    assert consumer.member_id == member.member_id
    assert ("sharecons", (topic,)) == (member.client_id, member.subscription)
    assert {TopicPartition(topic, 0), TopicPartition(topic, 1)} == {*member.assignment}
    assert {"READ", "DELETE", "DESCRIBE"} <= described.authorized_operations
    assert described.coordinator.port == int(kafka.bootstrap_servers.split(":")[1])


async def test_authorized_operations_are_none_unless_requested(admin, kafka, group):
    topic = kafka.admin.create_topic()
    (
        await admin.alter_share_group_offsets(group, {TopicPartition(topic, 0): 0})
    ).check()

    described = await admin.describe_share_groups(group)

    assert described[group].value.authorized_operations is None


async def test_describe_of_unknown_groups_and_other_types_returns_their_errors(
    admin, kafka, group
):
    topic = kafka.admin.create_topic()
    here, classic = TopicPartition(topic, 0), f"{group}-classic"
    (await admin.alter_share_group_offsets(group, {here: 0})).check()
    (await admin.alter_consumer_group_offsets(classic, {here: 0})).check()

    described = await admin.describe_share_groups("unknown", group, classic)

    assert "Empty" == described[group].value.state
    assert "GROUP_ID_NOT_FOUND" == code_of(described["unknown"])
    assert "GROUP_ID_NOT_FOUND" == code_of(described[classic])
    assert f"Group {classic} is not a share group" in str(described[classic].error)
    assert [group] == list(described.found)
    assert not described.ok


async def test_groups_are_listed_by_state_and_type(admin, kafka, group):
    topic = kafka.admin.create_topic()
    here, classic = TopicPartition(topic, 0), f"{group}-classic"
    (await admin.alter_share_group_offsets(group, {here: 0})).check()
    (await admin.alter_consumer_group_offsets(classic, {here: 0})).check()

    everything = await admin.list_groups(types=())
    share = await admin.list_groups()
    empty = await admin.list_groups(states=["empty"], types=["Classic"])
    stable = await admin.list_groups(states=["Stable"])

    assert {group, classic} <= everything.groups.keys()
    assert "share" == everything.groups[group].group_type
    assert group in share.groups
    assert classic not in share.groups
    assert "Empty" == empty.groups[classic].state
    assert group not in stable.groups
    assert {} == everything.errors


async def test_only_empty_share_groups_are_deleted(admin, kafka, group):
    topic = kafka.admin.create_topic()
    kafka.admin.produce(topic, ["a"] * 3)
    here = TopicPartition(topic, 0)
    busy, classic = f"{group}-busy", f"{group}-classic"
    (await admin.alter_share_group_offsets(group, {here: 0})).check()
    (await admin.alter_consumer_group_offsets(classic, {here: 0})).check()
    async with acquired(kafka, busy, topic, 3):
        deleted = await admin.delete_share_groups(group, busy, classic, "unknown")
        left = await admin.list_groups(types=())

    assert deleted[group].ok
    assert "NON_EMPTY_GROUP" == code_of(deleted[busy])
    assert "stop its consumers first" in str(deleted[busy].error)
    assert "GROUP_ID_NOT_FOUND" == code_of(deleted[classic])
    assert "GROUP_ID_NOT_FOUND" == code_of(deleted["unknown"])
    assert group not in left.groups
    assert {busy, classic} <= left.groups.keys()


async def test_classic_group_is_described_with_its_type(admin, kafka, group):
    topic = kafka.admin.create_topic()
    offset = CommittedOffset(offset=3, metadata="noted")
    await admin.alter_consumer_group_offsets(group, {TopicPartition(topic, 0): offset})

    described = await admin.describe_consumer_groups(group, "unknown")

    assert ("classic", "Empty") == (
        described[group].value.group_type,
        described[group].value.state,
    )
    assert "GROUP_ID_NOT_FOUND" == code_of(described["unknown"])


async def test_a_group_that_a_consumer_left_is_empty(admin, kafka, group):
    topic = kafka.admin.create_topic()
    kafka.admin.produce(topic, ["a"])
    await accept_records(kafka, group, topic, 1)

    described = await admin.describe_share_groups(group)

    assert ("Empty", ()) == (
        described[group].value.state,
        described[group].value.members,
    )
