"""What a leader's machine says of records, with which request, and when."""

import pytest

from sharecons.errors import UnsupportedVersionError
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.linger import ACK_DELAY
from sharecons.protocol.acknowledge.results import CommitWaiter
from sharecons.protocol.codes import Code
from sharecons.protocol.fetch.events import Acquired
from sharecons.protocol.messages import ShareFetch
from sharecons.record import ACCEPT, REJECT, RELEASE, RENEW
from tests.protocol.making import P0, P1, SETTINGS, acknowledged, each, fetched, part
from tests.protocol.talk import Talk


def test_acknowledgements_ride_on_the_next_fetch():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge_open(0, 4, ACCEPT)
    talk.pace.waiting = 1

    request = talk.fetch()

    assert dict.fromkeys(range(4), ACCEPT) == each(request.acknowledgements[P0])
    assert 1 == request.share_session_epoch


def test_fetch_and_acknowledgement_of_a_partition_fail_apart():
    talk = Talk(P0, P1)
    leases = talk.open(part(P0, (0, 0)), part(P1, (0, 0)))
    for lease in leases:
        lease.acknowledge(0, ACCEPT)
    talk.pace.waiting = 1

    talk.answer(
        talk.fetch(),
        fetched(
            part(P0, (1, 2), acknowledge_error=Code.FENCED_STATE_EPOCH),
            part(P1, error=Code.KAFKA_STORAGE_ERROR),
        ),
    )

    assert {"FENCED_STATE_EPOCH", None} == set(talk.errors)
    assert [P0] == [h.lease.share_partition for h in talk.happened(Acquired)]


def test_acknowledgements_leave_by_themselves_after_a_moment():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)

    waited = talk.next()
    due = talk.leader.next_deadline(talk.now)
    talk.now = due
    request = talk.acknowledge()

    assert (None, ACK_DELAY) == (waited, due)
    assert due < 0.005  # sending takes some of that, too
    assert {0: ACCEPT} == each(request.acknowledgements[P0])
    assert (1, False) == (request.share_session_epoch, request.renewing)


def trickle(talk: Talk, offset: int) -> tuple[ShareFetch, list[Lease]]:
    """The application asks, and its fetch brings one record, far from all it may."""
    talk.pace.waiting = 1
    request = talk.fetch()
    talk.answer(request, fetched(part(P0, (offset, offset))))
    talk.pace.waiting = 0
    return request, talk.leases()


def trickling(seconds: float = 0.001, records: int = 30) -> tuple[Talk, Lease]:
    """Records come one by one, so far apart; all is said but of the last, the 30th."""
    talk = Talk()
    talk.pace.allowance = 500
    _, (lease,) = trickle(talk, 0)
    for offset in range(1, records):
        lease.acknowledge(offset - 1, ACCEPT)
        talk.now += seconds
        _, (lease,) = trickle(talk, offset)
    lease.acknowledge(records - 1, ACCEPT)
    talk.leader.flush_acks()
    talk.now += seconds
    _, (lease,) = trickle(talk, records)
    assert not talk.acknowledgements.pending
    return talk, lease


def carried(talk: Talk, lease: Lease, seconds: float, fetches: int) -> list[set[int]]:
    """Which offsets are acknowledged with each of the next fetches."""
    offsets: list[set[int]] = []
    for offset in range(lease.acquired[0][0], lease.acquired[0][0] + fetches):
        lease.acknowledge(offset, ACCEPT)
        talk.now += seconds
        request, (lease,) = trickle(talk, offset + 1)
        offsets.append(set(each(request.acknowledgements.get(P0, ()))))
    return offsets


def test_acknowledgements_of_single_records_ride_with_one_fetch_of_a_few():
    talk, lease = trickling(0.001)

    found = carried(talk, lease, 0.001, fetches=30)

    sizes = {len(offsets) for offsets in found}
    assert {0, int(ACK_DELAY / 0.001) + 1} == sizes
    assert set(range(30, 55)) <= set().union(*found)


def test_fetches_between_are_not_in_the_way_of_acknowledgements():
    talk, lease = trickling(0.001)
    lease.acknowledge(30, ACCEPT)

    request, _ = trickle(talk, 31)

    assert {} == request.acknowledgements
    assert ACK_DELAY == pytest.approx(request.max_wait)


def test_where_nothing_more_may_come_by_then_acknowledgements_ride_at_once():
    apart = ACK_DELAY * 2
    talk, lease = trickling(apart)

    found = carried(talk, lease, apart, fetches=5)

    assert [{offset} for offset in range(30, 35)] == found


