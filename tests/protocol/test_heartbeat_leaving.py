"""A member that leaves its group."""

import math

import pytest

from sharecons.errors import (
    Error,
    UnsupportedVersionError,
)
from sharecons.protocol.codes import Code
from sharecons.protocol.group.heartbeat import (
    State,
)
from sharecons.protocol.messages import (
    LEAVE_EPOCH,
)
from tests.protocol.membership_harness import (
    CONNECTION_LOST,
    NO_PARTITIONS,
    coordinator_response,
    error_response,
    heartbeat_response,
    joined_member,
    new_member,
    next_find_coordinator,
    next_heartbeat,
)
from tests.protocol.message_factories import P0, P1


def test_closing_sends_a_leave_and_finishes():
    membership = joined_member(epoch=3)

    membership.close(now=1.0)
    leave = next_heartbeat(membership, now=1.0)
    membership.on_response(leave, heartbeat_response(LEAVE_EPOCH), now=1.1)

    assert (LEAVE_EPOCH, None, None) == (leave.member_epoch, leave.topics, leave.rack)
    assert NO_PARTITIONS == membership.assignment
    assert membership.finished
    assert math.inf == membership.next_deadline(now=1.1)


def test_closing_before_subscribing_finishes_immediately():
    membership = new_member()

    membership.close(now=0.0)

    assert membership.finished


def test_closing_before_the_first_heartbeat_finishes_immediately():
    membership = new_member("orders")
    in_flight = next_find_coordinator(membership, now=0.0)

    membership.close(now=0.1)
    ended = membership.finished
    membership.on_response(in_flight, coordinator_response(), now=0.2)

    assert ended
    assert membership.next_request(now=0.3) is None


def test_second_close_does_nothing():
    membership = joined_member()
    membership.close(now=1.0)
    membership.on_response(
        next_heartbeat(membership, now=1.0), heartbeat_response(), now=1.1
    )

    membership.close(now=2.0)

    assert membership.finished


@pytest.mark.parametrize(
    "code", [Code.UNKNOWN_MEMBER_ID, Code.GROUP_ID_NOT_FOUND, Code.NOT_COORDINATOR, -1]
)
def test_member_is_finished_after_any_response_to_the_leave(code: int):
    membership = joined_member()
    membership.close(now=1.0)

    membership.on_response(
        next_heartbeat(membership, now=1.0), error_response(code), now=1.1
    )

    assert membership.finished
    assert membership.fatal_error is None


def test_lost_leave_is_not_repeated():
    membership = joined_member()
    membership.close(now=1.0)

    membership.on_error(next_heartbeat(membership, now=1.0), CONNECTION_LOST, now=1.1)

    assert membership.finished


def test_close_during_a_heartbeat_sends_the_leave_after_its_response():
    membership = joined_member(epoch=3)
    in_flight = next_heartbeat(membership, now=5.0)

    membership.close(now=5.1)
    membership.on_response(in_flight, heartbeat_response(4, P1), now=5.2)

    assert NO_PARTITIONS == membership.assignment
    assert LEAVE_EPOCH == next_heartbeat(membership, now=5.2).member_epoch


def test_close_during_the_join_sends_the_leave_after_its_response():
    membership = new_member("orders")
    membership.on_response(
        next_find_coordinator(membership, now=0.0), coordinator_response(), now=0.0
    )
    join = next_heartbeat(membership, now=0.0)

    membership.close(now=0.1)
    membership.on_response(join, heartbeat_response(1, P0), now=0.2)

    assert LEAVE_EPOCH == next_heartbeat(membership, now=0.2).member_epoch


def test_close_during_a_lost_heartbeat_sends_the_leave_once():
    membership = joined_member()
    in_flight = next_heartbeat(membership, now=5.0)

    membership.close(now=5.1)
    membership.on_error(in_flight, CONNECTION_LOST, now=5.2)
    leave = next_heartbeat(membership, now=5.2)
    membership.on_error(leave, CONNECTION_LOST, now=5.3)

    assert LEAVE_EPOCH == leave.member_epoch
    assert membership.finished


@pytest.mark.parametrize("lost", [False, True])
def test_close_after_the_coordinator_moved_looks_it_up_and_leaves(lost: bool):
    membership = joined_member()
    in_flight = next_heartbeat(membership, now=5.0)
    if lost:
        membership.on_error(in_flight, CONNECTION_LOST, now=5.0)
    else:
        membership.on_response(in_flight, error_response(Code.NOT_COORDINATOR), now=5.0)

    membership.close(now=5.01)
    membership.on_response(
        next_find_coordinator(membership, now=5.01), coordinator_response(), now=5.02
    )

    assert LEAVE_EPOCH == next_heartbeat(membership, now=5.02).member_epoch


@pytest.mark.parametrize(
    "result",
    [
        coordinator_response(Code.COORDINATOR_NOT_AVAILABLE),
        coordinator_response(Code.GROUP_AUTHORIZATION_FAILED),
        CONNECTION_LOST,
        UnsupportedVersionError("too old"),
    ],
)
def test_closing_finishes_if_the_coordinator_lookup_fails(result: object):
    membership = joined_member()
    membership.on_error(next_heartbeat(membership, now=5.0), CONNECTION_LOST, now=5.0)
    membership.close(now=5.01)

    lookup = next_find_coordinator(membership, now=5.01)
    if isinstance(result, Error):
        membership.on_error(lookup, result, now=5.02)
    else:
        membership.on_response(lookup, result, now=5.02)

    assert membership.finished
    assert membership.fatal_error is None


def test_subscribing_during_the_lookup_of_a_leave_ignores_its_error():
    membership = joined_member()
    membership.on_error(next_heartbeat(membership, now=5.0), CONNECTION_LOST, now=5.0)
    membership.subscribe((), now=5.01)
    lookup = next_find_coordinator(membership, now=5.01)

    membership.subscribe(("orders",), now=5.02)
    membership.on_response(
        lookup, coordinator_response(Code.GROUP_AUTHORIZATION_FAILED), now=5.03
    )

    assert State.JOINING == membership.state
    assert next_find_coordinator(membership, now=5.03)


def test_subscribing_after_the_close_does_nothing():
    membership = joined_member()
    membership.close(now=1.0)
    membership.on_response(
        next_heartbeat(membership, now=1.0), heartbeat_response(), now=1.1
    )

    membership.subscribe(("orders",), now=2.0)

    assert membership.finished
    assert membership.next_request(now=3.0) is None


def test_lost_request_after_leaving_changes_nothing():
    membership = new_member("orders")
    lookup = next_find_coordinator(membership, now=0.0)
    membership.subscribe((), now=0.1)

    membership.on_error(lookup, CONNECTION_LOST, now=0.2)

    assert State.OUT == membership.state
    assert math.inf == membership.next_deadline(now=0.2)
