"""The fetches of a leader, and how long they wait."""

import math

import pytest

from sharecons.protocol.fetch.events import (
    Acquired,
    EndpointsLearned,
    UnexpectedResponse,
)
from sharecons.protocol.fetch.fetch_control import SHORT_WAIT
from sharecons.protocol.messages import Endpoint, ShareFetch
from sharecons.record import ACCEPT, RELEASE
from tests.protocol.leader_harness import LeaderHarness
from tests.protocol.message_factories import (
    P0,
    P1,
    P2,
    SETTINGS,
    TOPIC,
    acks_by_offset,
    batch_bytes,
    fetch_response,
    partition_response,
)

# Opening and fetching.


def test_the_first_request_opens_the_session_with_every_partition():
    request = LeaderHarness(P0, P1).next_fetch()

    assert ("billing", "AAAAAAAAAAAAAAAAAAAAAA") == (
        request.group_id,
        request.member_id,
    )
    assert 0 == request.share_session_epoch
    assert frozenset({P0, P1}) == request.added
    assert frozenset() == request.forgotten
    assert {} == request.acknowledgements


def test_later_fetches_are_numbered_and_list_nothing_anew():
    harness = LeaderHarness()
    harness.respond(harness.next_fetch(), fetch_response())

    request = harness.next_fetch()

    assert (1, frozenset()) == (request.share_session_epoch, request.added)


def test_nothing_is_asked_while_nothing_is_wanted():
    harness = LeaderHarness()
    harness.leader.set_partitions(frozenset())

    assert harness.next_request() is None
    assert math.inf == harness.leader.next_deadline(now=0.0)


def test_nothing_is_fetched_before_the_application_asks():
    harness = LeaderHarness()
    harness.prefetch.waiting_readers = 0

    assert harness.next_request() is None
    assert math.inf == harness.leader.next_deadline(now=0.0)


def test_a_fetch_asks_for_the_leaders_share_of_the_allowance():
    harness = LeaderHarness()
    harness.prefetch.allowance = 100
    harness.leader.leader_count = 3

    request = harness.next_fetch()

    assert (34, True) == (request.max_records, request.record_limit)


def test_each_of_many_partitions_may_bring_all_that_a_fetch_asks_for():
    harness = LeaderHarness(P0, P1, P2, max_bytes=1000)
    harness.prefetch.allowance = 10
    first = harness.next_fetch()

    harness.respond(
        first,
        fetch_response(partition_response(P0, (0, 0), records=batch_bytes(1, 70))),
    )
    harness.take_leases()
    harness.prefetch.waiting_readers = 1

    assert [1000, 3 * 10 * 70] == [first.max_bytes, harness.next_fetch().max_bytes]


def test_whole_batches_come_at_full_speed_only():
    harness = LeaderHarness()
    harness.prefetch.allowance = 500

    assert not harness.next_fetch().record_limit


def test_the_limit_is_exact_at_full_speed_too_if_the_user_says_so():
    harness = LeaderHarness(record_limit=True)
    harness.prefetch.allowance = 500

    assert harness.next_fetch().record_limit


def test_acquired_records_make_a_lease_that_counts_from_the_request():
    harness = LeaderHarness()
    harness.now = 100.0
    request = harness.next_fetch()
    harness.now = 100.4

    harness.respond(
        request, fetch_response(partition_response(P0, (5, 9)), lock_timeout=20.0)
    )
    (lease,) = harness.take_leases()

    assert (TOPIC, P0, ((5, 9, 1),)) == (
        lease.topic,
        lease.share_partition,
        lease.acquired,
    )
    assert 120.0 == lease.deadline
    assert (lease,) == harness.batcher.leases


def test_an_answer_without_a_locks_length_leaves_it_as_it_was():
    harness = LeaderHarness()
    harness.respond(harness.next_fetch(), fetch_response(lock_timeout=20.0))
    harness.now = 50.0

    harness.respond(
        harness.next_fetch(),
        fetch_response(partition_response(P0, (0, 0)), lock_timeout=0.0),
    )

    assert 70.0 == harness.take_leases()[0].deadline


def test_a_topic_without_a_name_yet_is_served_all_the_same():
    harness = LeaderHarness()
    harness.leader.topic_names = {}

    assert ["?"] == [
        lease.topic for lease in harness.open_session(partition_response(P0, (0, 0)))
    ]


def test_what_is_acquired_is_counted_as_buffered():
    harness = LeaderHarness()

    harness.respond(
        harness.next_fetch(),
        fetch_response(partition_response(P0, (0, 3)), partition_response(P0, (9, 9))),
    )

    assert 4 == harness.prefetch.buffered


@pytest.mark.parametrize("case", ["unasked", "twice"])
def test_a_partition_that_should_not_be_in_the_answer_is_left_alone(case: str):
    harness = LeaderHarness()
    stranger = partition_response(P1 if case == "unasked" else P0, (7, 9))

    harness.respond(
        harness.next_fetch(), fetch_response(partition_response(P0, (0, 3)), stranger)
    )

    assert 1 == len(harness.take_events(UnexpectedResponse))
    assert 1 == len(harness.take_events(Acquired))
    assert 4 == harness.prefetch.buffered


def test_records_of_a_partition_that_is_no_longer_wanted_are_delivered():
    harness = LeaderHarness(P0, P1)
    request = harness.next_fetch()

    harness.leader.set_partitions(frozenset({P1}))
    harness.respond(request, fetch_response(partition_response(P0, (0, 3))))

    assert [P0] == [lease.share_partition for lease in harness.take_leases()]


