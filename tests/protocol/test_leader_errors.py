"""A leader and the errors of its broker and connection."""

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
from sharecons.protocol.fetch.retried_errors import (
    AcksAccepted,
    AcksRejected,
    FetchAccepted,
    FetchRejected,
    PartitionFetched,
    PartitionRetried,
)
from sharecons.protocol.partitions import PartitionLeader
from sharecons.record import ACCEPT
from tests.protocol.leader_harness import LeaderHarness
from tests.protocol.message_factories import (
    P0,
    P1,
    acks_by_offset,
    partition_response,
)

MOVED = (Code.NOT_LEADER_OR_FOLLOWER, Code.FENCED_LEADER_EPOCH)
OTHER_ERRORS = [Code.UNKNOWN_SERVER_ERROR, Code.SHARE_SESSION_LIMIT_REACHED, 9_999]


# Errors of the whole request.


@pytest.mark.parametrize("code", [Code.INVALID_SHARE_SESSION_EPOCH])
def test_invalid_session_epoch_of_a_fetch_opens_a_session_and_keeps_locks(code: Code):
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    harness.prefetch.waiting_readers = 1

    harness.fetch(error=code)
    harness.now = harness.leader.next_deadline(harness.now)
    opening = harness.fetch()
    after = harness.next_fetch()

    assert (0, frozenset({P0}), {}) == (
        opening.share_session_epoch,
        opening.added,
        opening.acknowledgements,
    )
    assert {0: ACCEPT} == acks_by_offset(after.acknowledgements[P0])
    assert [] == harness.errors + harness.take_events(LocksLost)
    assert not lease.lock_scope.ended


def test_invalid_session_epoch_of_an_acknowledgement_opens_a_session_and_resends():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)

    harness.acknowledge_later(error=Code.INVALID_SHARE_SESSION_EPOCH)
    harness.now = harness.leader.next_deadline(harness.now)
    opening = harness.fetch()
    again = harness.acknowledge(partition_response(P0))

    assert (0, 0.0, 0) == (
        opening.share_session_epoch,
        opening.max_wait,
        opening.max_bytes,
    )
    assert {0: ACCEPT} == acks_by_offset(again.acknowledgements[P0])
    assert [None] == harness.errors


def test_unknown_session_loses_its_locks():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    harness.prefetch.waiting_readers = 1

    harness.fetch(error=Code.SHARE_SESSION_NOT_FOUND)
    harness.now = harness.leader.next_deadline(harness.now)

    assert lease.lock_scope.ended
    assert ["SHARE_SESSION_NOT_FOUND"] == harness.errors
    assert [(lease,)] == [event.leases for event in harness.take_events(LocksLost)]
    assert 0 == harness.next_fetch().share_session_epoch


@pytest.mark.parametrize("code", OTHER_ERRORS)
def test_other_error_opens_a_session_and_fails_the_acknowledgements_sent(code: int):
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    harness.prefetch.waiting_readers = 1

    harness.fetch(error=code, message="a message")
    harness.now = harness.leader.next_deadline(harness.now)
    opening = harness.next_fetch()

    assert 1 == len(harness.errors)
    assert None not in harness.errors
    assert (0, {}) == (opening.share_session_epoch, opening.acknowledgements)
    assert not lease.lock_scope.ended


@pytest.mark.parametrize("code", [*OTHER_ERRORS, 122, 123])
def test_repeated_error_causes_growing_pauses(code: int):
    harness = LeaderHarness()
    pauses = []
    for _ in range(8):
        harness.fetch(error=code)
        due = harness.leader.next_deadline(harness.now)
        pauses.append(due - harness.now)
        harness.now = due

    assert sorted(pauses) == pytest.approx(pauses)
    assert 0.8 <= pauses[-1] <= 1.2


@pytest.mark.parametrize(
    "code", [c for c, r in error_actions.FETCH.items() if r is ErrorAction.RAISE_FATAL]
)
def test_fatal_error_finishes_the_leader(code: int):
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)

    harness.acknowledge_later(error=code, message="a message")

    (fatal,) = harness.take_events(FatalError)
    assert f"{Code(code).name} (a message)" in str(fatal.error)
    assert harness.leader.finished
    assert harness.next_request() is None
    assert math.inf == harness.leader.next_deadline(harness.now)
    (result,) = harness.result_log.results
    assert (Code(code).name, "a message") == (result.error.name, result.error.message)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (Code.GROUP_AUTHORIZATION_FAILED, AuthorizationError),
        (Code.UNSUPPORTED_VERSION, UnsupportedVersionError),
        (Code.INVALID_REQUEST, BrokerError),
    ],
)
def test_fatal_error_has_the_class_of_its_code(code: Code, kind: type):
    harness = LeaderHarness()

    harness.fetch(error=code)

    assert [kind] == [type(event.error) for event in harness.take_events(FatalError)]


def test_throttled_leader_waits_for_the_throttle_time():
    harness = LeaderHarness()

    harness.fetch(partition_response(P0, (0, 0)), throttle=3.0)
    harness.take_leases()

    assert harness.next_request() is None
    assert 3.0 == harness.leader.next_deadline(harness.now)


# Errors of partitions.


@pytest.mark.parametrize("code", error_actions.FETCH_PARTITION)
def test_each_partition_error_has_the_event_of_its_action(code: int):
    harness = LeaderHarness()
    leader = PartitionLeader(2, 5)

    harness.fetch(partition_response(P0, error=code, leader=leader))

    expected = {
        ErrorAction.PROCEED: [],
        ErrorAction.FIND_LEADER: [
            LeaderMoved(P0, leader),
            PartitionRetried(P0, code, None),
        ],
        ErrorAction.REFRESH_METADATA: [
            MetadataStale(Code(code).name, is_logged=True),
            PartitionRetried(P0, code, None),
        ],
        ErrorAction.REPORT: [PartitionError(P0, code, None)],
    }
    assert expected[error_actions.FETCH_PARTITION[code]] == harness.leader.events


