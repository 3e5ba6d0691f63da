"""Partitions whose fetches fail: pauses, new attempts and reports."""

import math

import pytest

from sharecons.protocol.codes import Code
from sharecons.protocol.fetch.events import FetchRecovered, PartitionError
from sharecons.protocol.fetch.fetch_pauses import FetchPauses
from sharecons.protocol.fetch.fetchable_partitions import FetchablePartitions
from sharecons.protocol.fetch.leader import Leader
from sharecons.protocol.fetch.start_offsets import KEEP_ALIVE
from sharecons.protocol.partitions import SharePartition
from sharecons.protocol.share_messages import ShareFetch
from sharecons.record import ACCEPT
from tests.protocol.leader_harness import LeaderHarness
from tests.protocol.message_factories import (
    P0,
    P1,
    P2,
    SETTINGS,
    acknowledge_response,
    fetch_response,
    partition_response,
)

FORBIDDEN = Code.TOPIC_AUTHORIZATION_FAILED
OTHER = SharePartition(bytes([8] * 16), 0)
REPORTED = [
    FORBIDDEN,
    Code.GROUP_AUTHORIZATION_FAILED,
    Code.CORRUPT_MESSAGE,
    Code.INVALID_REQUEST,
]


def failed_fetches(*partitions, code=FORBIDDEN):
    return [partition_response(each, error=code) for each in partitions]


# The pauses.


def test_forbidden_partitions_of_a_topic_share_one_pause():
    pauses = FetchPauses()
    for each in (P0, P1, P2):
        pauses.on_error(each, FORBIDDEN, 1.0)

    assert {1.05} == {pauses.paused_until(each) for each in (P0, P1, P2)}
    assert -math.inf == pauses.paused_until(OTHER)


@pytest.mark.parametrize("code", REPORTED)
def test_pauses_of_a_repeated_error_grow_up_to_a_limit(code):
    pauses = FetchPauses()
    now, lengths = 0.0, []
    for _ in range(8):
        pauses.on_error(P0, code, now)
        lengths.append(pauses.paused_until(P0) - now)
        now = pauses.paused_until(P0)

    assert pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1, 1, 1]) == lengths


def test_successful_fetch_of_one_partition_ends_the_pause_of_its_topic():
    """The other leaders of the topic do not wait longer either."""
    pauses = FetchPauses()
    pauses.on_error(P0, FORBIDDEN, 1.0)
    pauses.on_error(P1, FORBIDDEN, 1.0)

    assert [P0] == pauses.take_recovered({P0}, [])
    assert -math.inf == pauses.paused_until(P1)
    assert {P1: FORBIDDEN} == pauses.codes


def test_corrupt_partition_recovers_when_records_are_acquired():
    pauses = FetchPauses()
    pauses.on_error(P0, Code.CORRUPT_MESSAGE, 1.0)

    assert [] == pauses.take_recovered({P0}, [partition_response(P0)])
    assert [P0] == pauses.take_recovered({P0}, [partition_response(P0, (0, 3))])


def test_pause_of_an_unassigned_partition_is_forgotten():
    pauses = FetchPauses()
    pauses.on_error(P0, FORBIDDEN, 1.0)
    pauses.on_error(OTHER, FORBIDDEN, 1.0)
    pauses.keep_only({P0})

    assert {P0: FORBIDDEN} == pauses.codes
    assert -math.inf == pauses.paused_until(OTHER)


def test_fetchable_partitions_are_the_same_object_while_nothing_changes():
    """The session compares by identity (`ShareSession.changes`)."""
    pauses = FetchPauses()
    fetchable = FetchablePartitions(pauses)
    assigned = frozenset({P0, P1, OTHER})
    assert assigned is fetchable.select(assigned, 0.0)

    pauses.on_error(OTHER, FORBIDDEN, 1.0)
    during = fetchable.select(assigned, 1.0)
    pauses.on_error(OTHER, FORBIDDEN, 1.01)

    assert {P0, P1} == during
    assert during is fetchable.select(assigned, 1.04)
    assert 1.05 == fetchable.next_pause_end(assigned, 1.04)
    assert assigned is fetchable.select(assigned, 1.05)
    assert math.inf == fetchable.next_pause_end(assigned, 1.05)


# The leader.


@pytest.mark.parametrize("code", REPORTED)
def test_leader_fetches_other_partitions_during_a_pause(code):
    harness = LeaderHarness(P0, OTHER)
    harness.fetch(*failed_fetches(P0, code=code))
    during = harness.fetch(partition_response(OTHER, (0, 3)))
    harness.take_leases()
    harness.now = 0.06
    after = harness.next_fetch()

    assert {P0} == during.forgotten
    assert {P0} == after.added
    assert not after.forgotten


