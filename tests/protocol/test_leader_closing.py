"""How a leader's machine ends: by moving away, or closed."""

import pytest

from sharecons.errors import LockLostError
from sharecons.protocol.codes import Code
from sharecons.protocol.fetch.events import LocksLost, MetadataStale
from sharecons.protocol.fetch.session_manager import CLOSING
from sharecons.protocol.messages import ShareAcknowledge
from sharecons.record import ACCEPT, RELEASE, RENEW
from tests.protocol.making import EVER, P0, acknowledged, each, fetched, part
from tests.protocol.talk import Talk

OUTSIDE = [Code.UNKNOWN_SERVER_ERROR, Code.SHARE_SESSION_LIMIT_REACHED, 9_999]


# Moving away.


def test_a_leader_with_nothing_to_fetch_and_nothing_held_has_moved_away():
    talk = Talk()
    talk.open()

    talk.leader.set_partitions(frozenset())

    assert talk.leader.is_idle(talk.now)


@pytest.mark.parametrize("why", ["wanted", "held", "pending", "under way"])
def test_a_leader_has_not_moved_away_while_something_is(why: str):
    talk = Talk()
    leases = talk.open(part(P0, (0, 0))) if why != "under way" else talk.open()
    if why == "under way":
        talk.pace.waiting = 1
        talk.fetch()
    if why != "wanted":
        talk.leader.set_partitions(frozenset())
    if why == "pending":
        leases[0].acknowledge(0, ACCEPT)

    assert not talk.leader.is_idle(talk.now)


def test_what_a_last_fetch_brings_is_worked_before_the_leader_has_moved_away():
    talk = Talk()
    request = talk.fetch()
    talk.leader.set_partitions(frozenset())
    talk.answer(request, fetched(part(P0, (0, 0))))
    talk.pace.waiting = 0
    (lease,) = talk.leases()

    before = talk.leader.is_idle(talk.now)
    lease.acknowledge(0, ACCEPT)
    talk.answer(talk.flush(), acknowledged(part(P0)))

    assert (False, True) == (before, talk.leader.is_idle(talk.now))


def test_locks_that_ended_keep_no_leader():
    talk = Talk()
    talk.open(part(P0, (0, 0)))
    talk.leader.set_partitions(frozenset())

    assert talk.leader.is_idle(now=30.0)


# Closing.


def test_closing_before_anything_was_sent_ends_at_once():
    talk = Talk()

    talk.leader.close()

    assert talk.leader.finished
    assert EVER == talk.leader.next_deadline(talk.now)


def test_closing_says_the_last_things_and_closes_the_session_in_one_request():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge_open(0, 2, ACCEPT)

    talk.leader.close()
    request = talk.acknowledge()
    talk.answer(request, acknowledged(part(P0)))

    assert CLOSING == request.share_session_epoch
    assert {0: ACCEPT, 1: ACCEPT} == each(request.acknowledgements[P0])
    assert [None] == talk.errors
    assert talk.leader.finished
    assert lease.term.ended


def test_a_session_with_nothing_to_say_is_closed_too():
    talk = Talk()
    talk.open(part(P0, (0, 3)))

    talk.leader.close()
    request = talk.acknowledge()

    assert (CLOSING, {}) == (request.share_session_epoch, request.acknowledgements)


def test_closing_fetches_no_more():
    talk = Talk()
    talk.open()
    talk.pace.waiting = 1

    talk.leader.close()

    assert isinstance(talk.next(), ShareAcknowledge)


def test_closing_waits_for_the_fetch_that_is_under_way():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    talk.pace.waiting = 1
    under_way = talk.fetch()

    talk.leader.close()
    ended = talk.leader.finished
    talk.answer(under_way, fetched(part(P0, (4, 5))))
    request = talk.acknowledge()

    assert not ended
    assert [None] == talk.errors
    assert (CLOSING, {}) == (request.share_session_epoch, request.acknowledgements)


def test_closing_during_the_opening_fetch_closes_what_it_opened():
    talk = Talk()
    opening = talk.fetch()

    talk.leader.close()
    ended = talk.leader.finished
    talk.answer(opening, fetched(part(P0, (0, 3))))
    request = talk.acknowledge()
    talk.answer(request, acknowledged())

    assert (False, CLOSING) == (ended, request.share_session_epoch)
    assert talk.leader.finished


