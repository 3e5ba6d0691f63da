"""Pauses of partitions whose records are released repeatedly."""

import math

import pytest

from sharecons.errors import ConnectionFailedError
from sharecons.protocol.acknowledge.archived import archived_by
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.result_log import LastRelease
from sharecons.protocol.acknowledge.runs import Run
from sharecons.protocol.codes import Code
from sharecons.protocol.share_messages import ShareAcknowledge, ShareFetch
from sharecons.record import ACCEPT, REJECT, RELEASE
from tests.protocol.leader_harness import LeaderHarness
from tests.protocol.message_factories import (
    P0,
    P1,
    TOPIC,
    acknowledge_response,
    acks_by_offset,
    fetch_response,
    partition_response,
)

FORBIDDEN = Code.TOPIC_AUTHORIZATION_FAILED


def released(first: int, last: int, delivery_count: int = 5) -> LastRelease:
    return LastRelease(TOPIC, 0, first, last, delivery_count)


class Outage(LeaderHarness):
    """A harness whose application releases its records and requests more."""

    def receive(self, *deliveries: int, partition=P0) -> Lease:
        """Fetch records of one partition, each with this delivery count."""
        self.prefetch.waiting_readers = 1
        request = self.next_request()
        assert isinstance(request, ShareFetch)
        acquired = partition_response(partition, (0, len(deliveries) - 1))
        acquired.acquired = tuple((i, i, count) for i, count in enumerate(deliveries))
        self.respond(request, fetch_response(acquired))
        (lease,) = [event.lease for event in self.leader.events]
        self.leader.events.clear()
        lease.set_offsets(range(len(deliveries)))
        self.prefetch.on_delivered(lease.count, self.now)
        return lease

    def settle(self, lease: Lease, kind=RELEASE) -> None:
        lease.acknowledge_open(0, lease.count, kind)
        self.prefetch.waiting_readers = 1

    def send(self) -> ShareFetch | ShareAcknowledge:
        """Exchange the next request; the response has no records."""
        request = self.next_request()
        assert request is not None
        parts = [partition_response(each) for each in request.acknowledgements]
        empty = (
            acknowledge_response
            if isinstance(request, ShareAcknowledge)
            else fetch_response
        )
        self.respond(request, empty(*parts))
        return request

    def released_again(self, *deliveries: int) -> float:
        """Release records, and return the pause until the next fetch."""
        self.settle(self.receive(*deliveries))
        assert self.next_request() is None, "a release waits for the linger time"
        self.now = self.leader.next_deadline(self.now)
        start = self.now
        assert RELEASE in acks_by_offset(self.send().acknowledgements[P0]).values()
        due = self.leader.next_deadline(self.now)
        self.now = max(due, self.now)
        return due - start


def test_partition_is_fetched_immediately_after_a_first_release():
    harness = Outage()
    harness.settle(harness.receive(1, 1, 1))

    request = harness.next_fetch()

    assert {0: RELEASE, 1: RELEASE, 2: RELEASE} == acks_by_offset(
        request.acknowledgements[P0]
    )
    assert frozenset() == request.forgotten


def test_first_release_beside_a_redelivered_record_causes_no_pause():
    harness = Outage()
    lease = harness.receive(2, 1, 1)
    lease.acknowledge(0, REJECT)
    lease.acknowledge(1, RELEASE)
    lease.acknowledge(2, RELEASE)
    harness.prefetch.waiting_readers = 1

    request = harness.next_fetch()

    assert {0: REJECT, 1: RELEASE, 2: RELEASE} == acks_by_offset(
        request.acknowledgements[P0]
    )
    assert frozenset() == request.forgotten


def test_pauses_grow_with_the_delivery_count():
    harness = Outage()
    harness.settle(harness.receive(1, 1))

    pauses = [harness.released_again(count, count) for count in (2, 3, 4, 5, 6)]

    assert [1.0, 3.0, 5.0, 5.0, 5.0] == pytest.approx(pauses, abs=0.01)


def test_fetch_of_other_partitions_waits_until_the_end_of_a_pause():
    harness = Outage(P0, P1)
    harness.settle(harness.receive(2))

    during = harness.fetch(partition_response(P0))
    harness.now = 0.8
    waiting = harness.next_fetch()
    harness.now = 1.0
    harness.respond(waiting, fetch_response())
    after = harness.next_fetch()

    assert {0: RELEASE} == acks_by_offset(during.acknowledgements[P0])
    assert frozenset({P0}) == during.forgotten
    assert frozenset() == waiting.added
    assert 0.2 == pytest.approx(waiting.max_wait)
    assert frozenset({P0}) == after.added


