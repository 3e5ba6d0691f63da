"""Rebalances of a classic group: join, sync, leave."""

import pytest

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.groups.classic import (
    ClassicGroup,
    JoinRequest,
    State,
    SyncRequest,
)
from sharecons.testing.broker.groups.errors import GroupError

RANGE = (("range", b"r"),)


def request(member_id="", **asked):
    return JoinRequest(
        **{
            "member_id": member_id,
            "new_id": "unknown",
            "session_timeout": 10.0,
            "rebalance_timeout": 60.0,
            "protocol_type": "consumer",
            "protocols": RANGE,
            "id_required": False,
            **asked,
        }
    )


def joins(group, name, now=0.0, **asked):
    """Join as a new member, with its assigned id."""
    return group.join(request(new_id=name, **asked), now)


def rejoins(group, name, now=0.0, **asked):
    return group.join(request(name, **asked), now)


def syncs(group, name, now=0.0, assignments=None, **asked):
    asked = {"generation_id": group.generation_id, **asked}
    return group.sync(
        SyncRequest(member_id=name, assignments=assignments or {}, **asked), now
    )


def stable(*names, now=0.0, **asked):
    """Return a group of these members; the first one is the leader."""
    group = ClassicGroup("g")
    for name in names:
        joins(group, name, now, **asked)
        for other in names[: names.index(name)]:
            rejoins(group, other, now, **asked)
    assignments = {name: name.encode() for name in names}
    for name in reversed(names):
        syncs(group, name, now, assignments)
    assert State.STABLE is group.state
    return group


def refused(call, *args, **kwargs):
    with pytest.raises(GroupError) as caught:
        call(*args, **kwargs)
    return caught.value.code


def test_first_member_becomes_leader_at_once():
    group = ClassicGroup("g")

    answer = joins(group, "one").result

    assert (ErrorCode.none, 1, "one", "one") == (
        answer.error,
        answer.generation_id,
        answer.leader,
        answer.member_id,
    )
    assert [("one", None, b"r")] == list(answer.members)
    assert State.COMPLETING is group.state


def test_new_member_must_rejoin_with_its_assigned_id():
    group = ClassicGroup("g")

    first = joins(group, "one", id_required=True).result
    second = rejoins(group, "one", id_required=True).result

    assert (ErrorCode.member_id_required, "one") == (first.error, first.member_id)
    assert (ErrorCode.none, 1) == (second.error, second.generation_id)


def test_pending_id_expires_with_the_session_timeout():
    group = ClassicGroup("g")
    joins(group, "one", id_required=True)

    answer = rejoins(group, "one", now=10.0).result

    assert (ErrorCode.unknown_member_id, "one") == (answer.error, answer.member_id)


def test_initial_delay_puts_members_into_one_generation():
    group = ClassicGroup("g", initial_delay=3.0)
    one = joins(group, "one", now=0.0)
    two = joins(group, "two", now=1.0)

    group.advance(3.0)
    assert one.result is None
    group.advance(6.0)

    assert (1, 2) == (one.result.generation_id, len(one.result.members))
    assert (1, ()) == (two.result.generation_id, two.result.members)


def test_initial_delay_is_limited_by_rebalance_timeout():
    group = ClassicGroup("g", initial_delay=3.0)
    first = joins(group, "0", rebalance_timeout=7.0)

    for second in range(1, 7):
        joins(group, str(second), float(second), rebalance_timeout=7.0)
        assert first.result is None
    group.advance(7.0)

    assert (1, 7) == (first.result.generation_id, len(first.result.members))


def test_second_member_waits_for_first_to_rejoin():
    group = stable("one")

    two = joins(group, "two", now=1.0)
    assert (None, State.PREPARING) == (two.result, group.state)
    one = rejoins(group, "one", now=2.0)

    assert ["one", "two"] == [each.member_id for each in one.result.members]
    assert (2, "one", ()) == (
        two.result.generation_id,
        two.result.leader,
        two.result.members,
    )


def test_member_that_does_not_rejoin_in_time_is_removed():
    group = stable("one", session_timeout=100.0)
    two = joins(group, "two", now=1.0)

    group.advance(60.9)
    assert two.result is None
    group.advance(61.0)

    assert ("two", ["two"]) == (
        two.result.leader,
        [each.member_id for each in two.result.members],
    )
    assert ErrorCode.unknown_member_id is refused(group.heartbeat, "one", None, 1, 61.0)


def test_longest_rebalance_timeout_is_used():
    group = stable("one", rebalance_timeout=120.0, session_timeout=500.0)
    two = joins(group, "two", now=0.0, rebalance_timeout=1.0)

    group.advance(119.0)
    assert two.result is None
    group.advance(120.0)

    assert 2 == two.result.generation_id


def test_expired_pending_id_does_not_block_the_rebalance():
    group = stable("one", session_timeout=100.0)
    joins(group, "two", now=0.0, id_required=True, session_timeout=5.0)
    one = rejoins(group, "one", now=1.0, session_timeout=100.0)

    assert one.result is None
    group.advance(5.0)

    assert 2 == one.result.generation_id


