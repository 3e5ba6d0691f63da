"""Whatever a broker answers, or not: what a leader's machine makes of it."""

import math

import pytest

from sharecons.errors import (
    AuthorizationError,
    BrokerError,
    ConnectionFailedError,
    LockLostError,
    UnsupportedVersionError,
)
from sharecons.protocol import error_actions
from sharecons.protocol.codes import Code
from sharecons.protocol.error_actions import ErrorAction
from sharecons.protocol.fetch.events import (
    FatalError,
    LeaderMoved,
    LocksLost,
    MetadataStale,
    PartitionError,
)
from sharecons.protocol.messages import PartitionLeader
from sharecons.record import ACCEPT
from tests.protocol.leader_harness import LeaderHarness
from tests.protocol.message_factories import (
    P0,
    P1,
    acknowledge_response,
    acks_by_offset,
    fetch_response,
    partition_response,
)

MOVED = (Code.NOT_LEADER_OR_FOLLOWER, Code.FENCED_LEADER_EPOCH)
OUTSIDE = [Code.UNKNOWN_SERVER_ERROR, Code.SHARE_SESSION_LIMIT_REACHED, 9_999]


# Errors of the whole request.


@pytest.mark.parametrize("code", [Code.INVALID_SHARE_SESSION_EPOCH])
def test_a_wrong_epoch_opens_anew_and_loses_nothing(code: Code):
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    harness.prefetch.waiting_readers = 1

    harness.respond(harness.next_fetch(), fetch_response(error=code))
    harness.now = harness.leader.next_deadline(harness.now)
    opening = harness.next_fetch()
    harness.respond(opening, fetch_response())
    after = harness.next_fetch()

    assert (0, frozenset({P0}), {}) == (
        opening.share_session_epoch,
        opening.added,
        opening.acknowledgements,
    )
    assert {0: ACCEPT} == acks_by_offset(after.acknowledgements[P0])
    assert [] == harness.errors + harness.take_events(LocksLost)
    assert not lease.lock_scope.ended


def test_a_wrong_epoch_of_an_acknowledgement_opens_anew_to_say_it_again():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)

    harness.respond(
        harness.flush_acks(),
        acknowledge_response(error=Code.INVALID_SHARE_SESSION_EPOCH),
    )
    harness.now = harness.leader.next_deadline(harness.now)
    opening = harness.next_fetch()
    harness.respond(opening, fetch_response())
    again = harness.next_acknowledge()  # it has waited long enough
    harness.respond(again, acknowledge_response(partition_response(P0)))

    assert (0, 0.0, 0) == (
        opening.share_session_epoch,
        opening.max_wait,
        opening.max_bytes,
    )
    assert {0: ACCEPT} == acks_by_offset(again.acknowledgements[P0])
    assert [None] == harness.errors


def test_a_forgotten_session_takes_its_locks_with_it():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    harness.prefetch.waiting_readers = 1

    harness.respond(
        harness.next_fetch(), fetch_response(error=Code.SHARE_SESSION_NOT_FOUND)
    )
    harness.now = harness.leader.next_deadline(harness.now)

    assert lease.lock_scope.ended
    assert ["SHARE_SESSION_NOT_FOUND"] == harness.errors
    assert [(lease,)] == [h.leases for h in harness.take_events(LocksLost)]
    assert 0 == harness.next_fetch().share_session_epoch


@pytest.mark.parametrize("code", OUTSIDE)
def test_any_other_error_opens_anew_and_fails_what_may_have_been_applied(code: int):
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    harness.prefetch.waiting_readers = 1

    harness.respond(
        harness.next_fetch(), fetch_response(error=code, message="so it says")
    )
    harness.now = harness.leader.next_deadline(harness.now)
    opening = harness.next_fetch()

    assert 1 == len(harness.errors)
    assert None not in harness.errors
    assert (0, {}) == (opening.share_session_epoch, opening.acknowledgements)
    assert not lease.lock_scope.ended


