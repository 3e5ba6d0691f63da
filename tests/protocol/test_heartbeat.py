import itertools
import math
from collections.abc import Sequence

import pytest

from sharecons.errors import (
    AuthorizationError,
    BrokerError,
    ConnectionFailedError,
    Error,
    GroupError,
    UnsupportedVersionError,
)
from sharecons.protocol.codes import Code
from sharecons.protocol.group.heartbeat import (
    DEFAULT_INTERVAL,
    EARLY_INTERVAL,
    EARLY_PERIOD,
    MAX_REJOIN_DELAY,
    MIN_INTERVAL,
    REJOIN_DELAY,
    TRANSITIONS,
    Membership,
    MembershipEvent,
    State,
)
from sharecons.protocol.messages import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    Endpoint,
    HeartbeatResponse,
    SharePartition,
)
from tests.protocol.membership_harness import (
    COORDINATOR,
    MEMBER_ID,
    coordinator_response,
    error_response,
    heartbeat_response,
    joined_member,
    new_member,
    next_find_coordinator,
    next_heartbeat,
    next_request,
)
from tests.protocol.message_factories import P0, P1

LOST = ConnectionFailedError("the connection broke")
NOTHING: frozenset[SharePartition] = frozenset()
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


# Joining.


def test_member_without_topics_sends_nothing():
    membership = new_member()

    assert math.inf == membership.next_deadline(now=0.0)
    assert membership.next_request(now=1e9) is None
    assert not membership.finished


def test_first_request_looks_up_the_coordinator():
    assert "billing" == next_find_coordinator(new_member("orders"), now=0.0).group_id


def test_first_heartbeat_has_all_fields():
    membership = new_member("orders", "refunds", rack="a")
    membership.on_response(
        next_find_coordinator(membership, now=0.0), coordinator_response(), now=0.1
    )

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


def test_coordinator_is_the_one_in_the_lookup_response():
    assert COORDINATOR == joined_member().coordinator


def test_assignment_is_kept_after_a_response_without_one():
    membership = joined_member()

    membership.on_response(
        next_heartbeat(membership, now=5.0), heartbeat_response(1), now=5.0
    )

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

    membership.on_response(next_heartbeat(membership, now=5.0), nothing, now=5.0)

    assert NOTHING == membership.assignment
    assert State.MEMBER == membership.state


def test_next_heartbeat_has_the_member_epoch_of_the_response():
    membership = joined_member(epoch=7)

    membership.on_response(
        next_heartbeat(membership, now=5.0), heartbeat_response(6), now=5.0
    )

    assert 6 == next_heartbeat(membership, now=10.0).member_epoch


# Intervals.


