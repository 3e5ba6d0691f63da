"""The acknowledgements of a leader: which request has them, and when."""

import pytest

from sharecons.errors import UnsupportedVersionError
from sharecons.protocol.acknowledge.batcher import ACK_DELAY
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.results import CommitWaiter
from sharecons.protocol.codes import Code
from sharecons.protocol.fetch.events import Acquired
from sharecons.protocol.messages import ShareFetch
from sharecons.record import ACCEPT, REJECT, RELEASE, RENEW
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


def test_acknowledgements_ride_on_the_next_fetch():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge_open(0, 4, ACCEPT)
    harness.prefetch.waiting_readers = 1

    request = harness.next_fetch()

    assert dict.fromkeys(range(4), ACCEPT) == acks_by_offset(
        request.acknowledgements[P0]
    )
    assert 1 == request.share_session_epoch


def test_fetch_and_acknowledgement_of_a_partition_fail_apart():
    harness = LeaderHarness(P0, P1)
    leases = harness.open_session(
        partition_response(P0, (0, 0)), partition_response(P1, (0, 0))
    )
    for lease in leases:
        lease.acknowledge(0, ACCEPT)
    harness.prefetch.waiting_readers = 1

    harness.respond(
        harness.next_fetch(),
        fetch_response(
            partition_response(P0, (1, 2), acknowledge_error=Code.FENCED_STATE_EPOCH),
            partition_response(P1, error=Code.KAFKA_STORAGE_ERROR),
        ),
    )

    assert {"FENCED_STATE_EPOCH", None} == set(harness.errors)
    assert [P0] == [h.lease.share_partition for h in harness.take_events(Acquired)]


def test_acknowledgements_leave_by_themselves_after_a_moment():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)

    waited = harness.next_request()
    due = harness.leader.next_deadline(harness.now)
    harness.now = due
    request = harness.next_acknowledge()

    assert (None, ACK_DELAY) == (waited, due)
    assert due < 0.005  # sending takes some of that, too
    assert {0: ACCEPT} == acks_by_offset(request.acknowledgements[P0])
    assert (1, False) == (request.share_session_epoch, request.is_renew_ack)


def trickle(harness: LeaderHarness, offset: int) -> tuple[ShareFetch, list[Lease]]:
    """The application asks, and its fetch brings one record, far from all it may."""
    harness.prefetch.waiting_readers = 1
    request = harness.next_fetch()
    harness.respond(request, fetch_response(partition_response(P0, (offset, offset))))
    harness.prefetch.waiting_readers = 0
    return request, harness.take_leases()


def trickling(seconds: float = 0.001, records: int = 30) -> tuple[LeaderHarness, Lease]:
    """Records come one by one, so far apart; all is said but of the last, the 30th."""
    harness = LeaderHarness()
    harness.prefetch.allowance = 500
    _, (lease,) = trickle(harness, 0)
    for offset in range(1, records):
        lease.acknowledge(offset - 1, ACCEPT)
        harness.now += seconds
        _, (lease,) = trickle(harness, offset)
    lease.acknowledge(records - 1, ACCEPT)
    harness.leader.flush_acks()
    harness.now += seconds
    _, (lease,) = trickle(harness, records)
    assert not harness.batcher.has_pending
    return harness, lease


def carried(
    harness: LeaderHarness, lease: Lease, seconds: float, fetches: int
) -> list[set[int]]:
    """Which offsets are acknowledged with each of the next fetches."""
    offsets: list[set[int]] = []
    for offset in range(lease.acquired[0][0], lease.acquired[0][0] + fetches):
        lease.acknowledge(offset, ACCEPT)
        harness.now += seconds
        request, (lease,) = trickle(harness, offset + 1)
        offsets.append(set(acks_by_offset(request.acknowledgements.get(P0, ()))))
    return offsets


def test_acknowledgements_of_single_records_ride_with_one_fetch_of_a_few():
    harness, lease = trickling(0.001)

    found = carried(harness, lease, 0.001, fetches=30)

    sizes = {len(offsets) for offsets in found}
    assert {0, int(ACK_DELAY / 0.001) + 1} == sizes
    assert set(range(30, 55)) <= set().union(*found)


def test_fetches_between_are_not_in_the_way_of_acknowledgements():
    harness, lease = trickling(0.001)
    lease.acknowledge(30, ACCEPT)

    request, _ = trickle(harness, 31)

    assert {} == request.acknowledgements
    assert ACK_DELAY == pytest.approx(request.max_wait)


def test_where_nothing_more_may_come_by_then_acknowledgements_ride_at_once():
    apart = ACK_DELAY * 2
    harness, lease = trickling(apart)

    found = carried(harness, lease, apart, fetches=5)

    assert [{offset} for offset in range(30, 35)] == found


