"""The fetches of a leader: contents and wait times."""

import pytest

from sharecons.protocol.fetch.events import (
    Acquired,
    EndpointsLearned,
    UnexpectedResponse,
)
from sharecons.protocol.fetch.max_wait import SHORT_WAIT
from sharecons.protocol.fetch.start_offsets import KEEP_ALIVE
from sharecons.protocol.partitions import Endpoint
from sharecons.protocol.share_messages import ShareFetch
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


def test_first_fetch_opens_the_session_with_every_partition():
    request = LeaderHarness(P0, P1).next_fetch()

    assert ("billing", "AAAAAAAAAAAAAAAAAAAAAA") == (
        request.group_id,
        request.member_id,
    )
    assert 0 == request.share_session_epoch
    assert frozenset({P0, P1}) == request.added
    assert frozenset() == request.forgotten
    assert {} == request.acknowledgements


def test_leader_without_a_waiting_reader_sends_nothing():
    harness = LeaderHarness()
    harness.open_session()

    assert harness.next_request() is None
    assert KEEP_ALIVE == harness.leader.next_deadline(now=0.0)


def test_fetch_requests_the_leaders_share_of_the_allowance():
    harness = LeaderHarness()
    harness.prefetch.allowance = 100
    harness.leader.leader_count = 3

    request = harness.next_fetch()

    assert (34, True) == (request.max_records, request.record_limit)


def test_max_bytes_allows_each_partition_to_return_all_records():
    harness = LeaderHarness(P0, P1, P2, max_bytes=1000)
    harness.prefetch.allowance = 10
    first = harness.fetch(partition_response(P0, (0, 0), records=batch_bytes(1, 70)))
    harness.take_leases()
    harness.prefetch.waiting_readers = 1

    assert [1000, 3 * 10 * 70] == [first.max_bytes, harness.next_fetch().max_bytes]


def test_fetch_at_full_speed_has_no_record_limit():
    harness = LeaderHarness()
    harness.prefetch.allowance = 500

    assert not harness.next_fetch().record_limit


def test_fetch_at_full_speed_has_a_record_limit_if_configured():
    harness = LeaderHarness(record_limit=True)
    harness.prefetch.allowance = 500

    assert harness.next_fetch().record_limit


def test_lock_of_acquired_records_counts_from_the_request():
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
    assert 120.0 == lease.locks.deadline
    assert (lease,) == harness.batcher.leases


def test_response_without_a_lock_duration_keeps_the_previous_one():
    harness = LeaderHarness()
    harness.fetch(lock_timeout=20.0)
    harness.now = 50.0

    harness.fetch(partition_response(P0, (0, 0)), lock_timeout=0.0)

    assert 70.0 == harness.take_leases()[0].locks.deadline


def test_lease_of_a_topic_with_an_unknown_name_is_delivered():
    harness = LeaderHarness()
    harness.leader.topic_names = {}

    assert ["?"] == [
        lease.topic for lease in harness.open_session(partition_response(P0, (0, 0)))
    ]


def test_leader_has_one_request_in_flight():
    harness = LeaderHarness(P0, P1)

    request = harness.next_fetch()

    assert harness.leader.next_request(harness.now) is None
    harness.respond(request, fetch_response())
    assert harness.next_request() is not None


@pytest.mark.parametrize(
    "responses",
    [
        pytest.param([(P1, (7, 9)), (P0, (0, 3))], id="not requested"),
        pytest.param([(P0, (0, 3)), (P0, (7, 9))], id="twice"),
    ],
)
def test_unexpected_partition_in_the_response_is_reported_and_ignored(responses):
    harness = LeaderHarness()

    harness.fetch(*(partition_response(*each) for each in responses))

    assert 1 == len(harness.take_events(UnexpectedResponse))
    assert 1 == len(harness.take_events(Acquired))
    assert 4 == harness.prefetch.buffered


def test_records_of_a_partition_removed_during_the_fetch_are_delivered():
    harness = LeaderHarness(P0, P1)
    request = harness.next_fetch()

    harness.leader.set_partitions(frozenset({P1}))
    harness.respond(request, fetch_response(partition_response(P0, (0, 3))))

    assert [P0] == [lease.share_partition for lease in harness.take_leases()]