def test_heartbeat_interval_is_the_coordinators():
    membership = joined_member()

    membership.on_response(
        next_heartbeat(membership, 5.0), heartbeat_response(interval=2.0), now=5.1
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

    membership.on_response(
        next_heartbeat(membership, 5.0), heartbeat_response(interval=interval), now=5.0
    )

    assert 5.0 + kept == membership.next_deadline(now=5.0)


def test_member_without_an_assignment_sends_early_heartbeats_for_a_while():
    membership = new_member("orders")
    membership.on_response(
        next_find_coordinator(membership, now=0.0), coordinator_response(), now=0.0
    )
    membership.on_response(
        next_heartbeat(membership, now=0.0), heartbeat_response(), now=0.0
    )
    early = membership.next_deadline(now=0.0)

    membership.on_response(
        next_heartbeat(membership, early), heartbeat_response(), now=EARLY_PERIOD
    )

    assert EARLY_INTERVAL == early
    assert EARLY_PERIOD + 5.0 == membership.next_deadline(now=EARLY_PERIOD)


def test_early_heartbeats_end_with_an_assignment():
    membership = new_member("orders")
    membership.on_response(
        next_find_coordinator(membership, now=0.0), coordinator_response(), now=0.0
    )
    membership.on_response(
        next_heartbeat(membership, now=0.0), heartbeat_response(1, P0), now=0.5
    )

    assert 5.5 == membership.next_deadline(now=0.5)


def test_heartbeat_soon_starts_early_heartbeats():
    membership = joined_member()

    membership.heartbeat_soon(now=2.0)
    membership.on_response(
        next_heartbeat(membership, now=2.0), heartbeat_response(), now=2.0
    )

    assert 2.0 + EARLY_INTERVAL == membership.next_deadline(now=2.0)


def test_heartbeat_soon_without_a_subscription_does_nothing():
    membership = new_member()

    membership.heartbeat_soon(now=2.0)

    assert math.inf == membership.next_deadline(now=2.0)


def test_throttled_member_waits_for_the_throttle_time():
    membership = joined_member()

    membership.on_response(
        next_heartbeat(membership, 5.0), heartbeat_response(throttle=9.0), now=5.0
    )

    assert 14.0 == membership.next_deadline(now=5.0)


def test_throttled_error_is_retried_after_the_throttle_time():
    membership = joined_member()

    membership.on_response(
        next_heartbeat(membership, 5.0),
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


def test_subscription_replaced_while_it_is_sent_is_sent_again():
    membership = joined_member("orders")
    membership.subscribe(("refunds",), now=1.0)
    in_flight = next_heartbeat(membership, now=1.0)

    membership.subscribe(("orders",), now=1.1)
    membership.on_response(in_flight, heartbeat_response(), now=1.2)

    assert ("orders",) == next_heartbeat(membership, now=1.2).topics


def test_subscribing_keeps_the_assignment_until_a_response():
    membership = joined_member("orders")

    membership.subscribe(("refunds",), now=1.0)

    assert frozenset({P0}) == membership.assignment


def test_subscribing_to_nothing_leaves_the_group():
    membership = joined_member()

    membership.subscribe((), now=1.0)

    assert NOTHING == membership.assignment
    assert LEAVE_EPOCH == next_heartbeat(membership, now=1.0).member_epoch


def test_member_that_left_can_subscribe_again():
    membership = joined_member(epoch=4)
    membership.subscribe((), now=1.0)
    membership.on_response(
        next_heartbeat(membership, now=1.0), heartbeat_response(), now=1.1
    )

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


# Fencing.


@pytest.mark.parametrize("code", [*FENCING, Code.GROUP_ID_NOT_FOUND])
def test_fenced_member_joins_again_immediately_with_its_id_and_all_fields(code: Code):
    membership = joined_member("orders", epoch=9, rack="a")

    membership.on_response(
        next_heartbeat(membership, now=5.0), error_response(code), now=5.0
    )
    heartbeat = next_heartbeat(membership, now=5.0)

    assert (MEMBER_ID, JOIN_EPOCH) == (heartbeat.member_id, heartbeat.member_epoch)
    assert (("orders",), "a") == (heartbeat.topics, heartbeat.rack)
    assert NOTHING == membership.assignment
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
    membership.on_response(
        next_find_coordinator(membership, now=1.0), coordinator_response(), now=1.0
    )
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
    assert NOTHING == membership.assignment
    leave = next_heartbeat(membership, now=2.0)
    membership.on_response(leave, heartbeat_response(LEAVE_EPOCH), now=2.1)
    join = next_heartbeat(membership, now=2.1)
    membership.on_response(join, heartbeat_response(4, P1), now=2.2)

    assert [LEAVE_EPOCH, JOIN_EPOCH] == [leave.member_epoch, join.member_epoch]
    assert (("orders",), "a") == (join.topics, join.rack)
    assert frozenset({P1}) == membership.assignment
    assert State.MEMBER is membership.state


def test_member_rejoins_after_a_heartbeat_in_flight():
    membership = joined_member("orders")
    in_flight = next_heartbeat(membership, now=5.0)
    assert membership.rejoin(now=5.0)

    membership.on_response(in_flight, heartbeat_response(), now=5.1)
    epochs, now = [], 5.1
    for _ in range(4):
        now = max(now, membership.next_deadline(now))
        request = next_heartbeat(membership, now)
        epochs.append(request.member_epoch)
        known = request.member_epoch < 1 or JOIN_EPOCH in epochs
        response = (
            heartbeat_response(2, P1)
            if known
            else error_response(Code.UNKNOWN_MEMBER_ID)
        )
        membership.on_response(request, response, now)

    assert [LEAVE_EPOCH, JOIN_EPOCH] == [epoch for epoch in epochs if epoch < 1]
    assert frozenset({P1}) == membership.assignment


def test_delays_between_rejoins_grow_to_a_limit():
    membership = joined_member("orders")
    times, now = [], 0.0
    while now < 4000.0:
        if membership.rejoin(now):
            times.append(now)
            membership.on_response(
                next_heartbeat(membership, now), heartbeat_response(LEAVE_EPOCH), now
            )
            membership.on_response(
                next_heartbeat(membership, now), heartbeat_response(2, P1), now
            )
        now += 1.0

    pauses = [later - time for time, later in itertools.pairwise(times)]
    assert [60, 120, 240, 480, 600, 600] == pauses[:6]
    assert (60, 600) == (REJOIN_DELAY, MAX_REJOIN_DELAY)


def test_rejoin_before_joining_does_nothing():
    assert not new_member().rejoin(now=0.0)
    assert not new_member("orders").rejoin(now=0.0)


@pytest.mark.parametrize("code", FENCING)
def test_fenced_member_sends_early_heartbeats_until_it_is_assigned(code: Code):
    membership = joined_member()
    membership.on_response(
        next_heartbeat(membership, now=5.0), error_response(code), now=5.0
    )

    membership.on_response(
        next_heartbeat(membership, now=5.0), heartbeat_response(), now=5.0
    )

    assert 5.0 + EARLY_INTERVAL == membership.next_deadline(now=5.0)


# Coordinators that move, load or fail.


@pytest.mark.parametrize("code", MOVED)
def test_moved_coordinator_is_looked_up_and_the_assignment_is_kept(code: Code):
    membership = joined_member("orders", epoch=3, rack="a")

    membership.on_response(
        next_heartbeat(membership, now=5.0), error_response(code), now=5.0
    )
    due = membership.next_deadline(now=5.0)
    elsewhere = Endpoint("broker-2", 9092)
    membership.on_response(
        next_find_coordinator(membership, due),
        coordinator_response(endpoint=elsewhere),
        now=due,
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

    membership.on_error(next_heartbeat(membership, now=5.0), LOST, now=5.0)
    due = membership.next_deadline(now=5.0)
    membership.on_response(
        next_find_coordinator(membership, due), coordinator_response(), now=due
    )

    assert ("orders",) == next_heartbeat(membership, due).topics
    assert frozenset({P0}) == membership.assignment


def test_failed_coordinator_lookups_are_repeated_with_growing_pauses():
    membership = new_member("orders")
    pauses = []
    now = 0.0
    for _ in range(8):
        membership.on_response(
            next_find_coordinator(membership, now),
            coordinator_response(Code.COORDINATOR_NOT_AVAILABLE),
            now,
        )
        pauses.append(membership.next_deadline(now) - now)
        now = membership.next_deadline(now)

    assert sorted(pauses) == pytest.approx(pauses)
    assert pauses[0] < 0.07
    assert 0.8 <= pauses[-1]


def test_heartbeat_to_a_loading_coordinator_is_repeated_after_a_pause():
    membership = joined_member("orders", epoch=3)

    membership.on_response(
        next_heartbeat(membership, 5.0),
        error_response(Code.COORDINATOR_LOAD_IN_PROGRESS),
        now=5.0,
    )
    due = membership.next_deadline(now=5.0)

    assert 5.0 < due < 5.1
    assert (3, ("orders",)) == (
        next_heartbeat(membership, due).member_epoch,
        next_heartbeat(membership, due).topics,
    )
    assert frozenset({P0}) == membership.assignment


def test_heartbeat_with_an_unknown_error_code_is_repeated():
    membership = joined_member()

    membership.on_response(
        next_heartbeat(membership, now=5.0), error_response(9_999), now=5.0
    )

    assert membership.fatal_error is None
    assert next_heartbeat(membership, now=6.0)


# Fatal and reported errors.


@pytest.mark.parametrize(("code", "kind"), FATAL_ERRORS.items())
def test_fatal_error_has_the_brokers_message_and_ends_the_member(
    code: Code, kind: type[Error]
):
    membership = joined_member()

    membership.on_response(
        next_heartbeat(membership, now=5.0),
        error_response(code, "message of the broker"),
        now=5.0,
    )

    assert kind is type(membership.fatal_error)
    assert "billing" in str(membership.fatal_error)
    assert "message of the broker" in str(membership.fatal_error)
    assert code.name in str(membership.fatal_error)
    assert membership.finished
    assert NOTHING == membership.assignment
    assert membership.next_request(now=100.0) is None
    assert math.inf == membership.next_deadline(now=100.0)


def test_unsupported_version_error_has_the_required_kafka_version():
    membership = joined_member()

    membership.on_response(
        next_heartbeat(membership, now=5.0),
        error_response(Code.UNSUPPORTED_VERSION),
        now=5.0,
    )

    assert "Kafka 4.1" in str(membership.fatal_error)


def test_unsupported_coordinator_lookup_is_fatal():
    membership = new_member("orders")
    old = UnsupportedVersionError("the broker is too old")

    membership.on_error(next_find_coordinator(membership, now=0.0), old, now=0.0)

    assert old is membership.fatal_error
    assert membership.finished


def test_join_to_a_group_of_another_kind_is_fatal():
    membership = new_member("orders")
    membership.on_response(
        next_find_coordinator(membership, now=0.0), coordinator_response(), now=0.0
    )

    membership.on_response(
        next_heartbeat(membership, now=0.0),
        error_response(Code.GROUP_ID_NOT_FOUND),
        now=0.0,
    )

    assert isinstance(membership.fatal_error, GroupError)
    assert "another kind" in str(membership.fatal_error)


def test_forbidden_coordinator_lookup_is_fatal():
    membership = new_member("orders")

    membership.on_response(
        next_find_coordinator(membership, now=0.0),
        coordinator_response(Code.GROUP_AUTHORIZATION_FAILED),
        now=0.0,
    )

    assert isinstance(membership.fatal_error, AuthorizationError)


def test_calls_after_a_fatal_error_do_nothing():
    membership = joined_member()
    membership.on_response(
        next_heartbeat(membership, now=5.0),
        error_response(Code.GROUP_MAX_SIZE_REACHED),
        now=5.0,
    )

    membership.subscribe(("refunds",), now=6.0)
    membership.subscribe((), now=7.0)
    membership.close(now=8.0)

    assert State.REFUSED == membership.state
    assert membership.next_request(now=9.0) is None


def test_forbidden_topic_is_reported_once_and_heartbeats_continue():
    membership = joined_member()
    forbidden = error_response(Code.TOPIC_AUTHORIZATION_FAILED)

    membership.on_response(next_heartbeat(membership, now=5.0), forbidden, now=5.0)
    reported, membership.error_to_report = membership.error_to_report, None
    membership.on_response(next_heartbeat(membership, now=6.5), forbidden, now=6.5)

    assert isinstance(reported, AuthorizationError)
    assert membership.error_to_report is None
    assert not membership.finished
    assert next_heartbeat(membership, now=10.0)


@pytest.mark.parametrize("event", ["permission granted", "new subscription"])
def test_forbidden_topic_is_reported_again_after(event: str):
    membership = joined_member()
    forbidden = error_response(Code.TOPIC_AUTHORIZATION_FAILED)
    membership.on_response(next_heartbeat(membership, now=5.0), forbidden, now=5.0)
    membership.error_to_report = None

    if event == "permission granted":
        membership.on_response(
            next_heartbeat(membership, now=6.5), heartbeat_response(), now=6.5
        )
    else:
        membership.subscribe(("orders",), now=6.5)
    membership.on_response(next_heartbeat(membership, now=20.0), forbidden, now=20.0)

    assert isinstance(membership.error_to_report, AuthorizationError)


# Leaving.


def test_closing_sends_a_leave_and_finishes():
    membership = joined_member(epoch=3)

    membership.close(now=1.0)
    leave = next_heartbeat(membership, now=1.0)
    membership.on_response(leave, heartbeat_response(LEAVE_EPOCH), now=1.1)

    assert (LEAVE_EPOCH, None, None) == (leave.member_epoch, leave.topics, leave.rack)
    assert NOTHING == membership.assignment
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

    membership.on_error(next_heartbeat(membership, now=1.0), LOST, now=1.1)

    assert membership.finished


def test_close_during_a_heartbeat_sends_the_leave_after_its_response():
    membership = joined_member(epoch=3)
    in_flight = next_heartbeat(membership, now=5.0)

    membership.close(now=5.1)
    membership.on_response(in_flight, heartbeat_response(4, P1), now=5.2)

    assert NOTHING == membership.assignment
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
    membership.on_error(in_flight, LOST, now=5.2)
    leave = next_heartbeat(membership, now=5.2)
    membership.on_error(leave, LOST, now=5.3)

    assert LEAVE_EPOCH == leave.member_epoch
    assert membership.finished


@pytest.mark.parametrize("lost", [False, True])
def test_close_after_the_coordinator_moved_looks_it_up_and_leaves(lost: bool):
    membership = joined_member()
    in_flight = next_heartbeat(membership, now=5.0)
    if lost:
        membership.on_error(in_flight, LOST, now=5.0)
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
        LOST,
        UnsupportedVersionError("too old"),
    ],
)
def test_closing_finishes_if_the_coordinator_lookup_fails(result: object):
    membership = joined_member()
    membership.on_error(next_heartbeat(membership, now=5.0), LOST, now=5.0)
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
    membership.on_error(next_heartbeat(membership, now=5.0), LOST, now=5.0)
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

    membership.on_error(lookup, LOST, now=0.2)

    assert State.OUT == membership.state
    assert math.inf == membership.next_deadline(now=0.2)


# The table of transitions.


def test_every_state_is_reached_by_a_transition():
    assert set(State) == {State.OUT, *TRANSITIONS.values()}


def test_every_state_has_transitions_to_subscribe_and_to_leave():
    both = (MembershipEvent.SUBSCRIBED, MembershipEvent.LEAVE_REQUESTED)

    assert not set(itertools.product(State, both)) - TRANSITIONS.keys()


class RecordingTransitions:
    """The table of transitions; records the entries that a member used."""

    def __init__(self) -> None:
        self.used: set[tuple[State, MembershipEvent]] = set()

    def __getitem__(self, entry: tuple[State, MembershipEvent]) -> State:
        self.used.add(entry)
        return TRANSITIONS[entry]


def perform(membership: Membership, action: str, now: float) -> bool:
    """Make one public call; return False if no request was due for it."""
    if action == "subscribe":
        membership.subscribe(("orders",), now)
    elif action == "unsubscribe":
        membership.subscribe((), now)
    elif action == "close":
        membership.close(now)
    else:
        request = membership.next_request(now)
        if request is None:
            return False
        if action == "lost":
            membership.on_error(request, LOST, now)
        elif hasattr(request, "member_epoch"):
            heartbeat = (
                heartbeat_response(1, P0)
                if action == "good"
                else error_response(int(action))
            )
            membership.on_response(request, heartbeat, now)
        else:
            code = 0 if action == "good" else int(action)
            membership.on_response(request, coordinator_response(code), now)
    return True


def perform_sequences(actions: Sequence[str], length: int) -> None:
    """Perform all sequences of actions up to this length.

    A sequence is not continued after an action that had no effect: the sequence
    without that action is performed as well.
    """
    sequences: list[tuple[str, ...]] = [()]
    while sequences:
        before = sequences.pop()
        for action in actions:
            membership = new_member()
            sequence = (*before, action)
            effective = [
                perform(membership, each, now=10.0 * turn)
                for turn, each in enumerate(sequence)
            ]
            if effective[-1] and len(sequence) < length:
                sequences.append(sequence)


def test_any_sequence_of_calls_stays_in_the_table_and_each_entry_is_used(
    monkeypatch: pytest.MonkeyPatch,
):
    """A KeyError would be raised by a transition that is not in the table."""
    table = RecordingTransitions()
    monkeypatch.setattr("sharecons.protocol.group.heartbeat.TRANSITIONS", table)
    actions = ("subscribe", "unsubscribe", "close", "good", "lost", "110", "30", "16")

    perform_sequences(actions, length=5)

    assert TRANSITIONS.keys() == table.used
