"""Records that are released again and again: which partitions are fetched."""

import pytest

from sharecons.protocol.acknowledge.archived import archived_by
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.ranges import Run
from sharecons.protocol.acknowledge.result_log import ArchivedRange
from sharecons.protocol.codes import Code
from sharecons.protocol.messages import ShareAcknowledge, ShareFetch
from sharecons.record import ACCEPT, RELEASE
from tests.protocol.making import (
    EVER,
    P0,
    P1,
    TOPIC,
    acknowledged,
    each,
    fetched,
    part,
)
from tests.protocol.talk import Talk

REFUSED = Code.TOPIC_AUTHORIZATION_FAILED


class Outage(Talk):
    """A talk in which the application releases what it is given, and asks again."""

    def receive(self, *deliveries: int, partition=P0) -> Lease:
        """Fetch records of one partition, each on such a delivery."""
        self.pace.waiting = 1
        request = self.next()
        assert isinstance(request, ShareFetch)
        came = part(partition, (0, len(deliveries) - 1))
        came.acquired = tuple((i, i, count) for i, count in enumerate(deliveries))
        self.answer(request, fetched(came))
        (acquired,) = [h.lease for h in self.leader.events]
        self.leader.events.clear()
        acquired.unpacked(range(len(deliveries)))
        self.pace.handed_out(acquired.count, self.now)
        return acquired

    def settle(self, lease: Lease, kind=RELEASE) -> None:
        lease.acknowledge_open(0, lease.count, kind)
        self.pace.waiting = 1

    def send(self) -> ShareFetch | ShareAcknowledge:
        """Send what is due, which is answered with nothing more."""
        request = self.next()
        assert request is not None
        parts = [part(each) for each in request.acknowledgements]
        empty = acknowledged if isinstance(request, ShareAcknowledge) else fetched
        self.answer(request, empty(*parts))
        return request

    def released_again(self, *deliveries: int) -> float:
        """Release records, and return the pause until the next fetch."""
        self.settle(self.receive(*deliveries))
        assert self.next() is None, "the release gathers, as if it were accepted"
        self.now = self.leader.next_deadline(self.now)
        began = self.now
        assert RELEASE in each(self.send().acknowledgements[P0]).values()
        due = self.leader.next_deadline(self.now)
        self.now = max(due, self.now)
        return due - began


def test_a_first_release_is_fetched_again_at_once():
    talk = Outage()
    talk.settle(talk.receive(1, 1, 1))

    request = talk.fetch()

    assert {0: RELEASE, 1: RELEASE, 2: RELEASE} == each(request.acknowledgements[P0])
    assert frozenset() == request.forgotten


def test_pauses_grow_with_the_deliveries_that_are_used_up():
    talk = Outage()
    talk.settle(talk.receive(1, 1))

    pauses = [talk.released_again(count, count) for count in (2, 3, 4, 5, 6)]

    assert [1.0, 3.0, 5.0, 5.0, 5.0] == pytest.approx(pauses, abs=0.01)


def test_releases_leave_at_once_although_their_partition_is_paused():
    talk = Outage()
    talk.settle(talk.receive(2))
    talk.leader.flush_acks()

    request = talk.acknowledge()

    assert {0: RELEASE} == each(request.acknowledgements[P0])


def test_other_partitions_are_fetched_during_a_pause_and_no_longer_than_it():
    talk = Outage(P0, P1)
    talk.settle(talk.receive(2))

    during = talk.fetch()
    talk.answer(during, fetched(part(P0)))
    talk.now = 0.8
    waiting = talk.fetch()
    talk.now = 1.0
    talk.answer(waiting, fetched())
    after = talk.fetch()

    assert {0: RELEASE} == each(during.acknowledgements[P0])
    assert frozenset({P0}) == during.forgotten
    assert frozenset() == waiting.added
    assert 0.2 == pytest.approx(waiting.max_wait)
    assert frozenset({P0}) == after.added


def test_records_of_other_partitions_are_delivered_during_a_pause():
    talk = Outage(P0, P1)
    talk.settle(talk.receive(2))
    talk.send()

    lease = talk.receive(1, 1, partition=P1)
    talk.settle(lease, ACCEPT)

    assert P1 == lease.share_partition
    assert isinstance(talk.next(), ShareFetch)


