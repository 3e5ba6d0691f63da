"""Rebalances of a classic group: join, sync, leave."""

import pytest

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.errors import GroupError
from sharecons.testing.broker.groups.classic import ClassicGroup, State
from tests.broker.classic_groups import error_of, join, rejoin, stable_group, sync


def test_pending_id_expires_with_the_session_timeout():
    group = ClassicGroup("g")
    join(group, "one", id_required=True)

    response = rejoin(group, "one", now=10.0).result

    assert (ErrorCode.unknown_member_id, "one") == (response.error, response.member_id)


def test_initial_delay_puts_members_into_one_generation():
    group = ClassicGroup("g", initial_delay=3.0)
    one = join(group, "one", now=0.0)
    two = join(group, "two", now=1.0)

    group.advance(3.0)
    assert one.result is None
    group.advance(6.0)

    assert (1, 2) == (one.result.generation_id, len(one.result.members))
    assert (1, ()) == (two.result.generation_id, two.result.members)


def test_initial_delay_is_limited_by_rebalance_timeout():
    group = ClassicGroup("g", initial_delay=3.0)
    first = join(group, "0", rebalance_timeout=7.0)

    for second in range(1, 7):
        join(group, str(second), float(second), rebalance_timeout=7.0)
        assert first.result is None
    group.advance(7.0)

    assert (1, 7) == (first.result.generation_id, len(first.result.members))


def test_member_that_does_not_rejoin_in_time_is_removed():
    group = stable_group("one", session_timeout=100.0)
    two = join(group, "two", now=1.0)

    group.advance(60.9)
    assert two.result is None
    group.advance(61.0)

    assert ("two", ["two"]) == (
        two.result.leader,
        [each.member_id for each in two.result.members],
    )
    assert ErrorCode.unknown_member_id is error_of(
        group.heartbeat, "one", None, 1, 61.0
    )


def test_longest_rebalance_timeout_is_used():
    group = stable_group("one", rebalance_timeout=120.0, session_timeout=500.0)
    two = join(group, "two", now=0.0, rebalance_timeout=1.0)

    group.advance(119.0)
    assert two.result is None
    group.advance(120.0)

    assert 2 == two.result.generation_id


def test_expired_pending_id_does_not_block_the_rebalance():
    group = stable_group("one", session_timeout=100.0)
    join(group, "two", now=0.0, id_required=True, session_timeout=5.0)
    one = rejoin(group, "one", now=1.0, session_timeout=100.0)

    assert one.result is None
    group.advance(5.0)

    assert 2 == one.result.generation_id


def test_expired_member_is_removed_and_others_rebalance():
    group = stable_group("one", "two")
    group.heartbeat("two", None, group.generation_id, 9.0)

    group.advance(10.0)

    assert State.PREPARING is group.state
    assert ["two"] == [member.member_id for member in group.members]
    assert ErrorCode.rebalance_in_progress is error_of(
        group.heartbeat, "two", None, group.generation_id, 11.0
    )


def test_waiting_member_does_not_expire():
    group = stable_group("one", "two", rebalance_timeout=300.0)
    one = rejoin(group, "one", now=1.0, rebalance_timeout=300.0)

    for second in range(5, 100, 5):
        with pytest.raises(GroupError):
            group.heartbeat("two", None, group.generation_id, float(second))
    assert one.result is None
    rejoin(group, "two", now=100.0, rebalance_timeout=300.0)

    assert 2 == len(one.result.members)


def test_waiting_new_member_expires_after_five_minutes():
    group = stable_group("one", rebalance_timeout=1000.0, session_timeout=1000.0)
    two = join(group, "two", now=0.0)

    group.advance(299.0)
    assert two.result is None
    group.advance(300.0)

    assert ErrorCode.unknown_member_id is two.result.error


def test_group_is_empty_after_all_sessions_expire():
    group = stable_group("one", "two", "three")

    group.advance(1000.0)

    assert (State.EMPTY, []) == (group.state, list(group.members))
    assert ("consumer", None) == (group.protocol_type, group.protocol_name)


def test_member_without_assignment_gets_empty_assignment():
    group = ClassicGroup("g")
    join(group, "one")

    assert b"" == sync(group, "one", assignments={"other": b"1"}).result.assignment


