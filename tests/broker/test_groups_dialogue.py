"""Requests of members of classic groups.

The embedded broker and a real Kafka return the same responses.
"""

import pytest
from kio.schema.errors import ErrorCode

from tests.broker.group_talk import (
    GroupTalk,
    Member,
    stable,
    until_described,
    until_rebalancing,
)


@pytest.fixture
def talk(any_kafka):
    talk = GroupTalk(any_kafka)
    yield talk
    talk.close()


def test_only_member_joins_syncs_and_commits(talk):
    member = Member(talk)

    member.send_join()
    first = member.joined()
    assert ErrorCode.member_id_required is first.error_code
    assert first.member_id.startswith("test-")
    # A real Kafka responds before the group is written, and lists it after.
    until_described(talk, "Empty")
    joined = member.join()

    assert (ErrorCode.none, 1, "consumer", "range", False) == (
        joined.error_code,
        joined.generation_id,
        joined.protocol_type,
        joined.protocol_name,
        joined.skip_assignment,
    )
    assert joined.leader == joined.member_id == first.member_id
    assert [member.id] == [each.member_id for each in joined.members]
    assert ErrorCode.none is member.beat()
    (described,) = talk.describe()
    assert ("CompletingRebalance", "consumer", "", b"") == (
        described.group_state,
        described.protocol_type,
        described.protocol_data,
        described.members[0].member_metadata,
    )
    assert ErrorCode.rebalance_in_progress is talk.commit(1, 1, member.id)
    synced = member.sync({member.id: b"mine"})
    assert (b"mine", "consumer", "range") == (
        synced.assignment,
        synced.protocol_type,
        synced.protocol_name,
    )
    assert ErrorCode.none is talk.commit(1, 1, member.id)


def test_invalid_joins_are_rejected(talk):
    member = Member(talk)
    stranger = Member(talk)

    def error(**fields):
        stranger.id = ""
        stranger.send_join(**fields)
        response = stranger.joined()
        assert (-1, None, None, "", ()) == (
            response.generation_id,
            response.protocol_type,
            response.protocol_name,
            response.leader,
            response.members,
        )
        return response.error_code, response.member_id

    assert (ErrorCode.invalid_group_id, "") == error(group_id="")
    assert (ErrorCode.invalid_session_timeout, "") == error(session_timeout=5999)
    assert (ErrorCode.invalid_session_timeout, "") == error(session_timeout=1800001)
    assert (ErrorCode.unknown_member_id, "x") == error(member_id="x")
    assert (ErrorCode.inconsistent_group_protocol, "") == error(protocols=[])
    assert (ErrorCode.inconsistent_group_protocol, "") == error(protocol_type="")
    member.join()
    assert (ErrorCode.unknown_member_id, "x") == error(member_id="x")
    assert (ErrorCode.inconsistent_group_protocol, "") == error(
        protocols=[{"name": "sticky", "metadata": b""}]
    )
    assert (ErrorCode.inconsistent_group_protocol, "") == error(protocol_type="other")


@pytest.mark.parametrize("version", range(10))
def test_member_joins_in_every_version(talk, version):
    (member,) = stable(talk, 1, (None,), version)

    assert (1, ErrorCode.none) == (member.generation, member.beat())


def test_joining_and_leaving_members_start_rebalances(talk):
    one, two = Member(talk), Member(talk)
    one.join()
    one.sync({one.id: b"all"})

    two.start_join()
    until_rebalancing(one)
    assert ["PreparingRebalance"] == [g.group_state for g in talk.describe()]
    assert ErrorCode.rebalance_in_progress is one.sync().error_code
    assert ErrorCode.none is talk.commit(1, one.generation, one.id)
    assert not two.client.has_response()
    leads, follows = one.join(), two.joined()

    assert {one.id, two.id} == {each.member_id for each in leads.members}
    assert (2, one.id, ()) == (
        follows.generation_id,
        follows.leader,
        follows.members,
    )
    two.send_sync()
    assert ErrorCode.none is one.beat()
    assert not two.client.has_response()
    assert b"1" == one.sync({one.id: b"1", two.id: b"2"}).assignment
    assert b"2" == two.client.receive().assignment
    assert [ErrorCode.none] == one.leave()
    assert ErrorCode.rebalance_in_progress is two.beat()
    alone = two.join()
    assert (3, two.id) == (alone.generation_id, alone.leader)


def test_invalid_syncs_are_rejected(talk):
    (one,) = stable(talk, 1, (None,))

    def error(**fields):
        return one.sync(**fields).error_code

    assert ErrorCode.illegal_generation is error(generation_id=9)
    assert ErrorCode.unknown_member_id is error(member_id="x")
    assert ErrorCode.unknown_member_id is error(group_id="unknown")
    assert ErrorCode.invalid_group_id is error(group_id="")
    assert ErrorCode.inconsistent_group_protocol is error(protocol_name="sticky")
    assert ErrorCode.inconsistent_group_protocol is error(protocol_type="other")
    assert ErrorCode.inconsistent_group_protocol is error(protocol_name=None)
    assert ErrorCode.none is error()