def test_added_and_removed_partitions_are_sent_in_one_fetch():
    harness = LeaderHarness(P0, P1)
    harness.fetch()

    harness.leader.set_partitions(frozenset({P1, P2}))
    request = harness.fetch()
    after = harness.next_fetch()

    assert (frozenset({P2}), frozenset({P0})) == (request.added, request.forgotten)
    assert (frozenset(), frozenset()) == (after.added, after.forgotten)


def test_endpoints_in_a_response_are_reported():
    harness = LeaderHarness()
    endpoints = {7: Endpoint("broker-7", 9092)}

    harness.fetch(endpoints=endpoints)

    assert [EndpointsLearned(endpoints)] == harness.take_events(EndpointsLearned)


# Wait times of fetches.


def test_fetch_without_held_records_waits_for_max_wait():
    assert SETTINGS.max_wait == LeaderHarness().next_fetch().max_wait


def test_fetch_while_records_are_held_waits_until_the_next_acknowledgement():
    harness = LeaderHarness()
    harness.open_session(partition_response(P0, (0, 3)))
    harness.prefetch.waiting_readers = 1
    harness.prefetch.next_ack = lambda: 7.3
    waits = []
    for harness.now in (1.0, 7.0, 7.299, 8.0):
        request = harness.next_fetch()
        waits.append(request.max_wait)
        harness.respond(request, fetch_response(partition_response(P0, (5, 6))))
        harness.take_leases()

    assert pytest.approx([SETTINGS.max_wait, 0.3, SHORT_WAIT, SHORT_WAIT]) == waits


def test_short_waits_grow_with_empty_responses_and_start_again_after_records():
    harness = LeaderHarness()
    harness.open_session(partition_response(P0, (0, 3)))
    harness.prefetch.waiting_readers = 1
    waits = []
    for _ in range(5):
        request = harness.next_fetch()
        waits.append(request.max_wait)
        harness.now += request.max_wait
        harness.respond(request, fetch_response())
    harness.fetch(partition_response(P0, (5, 6)))
    harness.take_leases()

    assert [0.01, 0.02, 0.04, 0.08, 0.1] == waits
    assert SHORT_WAIT == harness.next_fetch().max_wait


def test_fetch_at_the_end_of_the_log_is_followed_when_a_reader_waits():
    harness = LeaderHarness()
    harness.prefetch.allowance = 100
    request = harness.fetch(partition_response(P0, (0, 23)))
    assert 100 == request.max_records

    assert harness.next_request() is None, "the records are not delivered yet"
    harness.take_leases()
    harness.prefetch.waiting_readers = 0
    assert harness.next_request() is None
    harness.prefetch.waiting_readers = 1
    assert isinstance(harness.next_request(), ShareFetch)


def test_fetch_that_returned_all_requested_records_is_followed_immediately():
    harness = LeaderHarness()
    harness.open_session(partition_response(P0, (0, 9)))
    harness.prefetch.on_requested(harness.now)  # it processed the records in no time
    harness.prefetch.allowance = 100
    harness.fetch(partition_response(P0, (10, 34)))

    assert isinstance(harness.next_request(), ShareFetch)


def test_fetch_with_releases_does_not_wait():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge_open(0, 3, ACCEPT)
    lease.acknowledge(3, RELEASE)
    harness.prefetch.waiting_readers = 1
    request = harness.fetch(partition_response(P0))

    assert 0.0 == request.max_wait
    assert {3: RELEASE} == {
        o: k
        for o, k in acks_by_offset(request.acknowledgements[P0]).items()
        if k != ACCEPT
    }
    assert SETTINGS.max_wait == harness.next_fetch().max_wait


def test_wait_is_at_most_a_quarter_of_the_lock_duration():
    harness = LeaderHarness(max_wait=3600.0)
    first = harness.fetch(lock_timeout=10.0)

    assert 30.0 / 4 == first.max_wait
    assert 10.0 / 4 == harness.next_fetch().max_wait