def test_members_without_sync_are_removed_after_rebalance_timeout():
    group = ClassicGroup("g")
    join(group, "one", session_timeout=1000.0)
    join(group, "two", session_timeout=1000.0)
    rejoin(group, "one", session_timeout=1000.0)
    sync(group, "one", now=1.0, assignments={})

    group.advance(60.0)

    assert (State.PREPARING, ["one"]) == (
        group.state,
        [member.member_id for member in group.members],
    )


def test_rebalance_fails_waiting_syncs():
    group = ClassicGroup("g")
    join(group, "one")
    join(group, "two")
    rejoin(group, "one")
    waits = sync(group, "two")

    join(group, "three", now=1.0)

    assert ErrorCode.rebalance_in_progress is waits.result.error


def test_follower_rejoin_with_new_subscription_starts_a_rebalance():
    group = stable_group("one", "two")

    rejoin(group, "two", now=1.0, protocols=(("range", b"other"),))

    assert State.PREPARING is group.state


def test_last_leave_empties_the_group_in_a_new_generation():
    group = stable_group("one")

    group.leave([("one", None)], now=1.0)

    assert (State.EMPTY, 2) == (group.state, group.generation_id)
    assert ErrorCode.unknown_member_id is rejoin(group, "one").result.error


def test_leave_fails_waiting_join_of_the_member():
    group = stable_group("one")
    two = join(group, "two", now=1.0)

    group.leave([("two", None)], now=2.0)

    assert ErrorCode.unknown_member_id is two.result.error


def test_protocol_preferred_by_most_members_is_chosen():
    group = stable_group("one", protocols=(("range", b""), ("sticky", b"")))
    join(group, "two", protocols=(("sticky", b"2"), ("range", b"")))
    join(group, "three", protocols=(("sticky", b"3"), ("range", b"")))
    response = rejoin(
        group, "one", protocols=(("range", b""), ("sticky", b"1"), ("other", b""))
    ).result

    assert "sticky" == response.protocol_name
    assert [b"1", b"2", b"3"] == [each.metadata for each in response.members]


def test_empty_group_accepts_another_protocol_type():
    group = stable_group("one")
    group.leave([("one", None)], now=1.0)

    response = join(group, "two", now=2.0, protocol_type="connect").result

    assert ("connect", 3) == (response.protocol_type, response.generation_id)


def test_heartbeats_extend_the_session():
    group = stable_group("one")

    for second in range(9, 100, 9):
        group.heartbeat("one", None, 1, float(second))

    assert State.STABLE is group.state


def test_dropped_join_can_be_repeated():
    group = stable_group("one")
    two = join(group, "two", now=1.0)

    group.drop_request(two, now=2.0)
    one = rejoin(group, "one", now=3.0)
    assert one.result is None
    rejoin(group, "two", now=4.0)

    assert ["one", "two"] == [each.member_id for each in one.result.members]


def test_protocol_must_be_supported_by_all_members():
    group = stable_group("one", protocols=(("other", b""), ("range", b"")))
    join(group, "two", protocols=(("another", b""), ("range", b"")))

    response = rejoin(group, "one", protocols=(("other", b""), ("range", b""))).result
    third = join(group, "three", protocols=(("other", b""),)).result

    assert "range" == response.protocol_name
    assert ErrorCode.inconsistent_group_protocol is third.error


def test_full_group_accepts_rejoin_of_waiting_members():
    group = ClassicGroup("g", initial_delay=3.0, max_size=1)
    join(group, "one")

    again = rejoin(group, "one", now=1.0)
    two = join(group, "two", now=1.0).result
    group.advance(3.0)

    assert ErrorCode.group_max_size_reached is two.error
    assert ErrorCode.none is again.result.error


def test_rebalance_before_sync_clears_assignments():
    group = stable_group("one", "two")
    rejoin(group, "one")
    rejoin(group, "two")
    assert [b"one", b"two"] == [member.assignment for member in group.members]

    join(group, "three")

    assert [b"", b"", b""] == [member.assignment for member in group.members]


def test_member_that_has_only_its_id_can_leave():
    group = stable_group("one")
    join(group, "given", id_required=True)

    assert [ErrorCode.none] == group.leave([("given", None)], now=1.0)
    assert ["one"] == [member.member_id for member in group.members]