def test_pause_of_a_forbidden_partition_ends_before_a_longer_one():
    """Each pause has its own end; no fetch waits for the pause of another."""
    harness = Outage(P0, P1)
    harness.settle(harness.receive(2))
    harness.fetch(partition_response(P0), partition_response(P1, error=FORBIDDEN))

    assert harness.next_request() is None
    harness.now = harness.leader.next_deadline(harness.now)
    assert harness.now < 0.1
    again = harness.next_fetch()
    assert frozenset() == again.added | again.forgotten
    harness.respond(again, fetch_response())
    harness.now = 1.0
    assert frozenset({P0}) == harness.next_fetch().added


def test_one_record_is_fetched_first_after_a_pause():
    harness = Outage()
    harness.prefetch.allowance = 300
    harness.released_again(2, 2, 2, 2)

    assert harness.next_fetch().max_records <= 2


def test_one_release_among_accepted_records_causes_no_pause():
    harness = Outage()
    harness.settle(harness.receive(1))
    lease = harness.receive(2, 1, 1, 1)
    lease.acknowledge(0, RELEASE)
    lease.acknowledge_open(1, 4, ACCEPT)
    harness.prefetch.waiting_readers = 1

    assert isinstance(harness.next_request(), ShareFetch)


def test_pause_ends_when_records_are_accepted():
    harness = Outage()
    lease = harness.receive(2, 2, 2, 2)
    lease.acknowledge(0, RELEASE)
    harness.prefetch.waiting_readers = 1
    harness.acknowledge_later(partition_response(P0))
    assert harness.next_request() is None

    lease.acknowledge_open(1, 4, ACCEPT)

    assert isinstance(harness.next_request(), ShareFetch)


def test_pause_of_a_removed_partition_is_forgotten():
    harness = Outage()
    harness.released_again(2)
    harness.now -= 0.5

    harness.leader.set_partitions(frozenset())
    assert math.inf == harness.leader.next_deadline(harness.now)
    harness.leader.set_partitions(frozenset({P0}))

    assert isinstance(harness.next_request(), ShareFetch)


def test_releases_are_forgotten_after_accepted_leases():
    harness = Outage()
    harness.settle(harness.receive(1, 1))
    for _ in range(4):
        harness.settle(harness.receive(1), ACCEPT)

    assert not harness.batcher.redeliveries.has_releases


# Archived records.


def test_only_records_on_their_last_delivery_are_archived():
    harness = Outage()
    harness.result_log.delivery_limit = 5
    harness.settle(harness.receive(5, 5, 4, 5, 1))
    harness.leader.flush_acks()

    harness.send()

    assert [
        released(0, 0),
        released(1, 1),
    ] == (harness.result_log.archived[:2])
    assert [0, 1, 3] == [each.first_offset for each in harness.result_log.archived]


@pytest.mark.parametrize("reports_lost", [True, False])
def test_lost_locks_archive_the_records_on_their_last_delivery(reports_lost):
    harness = Outage()
    harness.result_log.delivery_limit = 5
    harness.result_log.reports_lost = reports_lost
    harness.receive(5, 4, 5)

    harness.leader.connection_lost(ConnectionFailedError("gone"), harness.now)

    lost = [released(n, n)._replace(is_lost=True) for n in (0, 2)]
    assert (lost if reports_lost else []) == harness.result_log.archived


@pytest.mark.parametrize("kind", [ACCEPT, RELEASE])
def test_accepted_and_failed_records_are_not_archived(kind):
    harness = Outage()
    harness.result_log.delivery_limit = 5
    harness.settle(harness.receive(5), kind)
    harness.leader.flush_acks()
    request = harness.next_request()
    assert request is not None
    code = Code.FENCED_STATE_EPOCH if kind == RELEASE else Code.NONE
    empty = (
        acknowledge_response
        if isinstance(request, ShareAcknowledge)
        else fetch_response
    )
    harness.respond(request, empty(partition_response(P0, acknowledge_error=code)))

    assert [] == harness.result_log.archived


def test_archived_runs_include_only_records_on_their_last_delivery():
    harness = Outage()
    lease = harness.receive(5, 5, 4, 5, 5)
    lease.acquired = ((0, 9, 5), (10, 19, 4), (20, 29, 6))

    runs = [Run(3, 12, RELEASE), Run(13, 24, ACCEPT), Run(25, 40, RELEASE)]

    assert [
        released(3, 9),
        released(25, 29, 6),
    ] == (archived_by(lease, runs, 5))
    assert [] == archived_by(lease, runs, 0)
    assert [] == archived_by(lease, runs, 7)
