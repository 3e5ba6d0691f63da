"""A member that leaves its group."""

import math
from typing import Any

import pytest

from sharecons.errors import AuthenticationError, Error, UnsupportedVersionError
from sharecons.protocol.codes import Code
from sharecons.protocol.group.heartbeat import Membership, Request
from sharecons.protocol.group.messages import LEAVE_EPOCH
from sharecons.protocol.group.states import State
from tests.protocol.membership_harness import (
    CONNECTION_LOST,
    NO_PARTITIONS,
    coordinator_response,
    error_response,
    exchange_find_coordinator,
    exchange_heartbeat,
    heartbeat_response,
    joined_member,
    new_member,
    next_find_coordinator,
    next_heartbeat,
    next_request,
)


def fail(membership: Membership, request: Request, failure: Any, now: float) -> None:
    """Fail a request with an error of its connection, or with a response."""
    if isinstance(failure, Error):
        membership.on_error(request, failure, now)
    else:
        membership.on_response(request, failure, now)


def test_closing_sends_a_leave_and_finishes():
    membership = joined_member(epoch=3)

    membership.close(now=1.0)
    leave = next_heartbeat(membership, now=1.0)
    membership.on_response(leave, heartbeat_response(LEAVE_EPOCH), now=1.1)

    assert (LEAVE_EPOCH, None, None) == (leave.member_epoch, leave.topics, leave.rack)
    assert NO_PARTITIONS == membership.assignment
    assert membership.finished
    assert math.inf == membership.next_deadline(now=1.1)


def test_closing_before_the_first_heartbeat_finishes_immediately():
    membership = new_member("orders")
    in_flight = next_find_coordinator(membership, now=0.0)

    membership.close(now=0.1)
    ended = membership.finished
    membership.on_response(in_flight, coordinator_response(), now=0.2)

    assert ended
    assert membership.next_request(now=0.3) is None


@pytest.mark.parametrize(
    "code",
    [
        Code.UNKNOWN_MEMBER_ID,
        Code.GROUP_ID_NOT_FOUND,
        Code.GROUP_AUTHORIZATION_FAILED,
    ],
)
def test_member_is_finished_after_a_lasting_error_of_the_leave(code: int):
    membership = joined_member()
    membership.close(now=1.0)

    exchange_heartbeat(membership, error_response(code), now=1.0, received_at=1.1)

    assert membership.finished
    assert membership.fatal_error is None


@pytest.mark.parametrize(
    "failure",
    [
        error_response(Code.NOT_COORDINATOR),
        error_response(Code.COORDINATOR_NOT_AVAILABLE),
        error_response(Code.COORDINATOR_LOAD_IN_PROGRESS),
        error_response(-1),
        CONNECTION_LOST,
    ],
)
def test_leave_is_repeated_with_a_backoff_after_a_passing_error(failure: object):
    membership = joined_member()
    membership.close(now=1.0)
    now, pauses = 1.0, []

    for _ in range(4):
        fail(membership, next_heartbeat(membership, now), failure, now)
        assert membership.next_request(now) is None
        pauses.append(membership.next_deadline(now) - now)
        now += pauses[-1]
        lookup = next_find_coordinator(membership, now)
        membership.on_response(lookup, coordinator_response(), now)
    leave = next_heartbeat(membership, now)
    membership.on_response(leave, error_response(Code.UNKNOWN_MEMBER_ID), now)

    assert LEAVE_EPOCH == leave.member_epoch
    assert pauses == sorted(pauses)
    assert pauses[0] >= 0.04
    assert pauses[-1] >= 4 * pauses[0]
    assert membership.finished


def test_leave_after_failed_heartbeats_is_repeated_from_the_shortest_backoff():
    membership = joined_member()
    now = 5.0
    for _ in range(6):
        fail(membership, next_request(membership, now), CONNECTION_LOST, now)
        now = membership.next_deadline(now)

    membership.close(now)
    fail(membership, next_find_coordinator(membership, now), CONNECTION_LOST, now)

    assert membership.next_deadline(now) - now < 0.1


@pytest.mark.parametrize("error", [UnsupportedVersionError, AuthenticationError])
def test_leave_is_not_repeated_after_a_lasting_connection_error(error: type[Error]):
    membership = joined_member()
    membership.close(now=1.0)

    membership.on_error(next_heartbeat(membership, now=1.0), error("no"), now=1.1)

    assert membership.finished
    assert membership.fatal_error is None


def test_leave_of_an_unsubscribed_member_is_repeated_until_its_session_timeout():
    membership = joined_member()
    membership.subscribe((), now=5.0)
    times = [5.0]
    while membership.state is State.LEAVING:
        fail(
            membership, next_request(membership, times[-1]), CONNECTION_LOST, times[-1]
        )
        times.append(membership.next_deadline(times[-1]))

    assert 48 < times[-2] <= 50
    assert len(times) < 65
    assert math.inf == times[-1]
    assert State.OUT == membership.state


def test_member_subscribed_again_joins_instead_of_repeating_its_leave():
    membership = joined_member()
    membership.subscribe((), now=1.0)
    leave = next_heartbeat(membership, now=1.0)

    membership.subscribe(("orders",), now=1.1)
    membership.on_response(leave, error_response(Code.NOT_COORDINATOR), now=1.2)

    assert State.JOINING == membership.state
    assert next_find_coordinator(membership, now=1.2)


def test_close_during_a_lost_heartbeat_sends_the_leave_once():
    membership = joined_member()
    in_flight = next_heartbeat(membership, now=5.0)

    membership.close(now=5.1)
    membership.on_error(in_flight, CONNECTION_LOST, now=5.2)
    leave = next_heartbeat(membership, now=5.2)
    membership.on_response(leave, heartbeat_response(LEAVE_EPOCH), now=5.3)

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
    exchange_find_coordinator(membership, now=5.01, received_at=5.02)

    assert LEAVE_EPOCH == next_heartbeat(membership, now=5.02).member_epoch


@pytest.mark.parametrize(
    "failure",
    [
        coordinator_response(Code.GROUP_AUTHORIZATION_FAILED),
        UnsupportedVersionError("too old"),
    ],
)
def test_closing_finishes_after_a_lasting_error_of_the_lookup(failure: object):
    membership = joined_member()
    membership.on_error(next_heartbeat(membership, now=5.0), CONNECTION_LOST, now=5.0)
    membership.close(now=5.01)

    fail(membership, next_find_coordinator(membership, now=5.01), failure, now=5.02)

    assert membership.finished
    assert membership.fatal_error is None


@pytest.mark.parametrize(
    "failure", [coordinator_response(Code.COORDINATOR_NOT_AVAILABLE), CONNECTION_LOST]
)
def test_closing_repeats_the_lookup_after_a_passing_error(failure: object):
    membership = joined_member()
    membership.on_error(next_heartbeat(membership, now=5.0), CONNECTION_LOST, now=5.0)
    membership.close(now=5.01)

    fail(membership, next_find_coordinator(membership, now=5.01), failure, now=5.02)
    early = membership.next_request(now=5.02)
    now = membership.next_deadline(now=5.02)
    exchange_find_coordinator(membership, now=now)

    assert early is None
    assert LEAVE_EPOCH == next_heartbeat(membership, now).member_epoch


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


def test_lost_request_after_leaving_changes_nothing():
    membership = new_member("orders")
    lookup = next_find_coordinator(membership, now=0.0)
    membership.subscribe((), now=0.1)

    membership.on_error(lookup, CONNECTION_LOST, now=0.2)

    assert State.OUT == membership.state
    assert math.inf == membership.next_deadline(now=0.2)