def test_pause_of_a_refused_partition_ends_by_itself():
    """Each pause has its own end; the fetch of one waits for no other."""
    talk = Outage(P0, P1)
    talk.settle(talk.receive(2))
    during = talk.fetch()
    talk.answer(during, fetched(part(P0), part(P1, error=REFUSED)))

    assert talk.next() is None
    talk.now = talk.leader.next_deadline(talk.now)
    assert talk.now < 0.1
    again = talk.fetch()
    assert frozenset() == again.added | again.forgotten
    talk.answer(again, fetched())
    talk.now = 1.0
    assert frozenset({P0}) == talk.fetch().added


def test_one_record_is_fetched_first_after_a_pause():
    talk = Outage()
    talk.pace.allowance = 300
    talk.released_again(2, 2, 2, 2)

    assert talk.fetch().max_records <= 2


def test_a_record_released_among_many_accepted_ones_pauses_nothing():
    talk = Outage()
    talk.settle(talk.receive(1))
    lease = talk.receive(2, 1, 1, 1)
    lease.acknowledge(0, RELEASE)
    lease.acknowledge_open(1, 4, ACCEPT)
    talk.pace.waiting = 1

    assert isinstance(talk.next(), ShareFetch)


def test_acceptance_ends_a_pause():
    talk = Outage()
    lease = talk.receive(2, 2, 2, 2)
    lease.acknowledge(0, RELEASE)
    talk.pace.waiting = 1
    talk.answer(talk.flush(), acknowledged(part(P0)))
    assert talk.next() is None

    lease.acknowledge_open(1, 4, ACCEPT)

    assert isinstance(talk.next(), ShareFetch)


def test_closing_waits_for_no_pause():
    talk = Outage()
    talk.released_again(2)
    talk.now -= 0.5

    talk.leader.close()

    assert -1 == talk.acknowledge().share_session_epoch


def test_a_partition_that_is_taken_away_is_forgotten():
    talk = Outage()
    talk.released_again(2)
    talk.now -= 0.5

    talk.leader.set_partitions(frozenset())
    assert EVER == talk.leader.next_deadline(talk.now)
    talk.leader.set_partitions(frozenset({P0}))

    assert isinstance(talk.next(), ShareFetch)


def test_releases_of_long_ago_do_not_count():
    talk = Outage()
    talk.settle(talk.receive(1, 1))
    for _ in range(4):
        talk.settle(talk.receive(1), ACCEPT)

    assert not talk.acknowledgements.redeliveries.watches


# What a release archives.


def test_only_records_on_their_last_delivery_are_archived():
    talk = Outage()
    talk.journal.delivery_limit = 5
    talk.settle(talk.receive(5, 5, 4, 5, 1))
    talk.leader.flush_acks()

    talk.send()

    assert [ArchivedRange(TOPIC, 0, 0, 0), ArchivedRange(TOPIC, 0, 1, 1)] == (
        talk.journal.archived[:2]
    )
    assert [0, 1, 3] == [found.first_offset for found in talk.journal.archived]


@pytest.mark.parametrize("kind", [ACCEPT, RELEASE])
def test_nothing_is_archived_by_accepting_or_if_the_broker_rejects_it(kind):
    talk = Outage()
    talk.journal.delivery_limit = 5
    talk.settle(talk.receive(5), kind)
    talk.leader.flush_acks()
    request = talk.next()
    assert request is not None
    code = Code.FENCED_STATE_EPOCH if kind == RELEASE else Code.NONE
    empty = acknowledged if isinstance(request, ShareAcknowledge) else fetched
    talk.answer(request, empty(part(P0, acknowledge_error=code)))

    assert [] == talk.journal.archived


def test_runs_are_cut_to_what_is_on_its_last_delivery():
    talk = Outage()
    lease = talk.receive(5, 5, 4, 5, 5)
    lease.acquired = ((0, 9, 5), (10, 19, 4), (20, 29, 6))

    runs = [Run(3, 12, RELEASE), Run(13, 24, ACCEPT), Run(25, 40, RELEASE)]

    assert [ArchivedRange(TOPIC, 0, 3, 9), ArchivedRange(TOPIC, 0, 25, 29)] == (
        archived_by(lease, runs, 5)
    )
    assert [] == archived_by(lease, runs, 0)
    assert [] == archived_by(lease, runs, 7)
