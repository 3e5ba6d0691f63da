"""Pauses of a leader whose broker returns empty responses immediately."""

import pytest

from sharecons.protocol.codes import Code
from sharecons.protocol.fetch.empty_responses import REOPEN, STALLED, WITHOUT_PAUSE
from sharecons.protocol.fetch.events import Stalled
from sharecons.protocol.share_messages import ShareAcknowledge, ShareFetch
from sharecons.record import ACCEPT
from tests.protocol.leader_harness import LeaderHarness
from tests.protocol.message_factories import (
    P0,
    P1,
    acknowledge_response,
    fetch_response,
    partition_response,
)

ROUND_TRIP = 0.0002


class Storm(LeaderHarness):
    """A harness whose broker returns empty responses immediately."""

    def opened(self) -> "Storm":
        self.fetch()
        return self

    def wait(self) -> float:
        """Advance to the next deadline; return the seconds waited."""
        due = max(self.now, self.leader.next_deadline(self.now))
        waited, self.now = due - self.now, due
        return waited

    def empty(self, times: int = 1, after: float = ROUND_TRIP) -> list[float]:
        """Respond to this many fetches with nothing; return the pauses before them."""
        pauses = []
        for _ in range(times):
            pauses.append(self.wait())
            if isinstance(request := self.next_request(), ShareAcknowledge):
                self.respond(request, acknowledge_response())
                self.fetch()
                continue
            assert request is not None
            self.now += after
            self.respond(request, fetch_response())
        return pauses

    def requests_in(self, seconds: float) -> int:
        """Return the number of requests, all with empty responses, in this time."""
        end, count = self.now + seconds, 0
        while self.now < end:
            self.wait()
            request = self.next_request()
            assert request is not None
            self.now += ROUND_TRIP
            if isinstance(request, ShareFetch):
                self.respond(request, fetch_response())
            else:
                self.respond(request, acknowledge_response())
            count += 1
        return count


def test_pauses_after_more_empty_responses_grow_up_to_max_wait():
    pauses = Storm().opened().empty(REOPEN)[WITHOUT_PAUSE + 1 :]

    assert 0.008 <= pauses[0] <= 0.012
    assert [pauses[0] * 2**n for n in range(5)] == pytest.approx(pauses)
    assert 0.4 <= Storm().opened().empty(30)[-1] <= 0.6


def test_pauses_end_after_records():
    storm = Storm().opened()
    storm.empty(6)
    storm.wait()

    storm.fetch(partition_response(P0, (0, 0)))
    storm.take_leases()

    assert [0.0] * (WITHOUT_PAUSE + 1) == storm.empty(WITHOUT_PAUSE + 1)


def test_pauses_end_after_a_response_that_took_max_wait():
    storm = Storm().opened()
    storm.empty(6)

    storm.empty(after=0.5)

    assert [0.0] * (WITHOUT_PAUSE + 1) == storm.empty(WITHOUT_PAUSE + 1)


@pytest.mark.parametrize(
    "response",
    [
        pytest.param(fetch_response(throttle=0.001), id="throttled"),
        pytest.param(fetch_response(error=Code.UNKNOWN_SERVER_ERROR), id="error"),
        pytest.param(
            fetch_response(partition_response(P0, error=Code.KAFKA_STORAGE_ERROR)),
            id="partition",
        ),
    ],
)
def test_throttled_and_failed_responses_do_not_count_as_empty(response):
    storm = Storm().opened()
    storm.empty(WITHOUT_PAUSE)
    storm.respond(storm.next_fetch(), response)
    storm.now += 60.0
    # After the error this fetch opens the session again.
    storm.fetch()

    storm.wait()
    storm.now += 20.0  # the quota allows a fetch by then
    assert storm.next_request() is not None


def test_responses_to_fetches_that_change_the_session_do_not_count_as_empty():
    storm = Storm().opened()
    for number in range(20):
        storm.leader.set_partitions(frozenset({P0, P1} if number % 2 else {P0}))
        assert [0.0] == storm.empty()


def test_responses_to_fetches_with_acknowledgements_do_not_count_as_empty():
    storm = Storm()
    (lease,) = storm.open_session(partition_response(P0, (0, 19)))
    storm.prefetch.waiting_readers = 1
    for offset in range(20):
        lease.acknowledge(offset, ACCEPT)
        storm.leader.flush_acks()
        request = storm.next_request()
        assert request is not None
        assert request.acknowledgements
        storm.now += ROUND_TRIP
        storm.respond(request, fetch_response(partition_response(P0)))


def test_acknowledgements_are_sent_during_a_pause_and_end_it():
    storm = Storm(P0)
    (lease,) = storm.open_session(partition_response(P0, (0, 3)))
    storm.prefetch.waiting_readers = 1
    storm.empty(REOPEN)
    assert storm.next_request() is None

    lease.acknowledge(0, ACCEPT)
    before = storm.now
    storm.acknowledge_later(partition_response(P0))
    assert storm.now - before < 0.01

    assert isinstance(storm.next_request(), ShareFetch)


def test_pause_ends_when_a_partition_is_added():
    storm = Storm().opened()
    storm.empty(REOPEN - 1)
    assert storm.next_request() is None

    storm.leader.set_partitions(frozenset({P0, P1}))

    assert isinstance(storm.next_request(), ShareFetch)


def test_session_is_closed_and_opened_again_after_many_empty_responses():
    storm = Storm().opened()
    storm.empty(REOPEN)

    closing = storm.acknowledge()
    opening = storm.next_fetch()

    assert [-1, 0] == [closing.share_session_epoch, opening.share_session_epoch]
    assert frozenset({P0}) == opening.added
    assert not storm.leader.finished
    storm.respond(opening, fetch_response())
    assert [0.0] == storm.empty(), "only the first has no pause"
    assert storm.next_request() is None


def test_session_stays_open_while_records_are_held():
    storm = Storm()
    storm.open_session(partition_response(P0, (0, 3)))
    storm.prefetch.waiting_readers = 1

    storm.empty(2 * REOPEN)

    assert not isinstance(storm.next_request(), ShareAcknowledge)


def test_broker_that_stays_empty_is_reported_as_stalled():
    storm = Storm().opened()
    storm.requests_in(0.3)
    assert [] == storm.take_events(Stalled)

    storm.requests_in(4.0)

    assert Stalled(1) in storm.take_events(Stalled)
    assert STALLED > REOPEN


def test_each_fetch_after_empty_responses_requests_more_records():
    storm = Storm().opened()
    limits = []
    for _ in range(7):
        storm.wait()
        fetch = storm.next_fetch()
        limits.append(fetch.max_records)
        storm.respond(fetch, fetch_response())

    assert [1, 1, 1, 4, 16, 64, 256] == limits


def test_records_requested_after_empty_responses_are_limited():
    storm = Storm().opened()
    storm.prefetch.allowance = 200
    storm.empty(6)
    storm.wait()

    # The estimate stops at 256 records, below max_records (500).
    assert 256 == storm.next_fetch().max_records


def test_empty_responses_with_a_max_wait_of_zero_are_not_reported_as_stalled():
    storm = Storm(max_wait=0.0).opened()

    count = storm.requests_in(5.0)

    assert 80 < count < 130
    assert [] == storm.take_events(Stalled)
    storm.wait()
    assert 1 == storm.next_fetch().max_records