def test_expired_member_is_removed_and_others_rebalance():
    group = stable("one", "two")
    group.heartbeat("two", None, group.generation_id, 9.0)

    group.advance(10.0)

    assert State.PREPARING is group.state
    assert ["two"] == [member.member_id for member in group.members]
    assert ErrorCode.rebalance_in_progress is refused(
        group.heartbeat, "two", None, group.generation_id, 11.0
    )


def test_waiting_member_does_not_expire():
    group = stable("one", "two", rebalance_timeout=300.0)
    one = rejoins(group, "one", now=1.0, rebalance_timeout=300.0)

    for second in range(5, 100, 5):
        with pytest.raises(GroupError):
            group.heartbeat("two", None, group.generation_id, float(second))
    assert one.result is None
    rejoins(group, "two", now=100.0, rebalance_timeout=300.0)

    assert 2 == len(one.result.members)


def test_waiting_new_member_expires_after_five_minutes():
    group = stable("one", rebalance_timeout=1000.0, session_timeout=1000.0)
    two = joins(group, "two", now=0.0)

    group.advance(299.0)
    assert two.result is None
    group.advance(300.0)

    assert ErrorCode.unknown_member_id is two.result.error


def test_group_is_empty_after_all_sessions_expire():
    group = stable("one", "two", "three")

    group.advance(1000.0)

    assert (State.EMPTY, []) == (group.state, list(group.members))
    assert ("consumer", None) == (group.protocol_type, group.protocol_name)


def test_leader_sync_assigns_all_members():
    group = ClassicGroup("g")
    joins(group, "one")
    two = joins(group, "two")
    rejoins(group, "one")

    waits = syncs(group, "two")
    assert waits.result is None
    leads = syncs(group, "one", assignments={"one": b"1", "two": b"2"})

    assert 2 == two.result.generation_id
    assert (b"1", "consumer", "range") == (
        leads.result.assignment,
        leads.result.protocol_type,
        leads.result.protocol_name,
    )
    assert b"2" == waits.result.assignment
    assert State.STABLE is group.state


def test_member_without_assignment_gets_empty_assignment():
    group = ClassicGroup("g")
    joins(group, "one")

    assert b"" == syncs(group, "one", assignments={"other": b"1"}).result.assignment


def test_stable_group_repeats_assignments():
    group = stable("one", "two")

    assert b"two" == syncs(group, "two", now=1.0).result.assignment


def test_members_without_sync_are_removed_after_rebalance_timeout():
    group = ClassicGroup("g")
    joins(group, "one", session_timeout=1000.0)
    joins(group, "two", session_timeout=1000.0)
    rejoins(group, "one", session_timeout=1000.0)
    syncs(group, "one", now=1.0, assignments={})

    group.advance(60.0)

    assert (State.PREPARING, ["one"]) == (
        group.state,
        [member.member_id for member in group.members],
    )


def test_rebalance_fails_waiting_syncs():
    group = ClassicGroup("g")
    joins(group, "one")
    joins(group, "two")
    rejoins(group, "one")
    waits = syncs(group, "two")

    joins(group, "three", now=1.0)

    assert ErrorCode.rebalance_in_progress is waits.result.error


def test_sync_with_wrong_generation_protocol_or_state_is_rejected():
    group = stable("one")

    assert ErrorCode.illegal_generation is refused(syncs, group, "one", generation_id=9)
    assert ErrorCode.inconsistent_group_protocol is refused(
        syncs, group, "one", protocol_type="connect"
    )
    assert ErrorCode.inconsistent_group_protocol is refused(
        syncs, group, "one", protocol_name="sticky"
    )
    assert ErrorCode.unknown_member_id is refused(syncs, group, "two")
    joins(group, "two")
    assert ErrorCode.rebalance_in_progress is refused(syncs, group, "one")


def test_leader_rejoin_starts_a_rebalance():
    group = stable("one", "two")

    reply = rejoins(group, "one", now=1.0)

    assert (None, State.PREPARING) == (reply.result, group.state)


def test_unchanged_follower_rejoin_returns_current_generation():
    group = stable("one", "two")
    before = group.generation_id

    answer = rejoins(group, "two", now=1.0).result

    assert (before, "one", ()) == (answer.generation_id, answer.leader, answer.members)
    assert State.STABLE is group.state


def test_follower_rejoin_with_new_subscription_starts_a_rebalance():
    group = stable("one", "two")

    rejoins(group, "two", now=1.0, protocols=(("range", b"other"),))

    assert State.PREPARING is group.state


def test_repeated_join_before_assignment_is_answered():
    group = ClassicGroup("g")
    first = joins(group, "one")

    again = rejoins(group, "one")

    assert first.result == again.result


def test_leave_starts_a_rebalance_with_next_leader():
    group = stable("one", "two")

    codes = group.leave([("one", None)], now=1.0)
    answer = rejoins(group, "two", now=1.0).result

    assert [ErrorCode.none] == codes
    assert ("two", ["two"]) == (
        answer.leader,
        [each.member_id for each in answer.members],
    )


