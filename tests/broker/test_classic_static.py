"""Static members (KIP-345) that rejoin a classic group."""

import pytest

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.errors import GroupError
from sharecons.testing.broker.groups.classic import ClassicGroup, State
from tests.broker.classic_groups import error_of, join, rejoin, sync


def static_group(session_timeout=10.0):
    """Return a stable group of two static members; the first one is the leader."""
    group = ClassicGroup("g")
    timeout = {"session_timeout": session_timeout}
    join(group, "one", group_instance_id="i1", **timeout)
    join(group, "two", group_instance_id="i2", **timeout)
    rejoin(group, "one", group_instance_id="i1", **timeout)
    sync(group, "two")
    sync(group, "one", assignments={"one": b"1", "two": b"2"})
    return group


def test_static_member_joins_without_member_id_round():
    response = join(
        ClassicGroup("g"), "one", group_instance_id="i", id_required=True
    ).result

    assert (ErrorCode.none, "i") == (
        response.error,
        response.members[0].group_instance_id,
    )


def test_returning_static_follower_keeps_assignment_without_rebalance():
    group = static_group()
    before = group.generation_id

    response = join(group, "new", now=1.0, group_instance_id="i2").result

    assert (before, "new", "one", ()) == (
        response.generation_id,
        response.member_id,
        response.leader,
        response.members,
    )
    assert State.STABLE is group.state
    assert b"2" == sync(group, "new", now=1.0).result.assignment


def test_returning_static_leader_skips_assignment():
    group = static_group()

    response = join(group, "new", now=1.0, group_instance_id="i1").result

    assert (True, "new") == (response.skip_assignment, response.leader)
    assert {"new", "two"} == {each.member_id for each in response.members}
    assert b"1" == sync(group, "new", now=1.0).result.assignment


def test_returning_old_static_leader_becomes_follower():
    group = static_group()

    response = join(
        group, "new", now=1.0, group_instance_id="i1", may_skip_assignment=False
    ).result

    assert (False, "one", ()) == (
        response.skip_assignment,
        response.leader,
        response.members,
    )


def test_old_id_of_returning_static_member_is_fenced():
    group = static_group()
    join(group, "new", now=1.0, group_instance_id="i2")
    generation = group.generation_id

    fenced = ErrorCode.fenced_instance_id
    assert fenced is error_of(group.heartbeat, "two", "i2", generation, 1.0)
    assert fenced is error_of(sync, group, "two", group_instance_id="i2")
    assert fenced is rejoin(group, "two", group_instance_id="i2").result.error
    assert fenced is error_of(group.check_commit, "two", "i2", generation, 1.0)
    assert [fenced] == group.leave([("two", "i2")], 1.0)


def test_waiting_join_of_replaced_id_is_fenced():
    group = static_group()
    old = rejoin(group, "one", now=1.0, group_instance_id="i1")
    assert old.result is None

    join(group, "new", now=2.0, group_instance_id="i1")

    assert (ErrorCode.fenced_instance_id, "one") == (
        old.result.error,
        old.result.member_id,
    )


def test_waiting_sync_of_replaced_id_is_fenced():
    group = ClassicGroup("g")
    join(group, "one", group_instance_id="i1")
    join(group, "two", group_instance_id="i2")
    rejoin(group, "one", group_instance_id="i1")
    old = sync(group, "two")

    join(group, "new", group_instance_id="i2")

    assert ErrorCode.fenced_instance_id is old.result.error
    assert State.PREPARING is group.state


def test_static_rejoin_with_another_protocol_starts_a_rebalance():
    group = ClassicGroup("g")
    both = (("range", b""), ("sticky", b""))
    join(group, "one", group_instance_id="i", protocols=both)
    sync(group, "one", assignments={})

    response = join(
        group, "new", group_instance_id="i", protocols=(both[1], both[0])
    ).result

    assert ("sticky", 2) == (response.protocol_name, response.generation_id)


def test_returning_static_member_has_a_new_session():
    group = static_group()
    group.heartbeat("one", "i1", group.generation_id, 8.0)
    join(group, "new", now=9.0, group_instance_id="i2")

    group.advance(17.9)
    assert State.STABLE is group.state
    group.advance(19.0)

    assert State.EMPTY is group.state


def test_late_static_members_stay_until_their_session_ends():
    group = static_group(session_timeout=100.0)
    one = rejoin(group, "one", now=1.0, group_instance_id="i1", session_timeout=100.0)

    group.advance(61.0)

    assert {"one", "two"} == {each.member_id for each in one.result.members}


def test_group_of_absent_static_members_waits_for_their_sessions():
    group = static_group(session_timeout=100.0)
    three = join(group, "three", now=1.0)
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
    join(group, "one", group_instance_id="i1", session_timeout=1000.0)
    join(group, "two", group_instance_id="i2", session_timeout=1000.0)
    rejoin(group, "one", group_instance_id="i1", session_timeout=1000.0)
    sync(group, "one", assignments={"two": b"2"})
    join(group, "new", now=1.0, group_instance_id="i2", session_timeout=1000.0)

    group.advance(60.0)

    assert {"one", "new"} == {member.member_id for member in group.members}
