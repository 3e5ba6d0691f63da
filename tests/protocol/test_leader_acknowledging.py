"""The acknowledgements of a leader: their requests and times."""

import pytest

from sharecons.protocol.acknowledge.commit_waiter import CommitWaiter
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.linger import ACK_DELAY
from sharecons.protocol.codes import Code
from sharecons.protocol.fetch.events import Acquired
from sharecons.protocol.share_messages import ShareFetch
from sharecons.record import ACCEPT, RENEW
from tests.protocol.leader_harness import LeaderHarness
from tests.protocol.message_factories import (
    P0,
    P1,
    SETTINGS,
    acknowledge_response,
    acks_by_offset,
    fetch_response,
    partition_response,
)


def test_errors_of_fetch_and_acknowledgement_of_a_partition_are_independent():
    harness = LeaderHarness(P0, P1)
    leases = harness.open_session(
        partition_response(P0, (0, 0)), partition_response(P1, (0, 0))
    )
    for lease in leases:
        lease.acknowledge(0, ACCEPT)
    harness.prefetch.waiting_readers = 1

    harness.fetch(
        partition_response(P0, (1, 2), acknowledge_error=Code.FENCED_STATE_EPOCH),
        partition_response(P1, error=Code.KAFKA_STORAGE_ERROR),
    )

    assert {"FENCED_STATE_EPOCH", None} == set(harness.errors)
    assert [P0] == [
        event.lease.share_partition for event in harness.take_events(Acquired)
    ]


def test_acknowledgements_without_a_fetch_are_sent_after_the_linger_time():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)

    waited = harness.next_request()
    due = harness.leader.next_deadline(harness.now)
    harness.now = due
    request = harness.next_acknowledge()

    assert (None, ACK_DELAY) == (waited, due)
    assert due < 0.005, "leaves time to send within 5 ms"
    assert {0: ACCEPT} == acks_by_offset(request.acknowledgements[P0])
    assert (1, False) == (request.share_session_epoch, request.is_renew_ack)


def fetch_one(harness: LeaderHarness, offset: int) -> tuple[ShareFetch, list[Lease]]:
    """Fetch one record for a waiting reader; return the fetch and the leases."""
    harness.prefetch.waiting_readers = 1
    request = harness.fetch(partition_response(P0, (offset, offset)))
    harness.prefetch.waiting_readers = 0
    return request, harness.take_leases()


def leader_with_single_records(
    seconds: float = 0.001, records: int = 30
) -> tuple[LeaderHarness, Lease]:
    """Return a leader that received single records at this interval.

    All of them are acknowledged except the last, whose lease is returned as well.
    """
    harness = LeaderHarness()
    harness.prefetch.allowance = 500
    _, (lease,) = fetch_one(harness, 0)
    for offset in range(1, records):
        lease.acknowledge(offset - 1, ACCEPT)
        harness.now += seconds
        _, (lease,) = fetch_one(harness, offset)
    lease.acknowledge(records - 1, ACCEPT)
    harness.leader.flush_acks()
    harness.now += seconds
    _, (lease,) = fetch_one(harness, records)
    assert not harness.batcher.has_pending
    return harness, lease


def offsets_per_fetch(
    harness: LeaderHarness, lease: Lease, seconds: float, fetches: int
) -> list[set[int]]:
    """Return the offsets that each of the next fetches acknowledges."""
    offsets: list[set[int]] = []
    for offset in range(lease.acquired[0][0], lease.acquired[0][0] + fetches):
        lease.acknowledge(offset, ACCEPT)
        harness.now += seconds
        request, (lease,) = fetch_one(harness, offset + 1)
        offsets.append(set(acks_by_offset(request.acknowledgements.get(P0, ()))))
    return offsets


def test_acknowledgements_of_single_records_are_sent_with_every_few_fetches():
    harness, lease = leader_with_single_records(0.001)

    found = offsets_per_fetch(harness, lease, 0.001, fetches=30)

    sizes = {len(offsets) for offsets in found}
    assert {0, int(ACK_DELAY / 0.001) + 1} == sizes
    assert set(range(30, 55)) <= set().union(*found)