def test_what_comes_later_than_expected_holds_up_no_acknowledgement():
    harness, lease = trickling(0.001)
    lease.acknowledge(30, ACCEPT)
    harness.prefetch.waiting_readers = 1
    begun = harness.now
    waited = harness.next_fetch()
    harness.now += waited.max_wait
    harness.respond(waited, fetch_response())

    request = harness.next_fetch()

    assert {} == waited.acknowledgements
    assert {30: ACCEPT} == acks_by_offset(request.acknowledgements[P0])
    assert harness.now - begun <= ACK_DELAY + 1e-9


def test_a_release_rides_with_the_next_fetch():
    harness, lease = trickling()
    lease.acknowledge(30, RELEASE)

    request, _ = trickle(harness, 31)

    assert {30: RELEASE} == acks_by_offset(request.acknowledgements[P0])


def test_acknowledgements_of_a_commit_are_sent_with_the_next_fetch():
    harness, lease = trickling()
    lease.acknowledge(30, ACCEPT)
    harness.leader.flush_acks()

    request, _ = trickle(harness, 31)

    assert {30: ACCEPT} == acks_by_offset(request.acknowledgements[P0])


def test_where_more_lies_ready_acknowledgements_ride_with_each_fetch():
    harness, lease = trickling()
    harness.fetch_more(partition_response(P0, (31, 530)))
    lease.acknowledge(30, ACCEPT)
    harness.prefetch.waiting_readers = 1

    assert {30: ACCEPT} == acks_by_offset(harness.next_fetch().acknowledgements[P0])


def test_marks_made_meanwhile_travel_along():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    harness.next_request()

    lease.acknowledge(1, REJECT)
    harness.now = ACK_DELAY

    assert {0: ACCEPT, 1: REJECT} == acks_by_offset(
        harness.next_acknowledge().acknowledgements[P0]
    )


def test_gaps_leave_by_themselves_too():
    harness = LeaderHarness()
    harness.respond(
        harness.next_fetch(), fetch_response(partition_response(P0, (0, 3)))
    )
    (happening,) = harness.take_events(Acquired)
    harness.prefetch.waiting_readers = 0

    happening.lease.set_offsets([], gaps=[(0, 3)])
    harness.prefetch.on_delivered(4, harness.now)

    assert dict.fromkeys(range(4), 0) == acks_by_offset(
        harness.flush_acks().acknowledgements[P0]
    )


def test_whoever_waits_for_acknowledgements_waits_no_longer_than_needed():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    ticket = CommitWaiter()
    harness.batcher.collect(ticket)

    harness.leader.flush_acks()
    harness.respond(
        harness.next_acknowledge(), acknowledge_response(partition_response(P0))
    )

    assert ticket.is_done


def test_fetches_and_acknowledgements_share_one_sequence():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    request = harness.flush_acks()
    harness.respond(request, acknowledge_response(partition_response(P0)))
    harness.prefetch.waiting_readers = 1

    assert (1, 2) == (
        request.share_session_epoch,
        harness.next_fetch().share_session_epoch,
    )


def test_acknowledgements_go_out_although_nothing_is_wanted_any_more():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 0)))
    harness.leader.set_partitions(frozenset())
    lease.acknowledge(0, ACCEPT)

    assert {0: ACCEPT} == acks_by_offset(harness.flush_acks().acknowledgements[P0])


def test_renewals_never_ride_on_a_fetch():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 3)))
    lease.acknowledge(0, RENEW)
    lease.acknowledge(1, ACCEPT)
    harness.prefetch.waiting_readers = 1

    request = harness.next_acknowledge()

    assert request.is_renew_ack
    assert {0: RENEW, 1: ACCEPT} == acks_by_offset(request.acknowledgements[P0])


def test_a_renewal_moves_the_locks_end():
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


def test_a_broker_that_knows_no_renewal_is_not_asked_for_one():
    harness = LeaderHarness()
    harness.respond(
        harness.next_fetch(),
        fetch_response(partition_response(P0, (0, 0)), renewable=False),
    )
    (lease,) = harness.take_leases()

    with pytest.raises(UnsupportedVersionError):
        lease.acknowledge(0, RENEW)


def test_a_refused_acknowledgement_is_retried_after_a_pause():
    harness = LeaderHarness()
    (lease,) = harness.open_session(partition_response(P0, (0, 0)))
    lease.acknowledge(0, ACCEPT)
    code = Code.REQUEST_TIMED_OUT

    harness.respond(
        harness.flush_acks(),
        acknowledge_response(partition_response(P0, acknowledge_error=code)),
    )
    due = harness.leader.next_deadline(harness.now)

    assert harness.now + 0.03 < due < harness.now + 0.07


def test_records_past_their_lock_leave_the_hands_of_the_leader():
    harness = LeaderHarness()
    harness.open_session(partition_response(P0, (0, 3)))
    harness.prefetch.waiting_readers = 1
    harness.now = 30.0

    request = harness.next_fetch()

    assert SETTINGS.max_wait == request.max_wait
    assert () == harness.batcher.leases