@pytest.mark.parametrize("code", [*OUTSIDE, 122, 123])
def test_closing_ends_when_the_opening_fetch_fails(code: int):
    talk = Talk()
    opening = talk.fetch()
    talk.leader.close()

    talk.answer(opening, fetched(error=code))

    assert talk.next() is None
    assert talk.leader.finished


def test_closing_ends_with_a_lost_connection():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    talk.leader.close()

    talk.lose(talk.acknowledge())

    assert talk.leader.finished
    assert ["SHARE_SESSION_NOT_FOUND"] == talk.errors
    assert [] == talk.happened(MetadataStale) + talk.happened(LocksLost)


@pytest.mark.parametrize("code", [*OUTSIDE, 122, 123, 30, 42])
def test_whatever_the_close_is_answered_it_is_done_and_told(code: int):
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    talk.leader.close()

    talk.answer(talk.acknowledge(), acknowledged(error=code))

    assert talk.leader.finished
    assert 1 == len(talk.errors)
    assert None not in talk.errors


@pytest.mark.parametrize("code", [Code.INVALID_RECORD_STATE, Code.REQUEST_TIMED_OUT])
def test_what_the_close_could_not_say_has_failed(code: Code):
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge_open(0, 4, ACCEPT)
    talk.leader.close()

    talk.answer(talk.acknowledge(), acknowledged(part(P0, acknowledge_error=code)))

    assert talk.leader.finished
    assert {"SHARE_SESSION_NOT_FOUND"} == set(talk.errors)
    assert 4 == sum(r.last_offset - r.first_offset + 1 for r in talk.journal.results)


def test_what_must_travel_apart_at_the_close_takes_a_request_more():
    talk = Talk()
    (early,) = talk.open(part(P0, (0, 0)))
    talk.now = 25.0
    (late,) = talk.open_more(part(P0, (5, 5)))
    early.acknowledge(0, ACCEPT)
    late.acknowledge(5, ACCEPT)
    talk.now = 29.5

    talk.leader.close()
    first = talk.acknowledge()
    talk.answer(first, acknowledged(part(P0)))
    second = talk.acknowledge()
    talk.answer(second, acknowledged(part(P0)))

    assert ({0: ACCEPT}, {5: ACCEPT}) == (
        each(first.acknowledgements[P0]),
        each(second.acknowledgements[P0]),
    )
    assert CLOSING == second.share_session_epoch != first.share_session_epoch
    assert [None, None] == talk.errors


def test_a_retry_at_the_close_does_not_spin():
    talk = Talk()
    (early,) = talk.open(part(P0, (0, 0)))
    talk.now = 20.0
    (late,) = talk.open_more(part(P0, (5, 5)))
    early.acknowledge(0, ACCEPT)
    late.acknowledge(5, ACCEPT)
    talk.now = 29.5
    talk.leader.close()

    answer = part(P0, acknowledge_error=Code.REQUEST_TIMED_OUT)
    talk.answer(talk.acknowledge(), acknowledged(answer))

    assert talk.next() is None
    assert 29.5 < talk.leader.next_deadline(talk.now) < 29.6


def test_a_renewal_at_the_close_is_no_renewal_any_more():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge(0, RENEW)
    lease.acknowledge(1, RELEASE)

    talk.leader.close()
    request = talk.acknowledge()

    assert (CLOSING, False) == (request.share_session_epoch, request.renewing)
    assert {1: RELEASE} == each(request.acknowledgements[P0])
    assert ["SHARE_SESSION_NOT_FOUND"] == talk.errors


def test_closing_a_session_that_is_not_open_fails_what_waited_for_it():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    lease.acknowledge(0, ACCEPT)
    talk.answer(talk.flush(), acknowledged(error=Code.INVALID_SHARE_SESSION_EPOCH))

    talk.leader.close()

    assert talk.leader.finished
    assert ["SHARE_SESSION_NOT_FOUND"] == talk.errors


def test_closing_is_not_held_up_by_a_pause():
    talk = Talk()
    talk.open()
    talk.pace.waiting = 1
    talk.answer(talk.fetch(), fetched(part(P0, error=Code.KAFKA_STORAGE_ERROR)))

    talk.leader.close()

    assert CLOSING == talk.acknowledge().share_session_epoch


def test_a_verb_after_the_close_raises():
    talk = Talk()
    (lease,) = talk.open(part(P0, (0, 3)))
    talk.leader.close()
    talk.answer(talk.acknowledge(), acknowledged())

    with pytest.raises(LockLostError, match="the session was closed"):
        lease.acknowledge(0, ACCEPT)
