"""Errors of heartbeats and of coordinator lookups."""

import itertools
import math

import pytest

from sharecons.errors import (
    AuthorizationError,
    BrokerError,
    Error,
    GroupError,
    UnsupportedVersionError,
)
from sharecons.protocol.codes import Code
from sharecons.protocol.group.heartbeat import MAX_REJOIN_DELAY, REJOIN_DELAY
from sharecons.protocol.group.heartbeat_interval import EARLY_INTERVAL
from sharecons.protocol.group.messages import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    HeartbeatResponse,
)
from sharecons.protocol.group.states import State
from sharecons.protocol.partitions import Endpoint
from tests.protocol.membership_harness import (
    CONNECTION_LOST,
    MEMBER_ID,
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
from tests.protocol.message_factories import P0, P1

FENCING = (Code.UNKNOWN_MEMBER_ID, Code.FENCED_MEMBER_EPOCH)
MOVED = (Code.NOT_COORDINATOR, Code.COORDINATOR_NOT_AVAILABLE)
FATAL_ERRORS = {
    Code.GROUP_AUTHORIZATION_FAILED: AuthorizationError,
    Code.INVALID_REQUEST: BrokerError,
    Code.INVALID_GROUP_ID: GroupError,
    Code.UNSUPPORTED_VERSION: UnsupportedVersionError,
    Code.GROUP_MAX_SIZE_REACHED: GroupError,
    Code.INCONSISTENT_GROUP_PROTOCOL: GroupError,
}


# Fencing.


@pytest.mark.parametrize("code", [*FENCING, Code.GROUP_ID_NOT_FOUND])
def test_fenced_member_joins_again_immediately_with_its_id_and_all_fields(code: Code):
    membership = joined_member("orders", epoch=9, rack="a")

    exchange_heartbeat(membership, error_response(code), now=5.0)
    heartbeat = next_heartbeat(membership, now=5.0)

    assert (MEMBER_ID, JOIN_EPOCH) == (heartbeat.member_id, heartbeat.member_epoch)
    assert (("orders",), "a") == (heartbeat.topics, heartbeat.rack)
    assert NO_PARTITIONS == membership.assignment
    assert membership.fatal_error is None


@pytest.mark.parametrize("code", FENCING)
def test_repeatedly_fenced_member_joins_with_pauses(code: Code):
    membership = joined_member()
    now = 5.0
    joins = 0
    while joins < 20:
        request = next_request(membership, now)
        joins += request.member_epoch == JOIN_EPOCH
        membership.on_response(request, error_response(code), now)
        now = max(now, membership.next_deadline(now))

    assert 5.0 + 10.0 < now


def test_member_whose_join_is_fenced_leaves_and_joins_again():
    membership = new_member("orders")
    exchange_find_coordinator(membership, now=1.0)
    join = next_heartbeat(membership, now=1.0)
    membership.on_response(join, error_response(Code.FENCED_MEMBER_EPOCH), now=1.0)
    leave = next_request(membership, 2.0)
    membership.on_response(leave, error_response(Code.UNKNOWN_MEMBER_ID), now=2.1)
    again = next_heartbeat(membership, now=2.1)

    assert [JOIN_EPOCH, LEAVE_EPOCH, JOIN_EPOCH] == [
        heartbeat.member_epoch for heartbeat in (join, leave, again)
    ]
    assert ("orders",) == again.topics


def test_rejoining_member_leaves_and_joins_with_all_fields():
    membership = joined_member("orders", epoch=3, rack="a")

    assert membership.rejoin(now=2.0)
    assert NO_PARTITIONS == membership.assignment
    leave = next_heartbeat(membership, now=2.0)
    membership.on_response(leave, heartbeat_response(LEAVE_EPOCH), now=2.1)
    join = next_heartbeat(membership, now=2.1)
    membership.on_response(join, heartbeat_response(4, P1), now=2.2)

    assert [LEAVE_EPOCH, JOIN_EPOCH] == [leave.member_epoch, join.member_epoch]
    assert (("orders",), "a") == (join.topics, join.rack)
    assert frozenset({P1}) == membership.assignment
    assert State.MEMBER is membership.state


@pytest.mark.parametrize(
    "response",
    [
        heartbeat_response(2, P0),
        error_response(Code.FENCED_MEMBER_EPOCH),
        error_response(Code.COORDINATOR_LOAD_IN_PROGRESS),
        error_response(Code.NOT_COORDINATOR),
    ],
    ids=["accepted", "fenced", "loading", "moved"],
)
def test_rejoining_member_ignores_the_response_to_an_earlier_heartbeat(
    response: HeartbeatResponse,
):
    membership = joined_member("orders", rack="a")
    membership.subscribe(("orders", "refunds"), now=4.0)
    in_flight = next_heartbeat(membership, now=4.0)
    assert membership.rejoin(now=4.0)

    membership.on_response(in_flight, response, now=4.1)
    assert NO_PARTITIONS == membership.assignment
    leave = next_heartbeat(membership, now=4.1)
    membership.on_response(leave, heartbeat_response(LEAVE_EPOCH), now=4.2)
    join = next_heartbeat(membership, now=4.2)

    assert [LEAVE_EPOCH, JOIN_EPOCH] == [leave.member_epoch, join.member_epoch]
    assert (("orders", "refunds"), "a") == (join.topics, join.rack)


@pytest.mark.parametrize(
    "code", [Code.NOT_COORDINATOR, Code.COORDINATOR_LOAD_IN_PROGRESS]
)
def test_leave_before_a_rejoin_is_repeated_at_the_next_coordinator(code: Code):
    membership = joined_member("orders")
    assert membership.rejoin(now=1.0)
    exchange_heartbeat(membership, error_response(code), now=1.0)

    exchange_find_coordinator(membership, now=2.0)
    again = next_heartbeat(membership, now=2.0)
    membership.on_response(again, heartbeat_response(LEAVE_EPOCH), now=2.1)
    join = next_heartbeat(membership, now=2.1)

    assert [LEAVE_EPOCH, JOIN_EPOCH] == [again.member_epoch, join.member_epoch]
    assert ("orders",) == join.topics


def test_leave_before_a_rejoin_is_enough_for_a_member_that_leaves():
    membership = joined_member("orders")
    assert membership.rejoin(now=1.0)
    leave = next_heartbeat(membership, now=1.0)
    membership.close(now=1.1)

    membership.on_response(leave, heartbeat_response(LEAVE_EPOCH), now=1.2)

    assert membership.finished


def test_delays_between_rejoins_grow_to_a_limit():
    membership = joined_member("orders")
    times, now = [], 0.0
    while now < 4000.0:
        if membership.rejoin(now):
            times.append(now)
            exchange_heartbeat(membership, heartbeat_response(LEAVE_EPOCH), now=now)
            exchange_heartbeat(membership, heartbeat_response(2, P1), now=now)
        now += 1.0

    pauses = [later - time for time, later in itertools.pairwise(times)]
    assert [60, 120, 240, 480, 600, 600] == pauses[:6]
    assert (60, 600) == (REJOIN_DELAY, MAX_REJOIN_DELAY)


@pytest.mark.parametrize("code", FENCING)
def test_fenced_member_sends_early_heartbeats_until_it_is_assigned(code: Code):
    membership = joined_member()
    exchange_heartbeat(membership, error_response(code), now=5.0)

    exchange_heartbeat(membership, heartbeat_response(), now=5.0)

    assert 5.0 + EARLY_INTERVAL == membership.next_deadline(now=5.0)


# Coordinators that move, load or fail.


@pytest.mark.parametrize("code", MOVED)
def test_moved_coordinator_is_looked_up_and_the_assignment_is_kept(code: Code):
    membership = joined_member("orders", epoch=3, rack="a")

    exchange_heartbeat(membership, error_response(code), now=5.0)
    due = membership.next_deadline(now=5.0)
    elsewhere = Endpoint("broker-2", 9092)
    exchange_find_coordinator(
        membership, coordinator_response(endpoint=elsewhere), now=due
    )
    heartbeat = next_heartbeat(membership, due)

    assert frozenset({P0}) == membership.assignment
    assert elsewhere == membership.coordinator
    assert 5.0 < due < 5.1
    assert (3, ("orders",), "a") == (
        heartbeat.member_epoch,
        heartbeat.topics,
        heartbeat.rack,
    )


def test_lost_connection_looks_up_the_coordinator_and_sends_all_fields():
    membership = joined_member("orders", epoch=3)

    membership.on_error(next_heartbeat(membership, now=5.0), CONNECTION_LOST, now=5.0)
    due = membership.next_deadline(now=5.0)
    exchange_find_coordinator(membership, now=due)

    assert ("orders",) == next_heartbeat(membership, due).topics
    assert frozenset({P0}) == membership.assignment


def test_failed_coordinator_lookups_are_repeated_with_growing_pauses():
    membership = new_member("orders")
    pauses = []
    now = 0.0
    for _ in range(8):
        exchange_find_coordinator(
            membership, coordinator_response(Code.COORDINATOR_NOT_AVAILABLE), now=now
        )
        pauses.append(membership.next_deadline(now) - now)
        now = membership.next_deadline(now)

    assert sorted(pauses) == pytest.approx(pauses)
    assert pauses[0] < 0.07
    assert 0.8 <= pauses[-1]


def test_heartbeat_to_a_loading_coordinator_is_repeated_after_a_pause():
    membership = joined_member("orders", epoch=3)

    exchange_heartbeat(
        membership, error_response(Code.COORDINATOR_LOAD_IN_PROGRESS), now=5.0
    )
    due = membership.next_deadline(now=5.0)

    assert 5.0 < due < 5.1
    assert (3, ("orders",)) == (
        next_heartbeat(membership, due).member_epoch,
        next_heartbeat(membership, due).topics,
    )
    assert frozenset({P0}) == membership.assignment


# Fatal and reported errors.


@pytest.mark.parametrize(("code", "kind"), FATAL_ERRORS.items())
def test_fatal_error_has_the_brokers_message_and_ends_the_member(
    code: Code, kind: type[Error]
):
    membership = joined_member()

    exchange_heartbeat(
        membership, error_response(code, "message of the broker"), now=5.0
    )

    assert kind is type(membership.fatal_error)
    assert "billing" in str(membership.fatal_error)
    assert "message of the broker" in str(membership.fatal_error)
    assert code.name in str(membership.fatal_error)
    assert membership.finished
    assert NO_PARTITIONS == membership.assignment
    assert membership.next_request(now=100.0) is None
    assert math.inf == membership.next_deadline(now=100.0)


def test_unsupported_coordinator_lookup_is_fatal():
    membership = new_member("orders")
    old = UnsupportedVersionError("the broker is too old")

    membership.on_error(next_find_coordinator(membership, now=0.0), old, now=0.0)

    assert old is membership.fatal_error
    assert membership.finished


def test_join_to_a_group_of_another_kind_is_fatal():
    membership = new_member("orders")
    exchange_find_coordinator(membership, now=0.0)

    exchange_heartbeat(membership, error_response(Code.GROUP_ID_NOT_FOUND), now=0.0)

    assert isinstance(membership.fatal_error, GroupError)
    assert "another kind" in str(membership.fatal_error)


def test_forbidden_coordinator_lookup_is_fatal():
    membership = new_member("orders")

    exchange_find_coordinator(
        membership, coordinator_response(Code.GROUP_AUTHORIZATION_FAILED), now=0.0
    )

    assert isinstance(membership.fatal_error, AuthorizationError)


def test_calls_after_a_fatal_error_do_nothing():
    membership = joined_member()
    exchange_heartbeat(membership, error_response(Code.GROUP_MAX_SIZE_REACHED), now=5.0)

    membership.subscribe(("refunds",), now=6.0)
    membership.subscribe((), now=7.0)
    membership.close(now=8.0)

    assert State.REFUSED == membership.state
    assert membership.next_request(now=9.0) is None


def test_forbidden_topic_is_reported_once_and_heartbeats_continue():
    membership = joined_member()
    forbidden = error_response(Code.TOPIC_AUTHORIZATION_FAILED)

    exchange_heartbeat(membership, forbidden, now=5.0)
    reported, membership.error_to_report = membership.error_to_report, None
    exchange_heartbeat(membership, forbidden, now=6.5)

    assert isinstance(reported, AuthorizationError)
    assert membership.error_to_report is None
    assert not membership.finished
    assert next_heartbeat(membership, now=10.0)


@pytest.mark.parametrize("event", ["permission granted", "new subscription"])
def test_forbidden_topic_is_reported_again_after(event: str):
    membership = joined_member()
    forbidden = error_response(Code.TOPIC_AUTHORIZATION_FAILED)
    exchange_heartbeat(membership, forbidden, now=5.0)
    membership.error_to_report = None

    if event == "permission granted":
        exchange_heartbeat(membership, heartbeat_response(), now=6.5)
    else:
        membership.subscribe(("orders",), now=6.5)
    exchange_heartbeat(membership, forbidden, now=20.0)

    assert isinstance(membership.error_to_report, AuthorizationError)