def test_last_leave_empties_the_group_in_a_new_generation():
    group = stable("one")

    group.leave([("one", None)], now=1.0)

    assert (State.EMPTY, 2) == (group.state, group.generation_id)
    assert ErrorCode.unknown_member_id is rejoins(group, "one").result.error


def test_leave_returns_an_error_per_member():
    group = stable("one", "two")
    joins(group, "given", id_required=True)

    codes = group.leave(
        [("unknown", None), ("given", None), ("", "i"), ("two", "i")], 1
    )

    unknown = ErrorCode.unknown_member_id
    assert [unknown, ErrorCode.none, unknown, unknown] == codes
    assert 2 == len(group.members)


def test_leave_fails_waiting_join_of_the_member():
    group = stable("one")
    two = joins(group, "two", now=1.0)

    group.leave([("two", None)], now=2.0)

    assert ErrorCode.unknown_member_id is two.result.error


def test_protocol_preferred_by_most_members_is_chosen():
    group = stable("one", protocols=(("range", b""), ("sticky", b"")))
    joins(group, "two", protocols=(("sticky", b"2"), ("range", b"")))
    joins(group, "three", protocols=(("sticky", b"3"), ("range", b"")))
    answer = rejoins(
        group, "one", protocols=(("range", b""), ("sticky", b"1"), ("other", b""))
    ).result

    assert "sticky" == answer.protocol_name
    assert [b"1", b"2", b"3"] == [each.metadata for each in answer.members]


@pytest.mark.parametrize(
    "asked",
    [
        {"protocols": (("sticky", b""),)},
        {"protocols": ()},
        {"protocol_type": "connect"},
        {"protocol_type": ""},
    ],
)
def test_member_without_common_protocol_is_rejected(asked):
    group = stable("one")

    answer = joins(group, "two", **asked).result

    assert ErrorCode.inconsistent_group_protocol is answer.error
    assert State.STABLE is group.state


@pytest.mark.parametrize("asked", [{"protocols": ()}, {"protocol_type": ""}])
def test_empty_group_requires_a_protocol(asked):
    answer = joins(ClassicGroup("g"), "one", **asked).result

    assert ErrorCode.inconsistent_group_protocol is answer.error


def test_empty_group_accepts_another_protocol_type():
    group = stable("one")
    group.leave([("one", None)], now=1.0)

    answer = joins(group, "two", now=2.0, protocol_type="connect").result

    assert ("connect", 3) == (answer.protocol_type, answer.generation_id)


def test_full_group_rejects_new_members():
    group = ClassicGroup("g", max_size=1)
    joins(group, "one")
    syncs(group, "one")

    two = joins(group, "two").result
    one = rejoins(group, "one").result

    assert (ErrorCode.group_max_size_reached, "") == (two.error, two.member_id)
    assert ErrorCode.none is one.error


def test_heartbeat_from_unknown_member_or_generation_is_rejected():
    group = stable("one")

    assert ErrorCode.illegal_generation is refused(group.heartbeat, "one", None, 9, 0.0)
    assert ErrorCode.unknown_member_id is refused(group.heartbeat, "two", None, 1, 0.0)


def test_heartbeats_extend_the_session():
    group = stable("one")

    for second in range(9, 100, 9):
        group.heartbeat("one", None, 1, float(second))

    assert State.STABLE is group.state


def test_changed_is_notified_with_replies():
    group = stable("one")
    notified = []
    group.changed.notify = lambda: notified.append(group.generation_id)
    joins(group, "two", now=1.0)
    notified.clear()

    rejoins(group, "one", now=2.0)

    assert 2 in notified


def test_dropped_join_can_be_repeated():
    group = stable("one")
    two = joins(group, "two", now=1.0)

    group.drop_request(two, now=2.0)
    one = rejoins(group, "one", now=3.0)
    assert one.result is None
    rejoins(group, "two", now=4.0)

    assert ["one", "two"] == [each.member_id for each in one.result.members]


def test_protocol_must_be_supported_by_all_members():
    group = stable("one", protocols=(("other", b""), ("range", b"")))
    joins(group, "two", protocols=(("another", b""), ("range", b"")))

    answer = rejoins(group, "one", protocols=(("other", b""), ("range", b""))).result
    third = joins(group, "three", protocols=(("other", b""),)).result

    assert "range" == answer.protocol_name
    assert ErrorCode.inconsistent_group_protocol is third.error


def test_full_group_accepts_rejoin_of_waiting_members():
    group = ClassicGroup("g", initial_delay=3.0, max_size=1)
    joins(group, "one")

    again = rejoins(group, "one", now=1.0)
    two = joins(group, "two", now=1.0).result
    group.advance(3.0)

    assert ErrorCode.group_max_size_reached is two.error
    assert ErrorCode.none is again.result.error


def test_rebalance_before_sync_clears_assignments():
    group = stable("one", "two")
    rejoins(group, "one")
    rejoins(group, "two")
    assert [b"one", b"two"] == [member.assignment for member in group.members]

    joins(group, "three")

    assert [b"", b"", b""] == [member.assignment for member in group.members]
