"""Static members (KIP-345) that rejoin a classic group."""

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.groups.classic import ClassicGroup, State
from tests.broker.classic_groups import join, rejoin, sync


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


def test_replaced_id_without_sync_removes_no_member():
    group = ClassicGroup("g")
    join(group, "one", group_instance_id="i1", session_timeout=1000.0)
    join(group, "two", group_instance_id="i2", session_timeout=1000.0)
    rejoin(group, "one", group_instance_id="i1", session_timeout=1000.0)
    sync(group, "one", assignments={"two": b"2"})
    join(group, "new", now=1.0, group_instance_id="i2", session_timeout=1000.0)

    group.advance(60.0)

    assert {"one", "new"} == {member.member_id for member in group.members}