def test_what_comes_later_than_expected_holds_up_no_acknowledgement():
    talk, lease = trickling(0.001)
    lease.acknowledge(30, ACCEPT)
    talk.pace.waiting = 1
    begun = talk.now
    waited = talk.fetch()
    talk.now += waited.max_wait
    talk.answer(waited, fetched())

    request = talk.fetch()

    assert {} == waited.acknowledgements
    assert {30: ACCEPT} == each(request.acknowledgements[P0])
    assert talk.now - begun <= ACK_DELAY + 1e-9


def test_a_release_rides_with_the_next_fetch():
    talk, lease = trickling()
    lease.acknowledge(30, RELEASE)

    request, _ = trickle(talk, 31)

    assert {30: RELEASE} == each(request.acknowledgements[P0])


def test_what_somebody_waits_for_rides_with_the_next_fetch():
    talk, lease = trickling()
    lease.acknowledge(30, ACCEPT)
    talk.leader.flush_acks()

    request, _ = trickle(talk, 31)

    assert {30: ACCEPT} == each(request.acknowledgements[P0])


def test_where_more_lies_ready_acknowledgements_ride_with_each_fetch():
    talk, lease = trickling()
    talk.open_more(part(P0, (31, 530)))
    lease.acknowledge(30, ACCEPT)
    talk.pace.waiting = 1

    assert {30: ACCEPT} == each(talk.fetch().acknowledgements[P0])


def test_marks_made_meanwhile_travel_along():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    talk.next()

    lease.acknowledge(1, REJECT)
    talk.now = ACK_DELAY

    assert {0: ACCEPT, 1: REJECT} == each(talk.acknowledge().acknowledgements[P0])


def test_gaps_leave_by_themselves_too():
    talk = Talk()
    talk.answer(talk.fetch(), fetched(part(P0, (0, 3))))
    (happening,) = talk.happened(Acquired)
    talk.pace.waiting = 0

    happening.lease.unpacked([], gaps=[(0, 3)])
    talk.pace.handed_out(4, talk.now)

    assert dict.fromkeys(range(4), 0) == each(talk.flush().acknowledgements[P0])


def test_whoever_waits_for_acknowledgements_waits_no_longer_than_needed():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    ticket = CommitWaiter()
    talk.acknowledgements.freeze(ticket)

    talk.leader.flush_acks()
    talk.answer(talk.acknowledge(), acknowledged(part(P0)))

    assert ticket.done


def test_fetches_and_acknowledgements_share_one_sequence():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    request = talk.flush()
    talk.answer(request, acknowledged(part(P0)))
    talk.pace.waiting = 1

    assert (1, 2) == (request.share_session_epoch, talk.fetch().share_session_epoch)


def test_acknowledgements_go_out_although_nothing_is_wanted_any_more():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 0)))
    talk.leader.set_partitions(frozenset())
    lease.acknowledge(0, ACCEPT)

    assert {0: ACCEPT} == each(talk.flush().acknowledgements[P0])


def test_renewals_never_ride_on_a_fetch():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge(0, RENEW)
    lease.acknowledge(1, ACCEPT)
    talk.pace.waiting = 1

    request = talk.acknowledge()

    assert request.renewing
    assert {0: RENEW, 1: ACCEPT} == each(request.acknowledgements[P0])


def test_a_renewal_moves_the_locks_end():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    talk.now = 20.0
    lease.acknowledge(0, RENEW)

    request = talk.acknowledge()
    talk.now = 20.1
    talk.answer(request, acknowledged(part(P0), lock_timeout=40.0))

    assert (60.1, 30.0) == (lease.deadline_of(0), lease.deadline_of(1))


def test_a_broker_that_knows_no_renewal_is_not_asked_for_one():
    talk = Talk()
    talk.answer(talk.fetch(), fetched(part(P0, (0, 0)), renewable=False))
    (lease,) = talk.leases()

    with pytest.raises(UnsupportedVersionError):
        lease.acknowledge(0, RENEW)


def test_a_refused_acknowledgement_is_retried_after_a_pause():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 0)))
    lease.acknowledge(0, ACCEPT)
    code = Code.REQUEST_TIMED_OUT

    talk.answer(talk.flush(), acknowledged(part(P0, acknowledge_error=code)))
    due = talk.leader.next_deadline(talk.now)

    assert talk.now + 0.03 < due < talk.now + 0.07


def test_records_past_their_lock_leave_the_hands_of_the_leader():
    talk = Talk()
    talk.open(part(P0, (0, 3)))
    talk.pace.waiting = 1
    talk.now = 30.0

    request = talk.fetch()

    assert SETTINGS.max_wait == request.max_wait
    assert () == talk.acknowledgements.held