@pytest.mark.parametrize("code", [*OUTSIDE, 122, 123])
def test_an_error_that_stays_is_met_with_growing_pauses(code: int):
    harness = LeaderHarness()
    pauses = []
    for _ in range(8):
        harness.respond(harness.next_fetch(), fetch_response(error=code))
        due = harness.leader.next_deadline(harness.now)
        pauses.append(due - harness.now)
        harness.now = due

    assert sorted(pauses) == pytest.approx(pauses)
    assert 0.8 <= pauses[-1] <= 1.2


@pytest.mark.parametrize(
    "code", [c for c, r in error_actions.FETCH.items() if r is ErrorAction.RAISE_FATAL]
)
def test_a_fatal_error_finishes_the_leader(code: int):
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)

    harness.respond(
        harness.flush_acks(),
        acknowledge_response(error=code, message="so it says"),
    )

    (refused,) = harness.take_events(FatalError)
    assert f"{Code(code).name} (so it says)" in str(refused.error)
    assert harness.leader.finished
    assert harness.next_request() is None
    assert math.inf == harness.leader.next_deadline(harness.now)
    assert [Code(code).name] == harness.errors


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (Code.GROUP_AUTHORIZATION_FAILED, AuthorizationError),
        (Code.UNSUPPORTED_VERSION, UnsupportedVersionError),
        (Code.INVALID_REQUEST, BrokerError),
    ],
)
def test_a_fatal_error_has_the_class_of_its_code(code: Code, kind: type):
    harness = LeaderHarness()

    harness.respond(harness.next_fetch(), fetch_response(error=code))

    assert [kind] == [type(h.error) for h in harness.take_events(FatalError)]


def test_a_throttled_leader_is_left_alone_as_long_as_it_says():
    harness = LeaderHarness()

    harness.respond(
        harness.next_fetch(),
        fetch_response(partition_response(P0, (0, 0)), throttle=3.0),
    )
    harness.take_leases()

    assert harness.next_request() is None
    assert 3.0 == harness.leader.next_deadline(harness.now)


# Errors of partitions.


@pytest.mark.parametrize("code", error_actions.FETCH_PARTITION)
def test_each_code_of_a_partition_has_its_happening(code: int):
    harness = LeaderHarness()
    leader = PartitionLeader(2, 5)

    harness.respond(
        harness.next_fetch(),
        fetch_response(partition_response(P0, error=code, leader=leader)),
    )

    expected = {
        ErrorAction.PROCEED: [],
        ErrorAction.FIND_LEADER: [LeaderMoved(P0, leader)],
        ErrorAction.REFRESH_METADATA: [MetadataStale(Code(code).name)],
        ErrorAction.REPORT: [PartitionError(P0, code, None)],
    }
    assert expected[error_actions.FETCH_PARTITION[code]] == harness.leader.events


@pytest.mark.parametrize(
    "code",
    [Code.KAFKA_STORAGE_ERROR, Code.OFFSET_NOT_AVAILABLE, Code.UNKNOWN_SERVER_ERROR],
)
def test_a_passing_error_is_silent_and_asked_about_after_a_pause(code: Code):
    harness = LeaderHarness()

    harness.respond(
        harness.next_fetch(), fetch_response(partition_response(P0, error=code))
    )

    assert [] == harness.leader.events
    assert harness.next_request() is None
    assert harness.leader.next_deadline(harness.now) < 0.07


def test_an_error_beside_records_causes_no_pause():
    harness = LeaderHarness(P0, P1)

    harness.respond(
        harness.next_fetch(),
        fetch_response(
            partition_response(P0, error=Code.TOPIC_AUTHORIZATION_FAILED),
            partition_response(P1, (0, 3)),
        ),
    )
    leases = harness.take_leases()

    assert [P1] == [lease.share_partition for lease in leases]
    assert 1 == len(harness.take_events(PartitionError))
    assert harness.next_fetch()


def test_an_error_that_passed_is_forgotten():
    harness = LeaderHarness()
    for _ in range(6):
        error = partition_response(P0, error=Code.KAFKA_STORAGE_ERROR)
        harness.respond(harness.next_fetch(), fetch_response(error))
        harness.now = harness.leader.next_deadline(harness.now)

    harness.respond(harness.next_fetch(), fetch_response())
    harness.respond(
        harness.next_fetch(),
        fetch_response(partition_response(P0, error=Code.KAFKA_STORAGE_ERROR)),
    )

    assert harness.leader.next_deadline(harness.now) - harness.now < 0.07