def test_partition_that_is_fetched_again_has_one_event():
    harness = LeaderHarness(P0, P1)
    failed = partition_response(P0, error=Code.KAFKA_STORAGE_ERROR)
    for response in (failed, failed, partition_response(P1, (0, 3))):
        harness.fetch(response)
        harness.now = harness.leader.next_deadline(harness.now)
    harness.fetch()

    assert [PartitionFetched(P0)] == harness.take_events(PartitionFetched)


@pytest.mark.parametrize("code", OTHER_ERRORS)
def test_rejected_fetches_have_an_event_each_and_one_at_their_end(code: int):
    harness = LeaderHarness()
    for error in (code, code, 0, 0):
        harness.fetch(error=error)
        harness.now = max(harness.now, harness.leader.next_deadline(harness.now))
    node_id = harness.leader.node_id

    assert 2 * [FetchRejected(node_id, code, None)] == harness.take_events(
        FetchRejected
    )
    assert [FetchAccepted(node_id)] == harness.take_events(FetchAccepted)


def test_pauses_start_again_after_a_success():
    harness = LeaderHarness()
    for _ in range(6):
        error = partition_response(P0, error=Code.KAFKA_STORAGE_ERROR)
        harness.fetch(error)
        harness.now = harness.leader.next_deadline(harness.now)

    harness.fetch()
    harness.fetch(partition_response(P0, error=Code.KAFKA_STORAGE_ERROR))

    assert harness.leader.next_deadline(harness.now) - harness.now < 0.07


@pytest.mark.parametrize("code", MOVED)
def test_acknowledge_response_with_a_new_leader_is_reported(code: Code):
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 0)))
    lease.acknowledge(0, ACCEPT)
    leader = PartitionLeader(0, 0)

    harness.acknowledge_later(
        partition_response(P0, acknowledge_error=code, leader=leader)
    )

    assert [
        AcksRejected(P0, code, None, is_whole=False),
        LeaderMoved(P0, leader),
    ] == harness.leader.events
    assert [code.name] == harness.errors


def test_rejected_acknowledgements_of_a_former_partition_are_forgotten():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 1)))
    lease.acknowledge(0, ACCEPT)
    deleted = Code.UNKNOWN_TOPIC_OR_PARTITION
    harness.acknowledge_later(partition_response(P0, acknowledge_error=deleted))
    harness.leader.set_partitions(frozenset())
    lease.acknowledge(1, ACCEPT)
    harness.acknowledge_later(partition_response(P0))

    assert 1 == len(harness.take_events(AcksRejected))
    assert [] == harness.take_events(AcksAccepted)


@pytest.mark.parametrize("code", MOVED)
def test_move_in_fetch_and_acknowledge_errors_is_reported_once(code: Code):
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 0)))
    lease.acknowledge(0, ACCEPT)
    harness.prefetch.waiting_readers = 1

    harness.fetch(partition_response(P0, error=code, acknowledge_error=code))

    assert 1 == len(harness.take_events(LeaderMoved))


# Lost connections.


def test_connection_lost_during_a_request_loses_session_locks_and_acknowledgements():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)

    harness.fail(harness.flush_acks())
    harness.prefetch.waiting_readers = 1
    during_pause = harness.next_request()
    harness.now = harness.leader.next_deadline(harness.now)
    opening = harness.next_fetch()

    assert ["NETWORK_EXCEPTION"] == harness.errors
    assert [(lease,)] == [event.leases for event in harness.take_events(LocksLost)]
    assert 1 == len(harness.take_events(MetadataStale))
    assert during_pause is None
    assert (0, frozenset({P0}), {}) == (
        opening.share_session_epoch,
        opening.added,
        opening.acknowledgements,
    )


def test_lost_connection_without_held_records_loses_no_locks():
    harness = LeaderHarness()

    harness.fail(harness.next_fetch())

    assert [] == harness.take_events(LocksLost)


def test_unsupported_fetch_is_fatal():
    harness = LeaderHarness()
    old = UnsupportedVersionError("too old")

    harness.leader.on_error(harness.next_fetch(), old, harness.now)

    assert [FatalError(old)] == harness.take_events(FatalError)
    assert harness.leader.finished


def test_acknowledgement_after_the_connection_was_lost_raises():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    harness.prefetch.waiting_readers = 1
    harness.fail(harness.next_fetch())

    with pytest.raises(LockLostError, match="the connection to node"):
        lease.acknowledge(0, ACCEPT)
    assert [] == harness.errors


def test_connection_lost_between_requests_loses_locks_and_opens_a_session():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    error = ConnectionFailedError("the broker closed the connection")

    harness.leader.connection_lost(error, harness.now)
    harness.prefetch.waiting_readers = 1
    harness.now = harness.leader.next_deadline(harness.now)
    opening = harness.next_fetch()

    assert lease.lock_scope.ended
    assert ["NETWORK_EXCEPTION"] == harness.errors
    assert [(lease,)] == [event.leases for event in harness.take_events(LocksLost)]
    assert 1 == len(harness.take_events(MetadataStale))
    assert (0, {}) == (opening.share_session_epoch, opening.acknowledgements)


def test_connection_lost_while_closing_finishes_the_leader():
    harness = LeaderHarness()
    harness.open_session(partition_response(P0, (0, 3)))
    harness.leader.close()

    harness.leader.connection_lost(ConnectionFailedError("gone"), harness.now)

    assert harness.leader.finished
    assert [] == harness.take_events(LocksLost)
