"""Offsets of groups, and the members that are allowed to commit them."""

import struct

import pytest

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.groups.classic import ClassicGroup
from sharecons.testing.broker.groups.offsets import GroupOffsets, Offset
from sharecons.testing.broker.groups.subscription import topics_of
from tests.broker.classic_groups import (
    error_of,
    join,
    rejoin,
    stable_group,
    subscription,
    sync,
)

PLACE = ("t", 0)


def test_later_commit_overrides_transaction_offset():
    offsets = GroupOffsets()
    offsets.add_pending(9, {PLACE: Offset(2)})
    offsets.commit({PLACE: Offset(1)})

    offsets.end_transaction(9, committed=True)

    assert Offset(1) == offsets.get(PLACE)


def test_pending_offsets_are_per_producer():
    offsets = GroupOffsets()
    offsets.add_pending(8, {PLACE: Offset(2)})
    offsets.add_pending(9, {PLACE: Offset(3)})

    offsets.end_transaction(9, committed=False)

    assert offsets.is_pending(PLACE)
    offsets.end_transaction(8, committed=True)
    assert Offset(2) == offsets.get(PLACE)


def test_deleted_offset_is_not_restored_by_transaction():
    offsets = GroupOffsets()
    offsets.commit({PLACE: Offset(1)})
    offsets.add_pending(9, {PLACE: Offset(2)})

    offsets.delete(PLACE)
    offsets.end_transaction(9, committed=True)

    assert offsets.get(PLACE) is None


def test_deleting_a_topic_deletes_its_offsets():
    offsets = GroupOffsets()
    offsets.commit({PLACE: Offset(1), ("t", 1): Offset(1), ("other", 0): Offset(1)})
    offsets.add_pending(9, {PLACE: Offset(2), ("other", 1): Offset(2)})

    offsets.delete_topic("t")
    offsets.end_transaction(9, committed=True)

    assert [("other", 0), ("other", 1)] == list(offsets)


def test_commit_is_a_heartbeat_unless_transactional():
    group = stable_group("one")
    group.check_commit("one", None, 1, 8.0)
    group.check_commit("one", None, 1, 16.0, transactional=True)

    group.advance(17.9)
    assert 1 == len(group.members)
    group.advance(18.0)

    assert 0 == len(group.members)


def test_group_knows_subscribed_topics():
    group = ClassicGroup("g")
    join(group, "one", protocols=(("range", subscription("a", "b")),))
    join(group, "two", protocols=(("range", subscription("c")),))
    rejoin(group, "one", protocols=(("range", subscription("a", "b")),))
    sync(group, "one")

    assert [True, True, True, False] == [group.is_subscribed(t) for t in "abcd"]
    group.check_offset_delete()
    group.advance(1000.0)
    assert not group.is_subscribed("a")


def test_unparsable_subscription_matches_any_topic():
    group = stable_group("one", protocols=(("range", b"?"),))

    assert group.is_subscribed("a")


def test_other_protocol_types_keep_all_offsets():
    group = stable_group("one", protocol_type="connect")

    assert ErrorCode.non_empty_group is error_of(group.check_offset_delete)
    assert not group.is_subscribed("a")


def test_a_group_without_members_has_no_subscription():
    group = ClassicGroup("g")

    group.check_offset_delete()

    assert not group.is_subscribed("a")


def test_topics_are_read_from_all_subscriptions():
    assert {"a", "b", "ü"} == topics_of(
        [
            subscription("a", "b"),
            struct.pack(">hih", 3, 1, 2) + "ü".encode() + b"user data",
        ]
    )


@pytest.mark.parametrize("size", range(13))
def test_truncated_subscription_is_unparsable(size):
    whole = subscription("topic")

    assert topics_of([whole[:size]]) is None
    assert {"topic"} == topics_of([whole[:13]])