@pytest.mark.parametrize("code", MOVED)
def test_an_acknowledgements_answer_may_name_a_new_leader_too(code: Code):
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 0)))
    lease.acknowledge(0, ACCEPT)
    leader = PartitionLeader(0, 0)

    harness.respond(
        harness.flush_acks(),
        acknowledge_response(
            partition_response(P0, acknowledge_error=code, leader=leader)
        ),
    )

    assert [LeaderMoved(P0, leader)] == harness.leader.events
    assert [code.name] == harness.errors


@pytest.mark.parametrize("code", MOVED)
def test_a_move_with_two_errors_is_reported_once(code: Code):
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 0)))
    lease.acknowledge(0, ACCEPT)
    harness.prefetch.waiting_readers = 1

    harness.respond(
        harness.next_fetch(),
        fetch_response(partition_response(P0, error=code, acknowledge_error=code)),
    )

    assert 1 == len(harness.take_events(LeaderMoved))


# Lost connections.


def test_a_lost_connection_loses_the_session_its_locks_and_what_was_under_way():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)

    harness.fail(harness.flush_acks())
    harness.prefetch.waiting_readers = 1
    blocked = harness.next_request()
    harness.now = harness.leader.next_deadline(harness.now)
    opening = harness.next_fetch()

    assert ["SHARE_SESSION_NOT_FOUND"] == harness.errors
    assert [(lease,)] == [h.leases for h in harness.take_events(LocksLost)]
    assert 1 == len(harness.take_events(MetadataStale))
    assert blocked is None
    assert (0, frozenset({P0}), {}) == (
        opening.share_session_epoch,
        opening.added,
        opening.acknowledgements,
    )


def test_a_lost_connection_with_nothing_held_loses_no_locks():
    harness = LeaderHarness()

    harness.fail(harness.next_fetch())

    assert [] == harness.take_events(LocksLost)


def test_a_broker_that_is_down_is_asked_with_growing_pauses():
    harness = LeaderHarness()
    pauses = []
    for _ in range(8):
        harness.fail(harness.next_fetch())
        due = harness.leader.next_deadline(harness.now)
        pauses.append(due - harness.now)
        harness.now = due

    assert 0.8 <= pauses[-1] <= 1.2


def test_a_broker_too_old_for_the_request_refuses():
    harness = LeaderHarness()
    old = UnsupportedVersionError("too old")

    harness.leader.on_error(harness.next_fetch(), old, harness.now)

    assert [FatalError(old)] == harness.take_events(FatalError)
    assert harness.leader.finished


def test_a_verb_after_the_connection_was_lost_raises():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    harness.prefetch.waiting_readers = 1
    harness.fail(harness.next_fetch())

    with pytest.raises(LockLostError, match="the connection to node"):
        lease.acknowledge(0, ACCEPT)
    assert [] == harness.errors


def test_a_connection_lost_between_two_requests_loses_the_locks_and_opens_anew():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    error = ConnectionFailedError("the broker closed the connection")

    harness.leader.connection_lost(error, harness.now)
    harness.prefetch.waiting_readers = 1
    harness.now = harness.leader.next_deadline(harness.now)
    opening = harness.next_fetch()

    assert lease.lock_scope.ended
    assert ["SHARE_SESSION_NOT_FOUND"] == harness.errors
    assert [(lease,)] == [h.leases for h in harness.take_events(LocksLost)]
    assert 1 == len(harness.take_events(MetadataStale))
    assert (0, {}) == (opening.share_session_epoch, opening.acknowledgements)


def test_a_connection_lost_while_nothing_is_held_ends_a_leader_that_closes():
    harness = LeaderHarness()
    harness.open_session(partition_response(P0, (0, 3)))
    harness.leader.close()

    harness.leader.connection_lost(ConnectionFailedError("gone"), harness.now)

    assert harness.leader.finished
    assert [] == harness.take_events(LocksLost)
