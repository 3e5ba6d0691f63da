"""The end of a leader: it becomes idle, or it is closed."""

import math

import pytest

from sharecons.errors import LockLostError
from sharecons.protocol.codes import Code
from sharecons.protocol.fetch.events import LocksLost, MetadataStale
from sharecons.protocol.fetch.session_manager import CLOSING
from sharecons.record import ACCEPT, RELEASE, RENEW
from tests.protocol.leader_harness import LeaderHarness
from tests.protocol.message_factories import (
    P0,
    acks_by_offset,
    fetch_response,
    partition_response,
)

OTHER_ERRORS = [Code.UNKNOWN_SERVER_ERROR, Code.SHARE_SESSION_LIMIT_REACHED, 9_999]


# Idle leaders.


@pytest.mark.parametrize("reason", ["assigned", "held", "pending", "in flight"])
def test_leader_is_not_idle_while_something_is(reason: str):
    harness = LeaderHarness()
    leases = (
        harness.open_session(partition_response(P0, (0, 0)))
        if reason != "in flight"
        else harness.open_session()
    )
    if reason == "in flight":
        harness.prefetch.waiting_readers = 1
        harness.next_fetch()
    if reason != "assigned":
        harness.leader.set_partitions(frozenset())
    if reason == "pending":
        leases[0].acknowledge(0, ACCEPT)

    assert not harness.leader.is_idle(harness.now)


def test_leader_is_idle_after_the_locks_ended():
    harness = LeaderHarness()
    harness.open_session(partition_response(P0, (0, 0)))
    harness.leader.set_partitions(frozenset())

    assert harness.leader.is_idle(now=30.0)


# Closing.


def test_closing_before_the_first_request_finishes_immediately():
    harness = LeaderHarness()

    harness.leader.close()

    assert harness.leader.finished
    assert math.inf == harness.leader.next_deadline(harness.now)


def test_last_acknowledgements_are_sent_with_the_request_that_closes_the_session():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge_open(0, 2, ACCEPT)

    harness.leader.close()
    request = harness.acknowledge(partition_response(P0))

    assert CLOSING == request.share_session_epoch
    assert {0: ACCEPT, 1: ACCEPT} == acks_by_offset(request.acknowledgements[P0])
    assert [None] == harness.errors
    assert harness.leader.finished
    assert lease.lock_scope.ended


def test_closing_waits_for_the_fetch_in_flight():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    harness.prefetch.waiting_readers = 1
    in_flight = harness.next_fetch()

    harness.leader.close()
    ended = harness.leader.finished
    harness.respond(in_flight, fetch_response(partition_response(P0, (4, 5))))
    request = harness.next_acknowledge()

    assert not ended
    assert [None] == harness.errors
    assert (CLOSING, {}) == (request.share_session_epoch, request.acknowledgements)


def test_closing_during_the_first_fetch_closes_the_new_session():
    harness = LeaderHarness()
    opening = harness.next_fetch()

    harness.leader.close()
    ended = harness.leader.finished
    harness.respond(opening, fetch_response(partition_response(P0, (0, 3))))
    request = harness.acknowledge()

    assert (False, CLOSING) == (ended, request.share_session_epoch)
    assert harness.leader.finished


@pytest.mark.parametrize("code", [*OTHER_ERRORS, 122, 123])
def test_closing_finishes_if_the_first_fetch_fails(code: int):
    harness = LeaderHarness()
    opening = harness.next_fetch()
    harness.leader.close()

    harness.respond(opening, fetch_response(error=code))

    assert harness.next_request() is None
    assert harness.leader.finished


def test_closing_finishes_if_the_connection_is_lost():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    harness.leader.close()

    harness.fail(harness.next_acknowledge())

    assert harness.leader.finished
    assert ["NETWORK_EXCEPTION"] == harness.errors
    assert [] == harness.take_events(MetadataStale) + harness.take_events(LocksLost)


@pytest.mark.parametrize("code", [*OTHER_ERRORS, 122, 123, 30, 42])
def test_closing_finishes_after_any_error(code: int):
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    harness.leader.close()

    harness.acknowledge(error=code)

    assert harness.leader.finished
    assert 1 == len(harness.errors)
    assert None not in harness.errors


@pytest.mark.parametrize("code", [Code.INVALID_RECORD_STATE, Code.REQUEST_TIMED_OUT])
def test_acknowledgements_that_fail_while_closing_are_not_retried(code: Code):
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge_open(0, 4, ACCEPT)
    harness.leader.close()

    harness.acknowledge(partition_response(P0, acknowledge_error=code))

    assert harness.leader.finished
    assert {"SHARE_SESSION_NOT_FOUND"} == set(harness.errors)
    assert 4 == sum(
        r.last_offset - r.first_offset + 1 for r in harness.result_log.results
    )


def test_acknowledgements_that_need_separate_requests_are_sent_before_the_close():
    harness = LeaderHarness()
    (early,) = harness.open_session(partition_response(P0, (0, 0)))
    harness.now = 25.0
    (late,) = harness.fetch_more(partition_response(P0, (5, 5)))
    early.acknowledge(0, ACCEPT)
    late.acknowledge(5, ACCEPT)
    harness.now = 29.5

    harness.leader.close()
    first = harness.acknowledge(partition_response(P0))
    second = harness.acknowledge(partition_response(P0))

    assert ({0: ACCEPT}, {5: ACCEPT}) == (
        acks_by_offset(first.acknowledgements[P0]),
        acks_by_offset(second.acknowledgements[P0]),
    )
    assert CLOSING == second.share_session_epoch != first.share_session_epoch
    assert [None, None] == harness.errors


def test_retry_while_closing_has_a_pause():
    harness = LeaderHarness()
    (early,) = harness.open_session(partition_response(P0, (0, 0)))
    harness.now = 20.0
    (late,) = harness.fetch_more(partition_response(P0, (5, 5)))
    early.acknowledge(0, ACCEPT)
    late.acknowledge(5, ACCEPT)
    harness.now = 29.5
    harness.leader.close()

    failed = partition_response(P0, acknowledge_error=Code.REQUEST_TIMED_OUT)
    harness.acknowledge(failed)

    assert harness.next_request() is None
    assert 29.5 < harness.leader.next_deadline(harness.now) < 29.6


def test_renewals_fail_when_the_leader_closes():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge(0, RENEW)
    lease.acknowledge(1, RELEASE)

    harness.leader.close()
    request = harness.next_acknowledge()

    assert (CLOSING, False) == (request.share_session_epoch, request.is_renew_ack)
    assert {1: RELEASE} == acks_by_offset(request.acknowledgements[P0])
    assert ["SHARE_SESSION_NOT_FOUND"] == harness.errors


def test_closing_without_an_open_session_fails_pending_acknowledgements():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    harness.acknowledge_later(error=Code.INVALID_SHARE_SESSION_EPOCH)

    harness.leader.close()

    assert harness.leader.finished
    assert ["SHARE_SESSION_NOT_FOUND"] == harness.errors


def test_closing_does_not_wait_for_a_pause_after_an_error():
    harness = LeaderHarness()
    harness.open_session()
    harness.prefetch.waiting_readers = 1
    harness.fetch(partition_response(P0, error=Code.KAFKA_STORAGE_ERROR))

    harness.leader.close()

    assert CLOSING == harness.next_acknowledge().share_session_epoch


def test_acknowledgement_after_the_close_raises():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    harness.leader.close()
    harness.acknowledge()

    with pytest.raises(LockLostError, match="the session was closed"):
        lease.acknowledge(0, ACCEPT)
