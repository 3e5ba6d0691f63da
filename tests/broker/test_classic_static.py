"""Static members (KIP-345) that rejoin a classic group."""

import pytest

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.groups.classic import ClassicGroup, State
from sharecons.testing.broker.groups.errors import GroupError
from tests.broker.test_classic_rebalance import joins, refused, rejoins, syncs


def static_group(session_timeout=10.0):
    """Return a stable group of two static members; the first one is the leader."""
    group = ClassicGroup("g")
    asked = {"session_timeout": session_timeout}
    joins(group, "one", group_instance_id="i1", **asked)
    joins(group, "two", group_instance_id="i2", **asked)
    rejoins(group, "one", group_instance_id="i1", **asked)
    syncs(group, "two")
    syncs(group, "one", assignments={"one": b"1", "two": b"2"})
    return group


def test_static_member_joins_without_member_id_round():
    answer = joins(
        ClassicGroup("g"), "one", group_instance_id="i", id_required=True
    ).result

    assert (ErrorCode.none, "i") == (answer.error, answer.members[0].group_instance_id)


def test_returning_static_follower_keeps_assignment_without_rebalance():
    group = static_group()
    before = group.generation_id

    answer = joins(group, "new", now=1.0, group_instance_id="i2").result

    assert (before, "new", "one", ()) == (
        answer.generation_id,
        answer.member_id,
        answer.leader,
        answer.members,
    )
    assert State.STABLE is group.state
    assert b"2" == syncs(group, "new", now=1.0).result.assignment


def test_returning_static_leader_skips_assignment():
    group = static_group()

    answer = joins(group, "new", now=1.0, group_instance_id="i1").result

    assert (True, "new") == (answer.skip_assignment, answer.leader)
    assert {"new", "two"} == {each.member_id for each in answer.members}
    assert b"1" == syncs(group, "new", now=1.0).result.assignment


def test_returning_old_static_leader_becomes_follower():
    group = static_group()

    answer = joins(
        group, "new", now=1.0, group_instance_id="i1", may_skip_assignment=False
    ).result

    assert (False, "one", ()) == (
        answer.skip_assignment,
        answer.leader,
        answer.members,
    )


def test_old_id_of_returning_static_member_is_fenced():
    group = static_group()
    joins(group, "new", now=1.0, group_instance_id="i2")
    generation = group.generation_id

    fenced = ErrorCode.fenced_instance_id
    assert fenced is refused(group.heartbeat, "two", "i2", generation, 1.0)
    assert fenced is refused(syncs, group, "two", group_instance_id="i2")
    assert fenced is rejoins(group, "two", group_instance_id="i2").result.error
    assert fenced is refused(group.check_commit, "two", "i2", generation, 1.0)
    assert [fenced] == group.leave([("two", "i2")], 1.0)


def test_waiting_join_of_replaced_id_is_fenced():
    group = static_group()
    old = rejoins(group, "one", now=1.0, group_instance_id="i1")
    assert old.result is None

    joins(group, "new", now=2.0, group_instance_id="i1")

    assert (ErrorCode.fenced_instance_id, "one") == (
        old.result.error,
        old.result.member_id,
    )


def test_waiting_sync_of_replaced_id_is_fenced():
    group = ClassicGroup("g")
    joins(group, "one", group_instance_id="i1")
    joins(group, "two", group_instance_id="i2")
    rejoins(group, "one", group_instance_id="i1")
    old = syncs(group, "two")

    joins(group, "new", group_instance_id="i2")

    assert ErrorCode.fenced_instance_id is old.result.error
    assert State.PREPARING is group.state


def test_static_rejoin_with_another_protocol_starts_a_rebalance():
    group = ClassicGroup("g")
    both = (("range", b""), ("sticky", b""))
    joins(group, "one", group_instance_id="i", protocols=both)
    syncs(group, "one", assignments={})

    answer = joins(
        group, "new", group_instance_id="i", protocols=(both[1], both[0])
    ).result

    assert ("sticky", 2) == (answer.protocol_name, answer.generation_id)


def test_returning_static_member_has_a_new_session():
    group = static_group()
    group.heartbeat("one", "i1", group.generation_id, 8.0)
    joins(group, "new", now=9.0, group_instance_id="i2")

    group.advance(17.9)
    assert State.STABLE is group.state
    group.advance(19.0)

    assert State.EMPTY is group.state


def test_late_static_members_stay_until_their_session_ends():
    group = static_group(session_timeout=100.0)
    one = rejoins(group, "one", now=1.0, group_instance_id="i1", session_timeout=100.0)

    group.advance(61.0)

    assert {"one", "two"} == {each.member_id for each in one.result.members}


def test_group_of_absent_static_members_waits_for_their_sessions():
    group = static_group(session_timeout=100.0)
    three = joins(group, "three", now=1.0)
    group.leave([("three", None)], now=2.0)

    group.advance(99.0)
    assert State.PREPARING is group.state
    group.advance(161.0)

    assert ErrorCode.unknown_member_id is three.result.error
    assert State.EMPTY is group.state


def test_static_members_are_removed_by_instance_id():
    group = static_group()

    codes = group.leave([("", "i2"), ("", "i2"), ("", None)], now=1.0)

    unknown = ErrorCode.unknown_member_id
    assert [ErrorCode.none, unknown, unknown] == codes
    assert ["one"] == [member.member_id for member in group.members]


def test_unknown_instance_id_is_an_error():
    group = static_group()

    with pytest.raises(GroupError) as caught:
        group.heartbeat("one", "i9", group.generation_id, 1.0)

    assert ErrorCode.unknown_member_id is caught.value.code


def test_replaced_id_without_sync_removes_no_member():
    group = ClassicGroup("g")
    joins(group, "one", group_instance_id="i1", session_timeout=1000.0)
    joins(group, "two", group_instance_id="i2", session_timeout=1000.0)
    rejoins(group, "one", group_instance_id="i1", session_timeout=1000.0)
    syncs(group, "one", assignments={"two": b"2"})
    joins(group, "new", now=1.0, group_instance_id="i2", session_timeout=1000.0)

    group.advance(60.0)

    assert {"one", "new"} == {member.member_id for member in group.members}
