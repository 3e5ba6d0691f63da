"""Heartbeats of a member: contents, intervals and subscriptions."""

import math

import pytest

from sharecons.protocol.codes import Code
from sharecons.protocol.group.heartbeat_interval import (
    DEFAULT_INTERVAL,
    EARLY_INTERVAL,
    EARLY_PERIOD,
    MIN_INTERVAL,
)
from sharecons.protocol.group.messages import JOIN_EPOCH, LEAVE_EPOCH, HeartbeatResponse
from sharecons.protocol.group.states import State
from tests.protocol.membership_harness import (
    MEMBER_ID,
    NO_PARTITIONS,
    error_response,
    exchange_find_coordinator,
    exchange_heartbeat,
    heartbeat_response,
    joined_member,
    new_member,
    next_heartbeat,
)
from tests.protocol.message_factories import P0

# Joining.


def test_member_without_topics_sends_nothing():
    membership = new_member()

    assert math.inf == membership.next_deadline(now=0.0)
    assert membership.next_request(now=1e9) is None
    assert not membership.finished


def test_first_heartbeat_has_all_fields():
    membership = new_member("orders", "refunds", rack="a")
    exchange_find_coordinator(membership, now=0.0, received_at=0.1)

    heartbeat = next_heartbeat(membership, now=0.1)

    assert ("billing", MEMBER_ID) == (heartbeat.group_id, heartbeat.member_id)
    assert JOIN_EPOCH == heartbeat.member_epoch
    assert ("orders", "refunds") == heartbeat.topics
    assert "a" == heartbeat.rack


def test_later_heartbeat_has_only_the_member_epoch():
    membership = joined_member(epoch=3, rack="a")

    heartbeat = next_heartbeat(membership, now=5.0)

    assert (3, None, None) == (
        heartbeat.member_epoch,
        heartbeat.topics,
        heartbeat.rack,
    )


def test_assignment_is_kept_after_a_response_without_one():
    membership = joined_member()

    exchange_heartbeat(membership, heartbeat_response(1), now=5.0)

    assert frozenset({P0}) == membership.assignment


def test_empty_assignment_revokes_all_partitions():
    membership = joined_member()
    nothing = HeartbeatResponse(
        error=0,
        message=None,
        member_epoch=2,
        heartbeat_interval=5.0,
        assignment=frozenset(),
        throttle=0.0,
    )

    exchange_heartbeat(membership, nothing, now=5.0)

    assert NO_PARTITIONS == membership.assignment
    assert State.MEMBER == membership.state


def test_next_heartbeat_has_the_member_epoch_of_the_response():
    membership = joined_member(epoch=7)

    exchange_heartbeat(membership, heartbeat_response(6), now=5.0)

    assert 6 == next_heartbeat(membership, now=10.0).member_epoch


# Intervals.


def test_heartbeat_interval_is_the_coordinators():
    membership = joined_member()

    exchange_heartbeat(
        membership, heartbeat_response(interval=2.0), now=5.0, received_at=5.1
    )

    assert 7.1 == pytest.approx(membership.next_deadline(now=5.1))
    assert membership.next_request(now=7.0) is None
    assert next_heartbeat(membership, now=7.11)


@pytest.mark.parametrize(
    ("interval", "kept"),
    [(-1.0, DEFAULT_INTERVAL), (0.0, DEFAULT_INTERVAL), (0.001, MIN_INTERVAL)],
)
def test_too_short_heartbeat_interval_is_replaced(interval: float, kept: float):
    membership = joined_member()

    exchange_heartbeat(membership, heartbeat_response(interval=interval), now=5.0)

    assert 5.0 + kept == membership.next_deadline(now=5.0)


def test_member_without_an_assignment_sends_early_heartbeats_for_a_while():
    membership = new_member("orders")
    exchange_find_coordinator(membership, now=0.0)
    exchange_heartbeat(membership, heartbeat_response(), now=0.0)
    early = membership.next_deadline(now=0.0)

    exchange_heartbeat(
        membership, heartbeat_response(), now=early, received_at=EARLY_PERIOD
    )

    assert EARLY_INTERVAL == early
    assert EARLY_PERIOD + 5.0 == membership.next_deadline(now=EARLY_PERIOD)


def test_early_heartbeats_end_with_an_assignment():
    membership = new_member("orders")
    exchange_find_coordinator(membership, now=0.0)
    exchange_heartbeat(membership, heartbeat_response(1, P0), now=0.0, received_at=0.5)

    assert 5.5 == membership.next_deadline(now=0.5)


def test_heartbeat_soon_starts_early_heartbeats():
    membership = joined_member()

    membership.heartbeat_soon(now=2.0)
    exchange_heartbeat(membership, heartbeat_response(), now=2.0)

    assert 2.0 + EARLY_INTERVAL == membership.next_deadline(now=2.0)


def test_throttled_member_waits_for_the_throttle_time():
    membership = joined_member()

    exchange_heartbeat(membership, heartbeat_response(throttle=9.0), now=5.0)

    assert 14.0 == membership.next_deadline(now=5.0)


def test_throttled_error_is_retried_after_the_throttle_time():
    membership = joined_member()

    exchange_heartbeat(
        membership,
        error_response(Code.COORDINATOR_LOAD_IN_PROGRESS, throttle=9.0),
        now=5.0,
    )

    assert 14.0 == membership.next_deadline(now=5.0)


# Subscriptions.


def test_new_subscription_is_sent_immediately_with_all_topics():
    membership = joined_member("orders")

    membership.subscribe(("orders", "refunds"), now=1.0)

    assert ("orders", "refunds") == next_heartbeat(membership, now=1.0).topics


def test_subscription_during_a_heartbeat_is_sent_directly_after_it():
    membership = joined_member("orders")
    in_flight = next_heartbeat(membership, now=5.0)

    membership.subscribe(("refunds",), now=5.1)
    membership.on_response(in_flight, heartbeat_response(), now=5.2)

    assert ("refunds",) == next_heartbeat(membership, now=5.2).topics


def test_subscribing_to_nothing_leaves_the_group():
    membership = joined_member()

    membership.subscribe((), now=1.0)

    assert NO_PARTITIONS == membership.assignment
    assert LEAVE_EPOCH == next_heartbeat(membership, now=1.0).member_epoch


def test_member_that_left_can_subscribe_again():
    membership = joined_member(epoch=4)
    membership.subscribe((), now=1.0)
    exchange_heartbeat(membership, heartbeat_response(), now=1.0, received_at=1.1)

    membership.subscribe(("orders",), now=2.0)
    heartbeat = next_heartbeat(membership, now=2.0)

    assert (JOIN_EPOCH, ("orders",), MEMBER_ID) == (
        heartbeat.member_epoch,
        heartbeat.topics,
        heartbeat.member_id,
    )


def test_subscribing_while_leaving_joins_after_the_leave():
    membership = joined_member(epoch=4)
    membership.subscribe((), now=1.0)
    leave = next_heartbeat(membership, now=1.0)

    membership.subscribe(("refunds",), now=1.1)
    membership.on_response(leave, heartbeat_response(), now=1.2)
    heartbeat = next_heartbeat(membership, now=1.2)

    assert (JOIN_EPOCH, ("refunds",)) == (heartbeat.member_epoch, heartbeat.topics)