def test_an_added_and_a_removed_partition_are_sent_in_one_fetch():
    harness = LeaderHarness(P0, P1)
    harness.respond(harness.next_fetch(), fetch_response())

    harness.leader.set_partitions(frozenset({P1, P2}))
    request = harness.next_fetch()
    harness.respond(request, fetch_response())
    after = harness.next_fetch()

    assert (frozenset({P2}), frozenset({P0})) == (request.added, request.forgotten)
    assert (frozenset(), frozenset()) == (after.added, after.forgotten)


def test_acknowledgements_of_a_partition_that_goes_ride_with_its_forgetting():
    harness = LeaderHarness(P0, P1)
    (lease,) = harness.open_session(partition_response(P0, (0, 0)))
    lease.acknowledge(0, ACCEPT)
    harness.leader.set_partitions(frozenset({P1}))
    harness.prefetch.waiting_readers = 1

    request = harness.next_fetch()
    harness.respond(request, fetch_response(partition_response(P0)))

    assert [P0] == list(request.acknowledgements)
    assert frozenset({P0}) == request.forgotten
    assert [None] == harness.errors
    assert frozenset() == harness.next_fetch().forgotten


def test_endpoints_in_a_response_are_reported():
    harness = LeaderHarness()
    endpoints = {7: Endpoint("broker-7", 9092)}

    harness.respond(harness.next_fetch(), fetch_response(endpoints=endpoints))

    assert [EndpointsLearned(endpoints)] == harness.take_events(EndpointsLearned)


# How long a fetch waits.


def test_a_fetch_waits_long_when_nothing_is_in_the_applications_hands():
    assert SETTINGS.max_wait == LeaderHarness().next_fetch().max_wait


def test_a_fetch_waits_for_moments_while_records_are_in_the_applications_hands():
    harness = LeaderHarness()
    harness.open_session(partition_response(P0, (0, 3)))
    harness.prefetch.waiting_readers = 1

    assert SHORT_WAIT == harness.next_fetch().max_wait


def test_short_waits_grow_while_nothing_comes_and_begin_anew_when_something_does():
    harness = LeaderHarness()
    harness.open_session(partition_response(P0, (0, 3)))
    harness.prefetch.waiting_readers = 1
    waits = []
    for _ in range(5):
        request = harness.next_fetch()
        waits.append(request.max_wait)
        harness.now += request.max_wait
        harness.respond(request, fetch_response())
    harness.respond(
        harness.next_fetch(), fetch_response(partition_response(P0, (5, 6)))
    )
    harness.take_leases()

    assert [0.01, 0.02, 0.04, 0.08, 0.1] == waits
    assert SHORT_WAIT == harness.next_fetch().max_wait


def test_a_fetch_ahead_of_the_work_waits_for_moments_only():
    harness = LeaderHarness()
    harness.prefetch.waiting_readers = 0
    harness.prefetch.on_requested(now=0.0)

    assert SHORT_WAIT == harness.next_fetch().max_wait


def test_a_fetch_that_found_the_end_is_followed_when_the_application_asks():
    harness = LeaderHarness()
    harness.prefetch.allowance = 100
    request = harness.next_fetch()
    harness.respond(request, fetch_response(partition_response(P0, (0, 23))))
    assert 100 == request.max_records

    assert harness.next_request() is None, (
        "though it waits: it was not handed these yet"
    )
    harness.take_leases()
    harness.prefetch.waiting_readers = 0
    assert harness.next_request() is None
    harness.prefetch.waiting_readers = 1
    assert isinstance(harness.next_request(), ShareFetch)


def test_a_fetch_that_found_more_than_it_could_bring_is_followed_at_once():
    harness = LeaderHarness()
    harness.open_session(partition_response(P0, (0, 9)))
    harness.prefetch.on_requested(harness.now)  # in no time: a fast application
    harness.prefetch.allowance = 100
    harness.respond(
        harness.next_fetch(), fetch_response(partition_response(P0, (10, 34)))
    )

    assert isinstance(harness.next_request(), ShareFetch)


def test_a_fetch_that_releases_does_not_wait_for_other_records():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge_open(0, 3, ACCEPT)
    lease.acknowledge(3, RELEASE)
    harness.prefetch.waiting_readers = 1
    request = harness.next_fetch()
    harness.respond(request, fetch_response(partition_response(P0)))

    assert 0.0 == request.max_wait
    assert {3: RELEASE} == {
        o: k
        for o, k in acks_by_offset(request.acknowledgements[P0]).items()
        if k != ACCEPT
    }
    assert SETTINGS.max_wait == harness.next_fetch().max_wait


def test_a_wait_that_the_user_wants_shorter_is_shorter():
    harness = LeaderHarness(max_wait=0.005)
    harness.open_session(partition_response(P0, (0, 3)))
    harness.prefetch.waiting_readers = 1

    assert 0.005 == harness.next_fetch().max_wait


def test_no_wait_is_so_long_that_what_comes_has_lost_its_lock():
    harness = LeaderHarness(max_wait=3600.0)
    first = harness.next_fetch()
    harness.respond(first, fetch_response(lock_timeout=10.0))

    assert 30.0 / 4 == first.max_wait
    assert 10.0 / 4 == harness.next_fetch().max_wait