@pytest.mark.parametrize("code", REPORTED)
def test_leader_with_only_paused_partitions_waits_until_the_pause_ends(code):
    harness = LeaderHarness(P0, P1)
    harness.fetch(*failed_fetches(P0, P1, code=code))

    assert harness.next_request() is None
    assert 0.03 < harness.leader.next_deadline(0.0) <= 0.06
    harness.now = harness.leader.next_deadline(0.0)
    again = harness.next_fetch()
    assert not again.added
    assert not again.forgotten


def test_forbidden_partition_is_fetched_about_once_a_second():
    harness = LeaderHarness(P0, OTHER)
    requests_of_p0 = 0
    for _ in range(2_000):
        due = harness.leader.next_deadline(harness.now)
        harness.now = max(due, harness.now)
        request = harness.next_fetch()
        requests_p0 = P0 not in request.forgotten and (
            P0 in request.added or P0 in harness.session_partitions
        )
        requests_of_p0 += requests_p0
        harness.now += 0.0 if requests_p0 else request.max_wait
        harness.respond(
            request, fetch_response(*failed_fetches(P0) if requests_p0 else ())
        )
        if harness.now > 10:
            break

    assert 8 <= requests_of_p0 <= 17


def test_recovered_partitions_are_reported_once():
    harness = LeaderHarness(P0, P1)
    harness.fetch(*failed_fetches(P0, P1))
    assert [P0, P1] == [
        each.share_partition for each in harness.take_events(PartitionError)
    ]
    harness.now = 1.0

    harness.fetch(partition_response(P0, (0, 3)))
    recovered = harness.take_events(FetchRecovered)
    harness.take_leases()
    harness.fetch(partition_response(P0, (4, 7)))

    assert {P0, P1} == {each.share_partition for each in recovered}
    assert [] == harness.take_events(FetchRecovered)


def test_new_leader_waits_for_the_pause_of_its_partition():
    """A partition keeps its pause when its leader changes."""
    pauses = FetchPauses()
    harness = LeaderHarness(P0)
    harness.leader = Leader(2, SETTINGS, harness.prefetch, harness.batcher, pauses)
    harness.leader.set_partitions(frozenset({P0}))
    pauses.on_error(P0, FORBIDDEN, 0.0)

    assert harness.next_request() is None
    harness.now = harness.leader.next_deadline(0.0)
    harness.fetch(partition_response(P0, (0, 3)))
    assert [FetchRecovered(P0)] == harness.take_events(FetchRecovered)


def test_acknowledgements_of_a_paused_partition_are_sent():
    harness = LeaderHarness(P0, OTHER)
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    harness.prefetch.waiting_readers = 1
    harness.fetch(*failed_fetches(P0))
    lease.acknowledge(0, ACCEPT)
    harness.leader.flush_acks()
    request = harness.next_request()

    assert P0 in request.acknowledgements
    if isinstance(request, ShareFetch):
        assert P0 in request.forgotten
        harness.respond(request, fetch_response(partition_response(P0)))
    else:
        harness.respond(request, acknowledge_response(partition_response(P0)))
    assert [None] == harness.errors


def test_leader_with_an_unreported_error_after_a_pause_waits_again():
    """Errors that are not reported pause the whole leader."""
    harness = LeaderHarness(P0)
    harness.fetch(*failed_fetches(P0))
    harness.now = harness.leader.next_deadline(harness.now)
    harness.fetch(partition_response(P0, error=Code.KAFKA_STORAGE_ERROR))

    assert harness.next_request() is None
    assert harness.leader.next_deadline(harness.now) > harness.now


# Topics that the application wants no records of.


def test_topic_that_is_left_out_leaves_the_session_until_it_is_fetched_again():
    pauses = FetchPauses()
    harness = LeaderHarness(P0, OTHER, pauses=pauses)
    harness.fetch()

    pauses.leave_out({OTHER.topic_id})
    harness.now += 1.0
    without = harness.fetch()
    pauses.leave_out(())
    harness.now += 1.0
    again = harness.next_fetch()

    assert ([OTHER], []) == ([*without.forgotten], [*without.added])
    assert ([], [OTHER]) == ([*again.forgotten], [*again.added])


def test_leader_whose_topics_are_all_left_out_fetches_nothing():
    pauses = FetchPauses()
    harness = LeaderHarness(P0, P1, pauses=pauses)
    harness.fetch()

    pauses.leave_out({P0.topic_id})

    assert harness.next_request() is None
    assert KEEP_ALIVE == harness.leader.next_deadline(harness.now)


def test_partitions_that_are_left_out_are_the_same_object_while_nothing_changes():
    pauses = FetchPauses()
    fetchable = FetchablePartitions(pauses)
    partitions = frozenset({P0, OTHER})
    pauses.leave_out({OTHER.topic_id})

    found = fetchable.select(partitions, 1.0)
    pauses.leave_out({OTHER.topic_id})

    assert frozenset({P0}) == found
    assert found is fetchable.select(partitions, 2.0)
    assert math.inf == fetchable.next_pause_end(partitions, 2.0)
    pauses.leave_out(())
    assert partitions is fetchable.select(partitions, 3.0)