def test_fetch_without_acknowledgements_waits_for_at_most_the_linger_time():
    harness, lease = leader_with_single_records(0.001)
    lease.acknowledge(30, ACCEPT)

    request, _ = fetch_one(harness, 31)

    assert {} == request.acknowledgements
    assert ACK_DELAY == pytest.approx(request.max_wait)


def test_acknowledgements_are_sent_in_time_if_no_further_record_arrives():
    harness, lease = leader_with_single_records(0.001)
    lease.acknowledge(30, ACCEPT)
    harness.prefetch.waiting_readers = 1
    start = harness.now
    waited = harness.next_fetch()
    harness.now += waited.max_wait
    harness.respond(waited, fetch_response())

    request = harness.next_fetch()

    assert {} == waited.acknowledgements
    assert {30: ACCEPT} == acks_by_offset(request.acknowledgements[P0])
    assert harness.now - start <= ACK_DELAY + 1e-9


def test_acknowledgements_are_sent_with_each_fetch_if_many_records_are_available():
    harness, lease = leader_with_single_records()
    harness.fetch_more(partition_response(P0, (31, 530)))
    lease.acknowledge(30, ACCEPT)
    harness.prefetch.waiting_readers = 1

    assert {30: ACCEPT} == acks_by_offset(harness.next_fetch().acknowledgements[P0])


def test_gaps_are_sent_after_the_linger_time():
    harness = LeaderHarness()
    harness.fetch(partition_response(P0, (0, 3)))
    (acquired,) = harness.take_events(Acquired)
    harness.prefetch.waiting_readers = 0

    acquired.lease.set_offsets([], gaps=[(0, 3)])
    harness.prefetch.on_delivered(4, harness.now)

    assert dict.fromkeys(range(4), 0) == acks_by_offset(
        harness.flush_acks().acknowledgements[P0]
    )


def test_flush_sends_acknowledgements_of_a_commit_immediately():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    waiter = CommitWaiter()
    harness.batcher.collect(waiter)

    harness.leader.flush_acks()
    harness.acknowledge(partition_response(P0))

    assert waiter.is_done


def test_acknowledgements_are_sent_without_assigned_partitions():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 0)))
    harness.leader.set_partitions(frozenset())
    lease.acknowledge(0, ACCEPT)

    assert {0: ACCEPT} == acks_by_offset(harness.flush_acks().acknowledgements[P0])


def test_renewals_are_not_sent_with_a_fetch():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge(0, RENEW)
    lease.acknowledge(1, ACCEPT)
    harness.prefetch.waiting_readers = 1

    request = harness.next_acknowledge()

    assert request.is_renew_ack
    assert {0: RENEW, 1: ACCEPT} == acks_by_offset(request.acknowledgements[P0])


def test_renewal_extends_the_lock():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    harness.now = 20.0
    lease.acknowledge(0, RENEW)

    request = harness.next_acknowledge()
    harness.now = 20.1
    harness.respond(
        request, acknowledge_response(partition_response(P0), lock_timeout=40.0)
    )

    assert (60.1, 30.0) == (lease.deadline_of(0), lease.deadline_of(1))


def test_failed_acknowledgement_is_retried_after_a_pause():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 0)))
    lease.acknowledge(0, ACCEPT)
    code = Code.REQUEST_TIMED_OUT

    harness.acknowledge_later(partition_response(P0, acknowledge_error=code))
    due = harness.leader.next_deadline(harness.now)

    assert harness.now + 0.03 < due < harness.now + 0.07


def test_records_whose_locks_ended_are_no_longer_held():
    harness = LeaderHarness()
    harness.open_session(partition_response(P0, (0, 3)))
    harness.prefetch.waiting_readers = 1
    harness.now = 30.0

    request = harness.next_fetch()

    assert SETTINGS.max_wait == request.max_wait
    assert () == harness.batcher.leases
