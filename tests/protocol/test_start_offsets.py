"""Fetches that fix the start offsets of assigned partitions and acquire nothing."""

import math

import pytest

from sharecons.protocol.codes import Code
from sharecons.protocol.fetch.start_offsets import KEEP_ALIVE, MAX_ATTEMPTS
from sharecons.protocol.share_messages import ShareFetch
from tests.protocol.leader_harness import CONNECTION_LOST, LeaderHarness
from tests.protocol.message_factories import P0, P1, fetch_response, partition_response


def idle_leader(*partitions) -> LeaderHarness:
    """Return a leader whose application requests no records."""
    harness = LeaderHarness(*partitions)
    harness.prefetch.waiting_readers = 0
    return harness


def next_start_fetch(harness: LeaderHarness) -> ShareFetch:
    """Return the start fetch that is due after a backoff."""
    harness.now = max(harness.now, harness.leader.next_deadline(harness.now))
    return harness.next_fetch()


def test_new_partition_is_fetched_once_without_records():
    harness = idle_leader(P0)

    fetch = harness.fetch(partition_response(P0))

    assert fetch.max_records < 0
    assert 0 == fetch.min_bytes
    assert frozenset({P0}) == fetch.added
    assert frozenset({P0}) == harness.leader.fixed_starts
    assert 1 == harness.starts_fixed
    assert harness.next_request() is None
    assert KEEP_ALIVE == harness.leader.next_deadline(harness.now)


def test_later_partition_is_added_to_the_session():
    harness = LeaderHarness(P0)
    harness.open_session()
    harness.leader.set_partitions(frozenset({P0, P1}))

    fetch = harness.fetch(partition_response(P1))

    assert 1 == fetch.share_session_epoch
    assert frozenset({P1}) == fetch.added
    assert frozenset({P0, P1}) == harness.leader.fixed_starts
    assert harness.next_request() is None


def test_fetch_for_several_partitions_waits_until_all_are_loaded():
    fetch = idle_leader(P0, P1).next_fetch()

    assert fetch.min_bytes > fetch.max_bytes
    assert 0 < fetch.max_wait <= 0.1


def test_partition_that_is_not_listed_is_fetched_again_in_a_new_session():
    harness = idle_leader(P0, P1)

    harness.fetch(partition_response(P0))
    early = harness.next_request()
    fetch = next_start_fetch(harness)
    harness.respond(fetch, fetch_response(partition_response(P1)))

    assert early is None
    assert 0 == fetch.share_session_epoch
    assert frozenset({P0, P1}) == fetch.added
    assert frozenset({P0, P1}) == harness.leader.fixed_starts
    assert harness.next_request() is None


def test_partition_that_is_never_listed_is_fetched_a_limited_number_of_times():
    harness = idle_leader(P0)
    fetches = 0

    while not harness.leader.fixed_starts:
        harness.respond(next_start_fetch(harness), fetch_response())
        fetches += 1

    assert MAX_ATTEMPTS == fetches
    assert 4 < harness.now < 10
    assert frozenset({P0}) == harness.leader.fixed_starts


def test_reader_does_not_wait_for_the_backoff_of_a_start_fetch():
    harness = idle_leader(P0)
    harness.fetch()

    harness.prefetch.waiting_readers = 1

    assert harness.next_fetch().max_records > 0


@pytest.mark.parametrize(
    "code",
    [Code.NOT_LEADER_OR_FOLLOWER, Code.UNKNOWN_TOPIC_ID, Code.UNKNOWN_SERVER_ERROR],
)
def test_partition_with_a_passing_error_is_fetched_again(code: Code):
    harness = idle_leader(P0)
    harness.fetch(partition_response(P0, error=code))

    assert not harness.leader.fixed_starts
    assert next_start_fetch(harness).max_records < 0


def test_unused_connection_is_kept_open_by_fetches_without_records():
    harness = idle_leader(P0, P1)
    loaded = (partition_response(P0), partition_response(P1))
    harness.fetch(*loaded)

    for number in range(1, 20):
        fetch = next_start_fetch(harness)
        harness.respond(fetch, fetch_response())

        assert number * KEEP_ALIVE == harness.now
        assert (number, -1) == (fetch.share_session_epoch, fetch.max_records)
        assert not fetch.added | fetch.forgotten


def test_leader_without_a_session_or_partitions_keeps_no_connection():
    harness = idle_leader(P0)
    harness.fetch(partition_response(P0))

    harness.leader.set_partitions(frozenset())
    assert math.inf == harness.leader.next_deadline(harness.now)
    harness.leader.set_partitions(frozenset({P0}))
    harness.leader.connection_lost(CONNECTION_LOST, harness.now)
    harness.respond(
        next_start_fetch(harness), fetch_response(error=Code.UNKNOWN_SERVER_ERROR)
    )

    assert harness.leader.next_deadline(harness.now) < KEEP_ALIVE


def test_starts_are_fixed_again_after_the_connection_was_lost():
    harness = idle_leader(P0)
    harness.fetch(partition_response(P0))

    harness.leader.connection_lost(CONNECTION_LOST, harness.now)
    early = harness.next_request()
    fetch = next_start_fetch(harness)

    assert early is None
    assert not harness.leader.fixed_starts
    assert 0 == fetch.share_session_epoch


def test_broker_that_rejects_the_negative_limit_gets_no_further_start_fetch():
    harness = idle_leader(P0)

    harness.fetch(error=Code.INVALID_REQUEST)

    assert not harness.leader.finished
    assert 1 == harness.starts_fixed
    harness.now += 10
    assert harness.next_request() is None
    harness.prefetch.waiting_readers = 1
    assert harness.next_fetch().max_records > 0


def test_closing_sends_no_start_fetch():
    harness = idle_leader(P0)

    harness.leader.close()

    assert harness.leader.finished