def test_invalid_heartbeats_are_rejected(talk):
    (one,) = stable(talk, 1, (None,))

    assert ErrorCode.none is one.beat()
    assert ErrorCode.illegal_generation is one.beat(generation_id=9)
    assert ErrorCode.unknown_member_id is one.beat(member_id="x")
    assert ErrorCode.unknown_member_id is one.beat(group_instance_id="x")
    assert ErrorCode.unknown_member_id is one.beat(group_id="unknown")
    assert ErrorCode.invalid_group_id is one.beat(group_id="")


def test_rejoin_of_leader_starts_a_rebalance_and_of_follower_does_not(talk):
    one, two = stable(talk)
    before = two.generation

    follower = two.join()
    assert (before, ErrorCode.none) == (follower.generation_id, follower.error_code)
    assert ErrorCode.none is one.beat()
    one.send_join()
    until_rebalancing(two)
    assert before + 1 == two.join().generation_id
    assert before + 1 == one.joined().generation_id
    again = one.join()
    assert (before + 1, 2) == (again.generation_id, len(again.members))


def test_returning_static_follower_keeps_its_assignment(talk):
    one, two = stable(talk, instances=("i1", "i2"))
    old = two.id
    new = Member(talk, "i2")

    response = new.join()

    assert (two.generation, one.id, False) == (
        response.generation_id,
        response.leader,
        response.skip_assignment,
    )
    assert new.id.startswith("i2-")
    assert new.id != old
    assert ErrorCode.fenced_instance_id is two.beat()
    assert [ErrorCode.fenced_instance_id] == two.leave()
    assert ErrorCode.none is one.beat()
    assert old[-4:].encode() == new.sync().assignment


@pytest.mark.parametrize("version", [8, 9])
def test_returning_static_leader_leads_since_version_9(talk, version):
    one, two = stable(talk, instances=("i1", "i2"))
    new = Member(talk, "i1", version)

    response = new.join()

    if version == 9:
        assert (True, new.id) == (response.skip_assignment, response.leader)
        assert {new.id, two.id} == {each.member_id for each in response.members}
    else:
        assert (one.id, ()) == (response.leader, response.members)
    assert ErrorCode.none is two.beat()


def test_leave_returns_an_error_for_each_member(talk):
    one, _ = stable(talk, instances=("i1", "i2"))
    unknown, none = ErrorCode.unknown_member_id, ErrorCode.none
    fenced = ErrorCode.fenced_instance_id

    codes = one.leave(("x", None), ("", "i9"), ("", None), ("x", "i1"), ("", "i2"))

    assert [unknown, unknown, unknown, fenced, none] == codes
    assert [none] == one.leave()
    assert [unknown] == one.leave()
    (described,) = talk.describe()
    assert ("Empty", "consumer", ()) == (
        described.group_state,
        described.protocol_type,
        described.members,
    )


def test_waiting_sync_of_removed_member_never_gets_a_response(talk):
    assert not all(removed_member_gets_a_response(talk) for _ in range(10))


def removed_member_gets_a_response(talk):
    """Return whether the response came; it does if the leave request arrived first."""
    one, two = stable(talk, instances=("i1", "i2"))
    one.send_join()
    until_rebalancing(two)
    two.join()
    one.joined()
    two.send_sync()

    assert ErrorCode.none is one.beat()
    assert [ErrorCode.none] == one.leave(("", "i2"))
    assert ErrorCode.rebalance_in_progress is one.beat()
    has_response = two.client.has_response()
    if has_response:
        assert ErrorCode.unknown_member_id is two.client.receive().error_code
    assert [ErrorCode.none] == one.leave()
    return has_response


def test_disconnect_during_join_keeps_the_member(talk):
    (one,) = stable(talk, 1, (None,))
    two = Member(talk)
    two.start_join()
    until_rebalancing(one)

    two.client.__exit__()
    joined = one.join()

    assert {one.id, two.id} == {each.member_id for each in joined.members}


def test_pending_id_with_instance_id_is_an_error(talk):
    member = Member(talk)
    member.send_join()
    member.joined()

    member.send_join(group_instance_id="i")

    assert ErrorCode.unknown_server_error is member.joined().error_code


def test_deletion_between_join_rounds_rejects_the_second_join(talk):
    member = Member(talk)
    member.send_join()
    member.joined()

    assert {talk.group: ErrorCode.none} == talk.delete(talk.group)
    member.send_join()

    assert ErrorCode.unknown_member_id is member.joined().error_code
