"""A second fetch, behind the one that is under way."""

from typing import Any

import pytest

from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.linger import ACK_DELAY
from sharecons.protocol.codes import Code
from sharecons.protocol.fetch.events import UnexpectedResponse
from sharecons.protocol.fetch.session_manager import CLOSING
from sharecons.protocol.messages import ShareFetch, SharePartition
from sharecons.record import ACCEPT, RENEW
from tests.protocol.making import P0, TOPIC_ID, fetched, part
from tests.protocol.talk import Talk

SIX = tuple(SharePartition(TOPIC_ID, number) for number in range(6))


def much_comes(
    *,
    wanted: tuple[SharePartition, ...] = SIX,
    seconds: float = 1e-3,
    brings: int = 500,
) -> tuple[Talk, ShareFetch]:
    """Fetches bring much, one after the other; gives the one that is under way."""
    talk = Talk(*wanted)
    talk.pace.allowance = 500
    for turn in range(4):
        request = talk.fetch()
        first = turn * brings
        talk.answer(request, fetched(part(wanted[0], (first, first + brings - 1))))
        for lease in talk.leases():
            talk.now += seconds
            talk.pace.asked(talk.now)
            lease.acknowledge_open(0, lease.count, ACCEPT)
    return talk, talk.fetch()


def two_under_way() -> tuple[Talk, ShareFetch, ShareFetch]:
    """Much comes; gives a fetch and the one that was sent behind it."""
    talk, first = much_comes()
    second = talk.leader.next_behind(talk.now)
    assert isinstance(second, ShareFetch)
    return talk, first, second


def test_what_two_fetches_bring_counts_from_each_ones_own_time():
    talk, first = much_comes()
    sent = talk.now
    talk.now += 0.001
    second = talk.leader.next_behind(talk.now)
    assert isinstance(second, ShareFetch)
    talk.answer(first, fetched(part(SIX[1], (0, 499)), lock_timeout=30.0))
    talk.answer(second, fetched(part(SIX[1], (500, 999)), lock_timeout=30.0))

    one, two = talk.leases()

    assert first.share_session_epoch + 1 == second.share_session_epoch
    assert [sent + 30.0, sent + 30.001] == pytest.approx([one.deadline, two.deadline])


def test_acknowledgements_ride_on_one_of_two_fetches_and_hear_of_its_answer():
    talk, first, second = two_under_way()
    assert first.acknowledgements, "where more lies ready, with each fetch"
    assert {} == second.acknowledgements
    talk.journal.results.clear()
    talk.answer(first, fetched(part(SIX[0]), part(SIX[1], (0, 499))))
    heard = list(talk.journal.results)
    worked(talk)

    third = talk.leader.next_behind(talk.now)
    assert third is not None
    assert {SIX[1]} == third.acknowledgements.keys()
    talk.answer(second, fetched(part(SIX[1], (500, 999))))
    assert heard == talk.journal.results, "the third's is to come"
    talk.answer(third, fetched(part(SIX[1])))

    assert len(heard) + 1 == len(talk.journal.results)
    assert {None} == set(talk.errors)


def test_nothing_is_sent_behind_the_fetch_that_opens_the_session():
    talk, first, second = two_under_way()
    talk.answer(first, fetched(error=Code.SHARE_SESSION_LIMIT_REACHED))
    talk.answer(second, fetched(part(P0, (30, 30))))
    talk.leases()
    talk.now = talk.leader.next_deadline(talk.now)
    opening = talk.fetch()

    assert 0 == opening.share_session_epoch
    assert talk.leader.next_behind(talk.now) is None


def test_records_that_an_outlived_session_brings_are_delivered():
    talk, first, second = two_under_way()

    talk.answer(first, fetched(error=Code.UNKNOWN_SERVER_ERROR))
    talk.answer(second, fetched(part(P0, (30, 30))))

    (lease,) = talk.leases()
    assert not lease.term.ended
    assert [] == talk.happened(UnexpectedResponse)
    talk.now = talk.leader.next_deadline(talk.now)
    assert 0 == talk.fetch().share_session_epoch


def test_a_stranger_in_what_an_outlived_session_brings_is_left_alone():
    talk, first, second = two_under_way()

    talk.answer(first, fetched(error=Code.UNKNOWN_SERVER_ERROR))
    stranger = SharePartition(TOPIC_ID, 6)
    talk.answer(second, fetched(part(stranger, (0, 0))))

    assert [] == talk.leases()
    assert 1 == len(talk.happened(UnexpectedResponse))


def test_two_wrong_epochs_open_anew_once():
    talk, first, second = two_under_way()
    talk.journal.results.clear()
    talk.answer(first, fetched(error=Code.INVALID_SHARE_SESSION_EPOCH))
    talk.answer(second, fetched(error=Code.INVALID_SHARE_SESSION_EPOCH))
    talk.now = talk.leader.next_deadline(talk.now)
    opening = talk.fetch()
    talk.answer(opening, fetched())
    talk.now += ACK_DELAY
    again = talk.next()

    assert 0 == opening.share_session_epoch
    assert again is not None
    assert first.acknowledgements == again.acknowledgements
    assert [] == talk.journal.results


def test_the_pause_that_the_first_asks_for_outlasts_the_second():
    talk, first, second = two_under_way()
    talk.answer(first, fetched(part(P0, (30, 30)), throttle=5.0))
    talk.answer(second, fetched(part(P0, (31, 31))))
    talk.leases()

    assert talk.next() is None
    assert talk.now + 5.0 == talk.leader.next_deadline(talk.now)


def test_a_lost_connection_fails_both_fetches():
    talk, first, _ = two_under_way()
    talk.journal.results.clear()

    talk.lose(first)

    assert {"SHARE_SESSION_NOT_FOUND"} == set(talk.errors)
    talk.now = talk.leader.next_deadline(talk.now)
    assert 0 == talk.fetch().share_session_epoch


def test_closing_waits_for_both_fetches():
    talk, first, second = two_under_way()
    talk.leader.close()
    talk.answer(first, fetched(part(P0, (30, 30))))
    still = talk.leader.next_request(talk.now)
    talk.answer(second, fetched())

    closing = talk.acknowledge()
    assert still is None
    assert CLOSING == closing.share_session_epoch


def test_while_much_comes_another_fetch_is_sent_behind_the_first():
    talk, _ = much_comes()

    behind = talk.leader.next_behind(talk.now)

    assert isinstance(behind, ShareFetch)
    assert 0.0 == behind.max_wait
    assert (frozenset(), frozenset()) == (behind.added, behind.forgotten)
    assert {} == behind.acknowledgements, "those under way are not answered yet"
    assert talk.leader.next_behind(talk.now) is None


def test_acknowledgements_ride_behind_while_none_are_under_way():
    talk, sent = much_comes()
    first = talk.leader.next_behind(talk.now)
    assert isinstance(first, ShareFetch)
    talk.answer(sent, fetched(part(SIX[1], (0, 499))))
    for lease in talk.leases():
        lease.acknowledge_open(0, lease.count, ACCEPT)
    talk.now += 1e-3
    talk.pace.asked(talk.now)

    second = talk.leader.next_behind(talk.now)

    assert isinstance(second, ShareFetch)
    assert {SIX[1]} == second.acknowledgements.keys()
    assert first.share_session_epoch + 1 == second.share_session_epoch


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param({"wanted": SIX[:1]}, id="windows without room"),
        pytest.param({"seconds": 0.1}, id="an application that takes its time"),
        pytest.param({"brings": 50}, id="nothing more that lies ready"),
        pytest.param(
            {"wanted": tuple(SharePartition(TOPIC_ID, n) for n in range(24))},
            id="partitions that are asked in turn",
        ),
    ],
)
def test_what_else_comes_is_fetched_one_request_at_a_time(kind: dict[str, Any]):
    talk, _ = much_comes(**kind)

    assert talk.leader.next_behind(talk.now) is None


@pytest.mark.parametrize(
    "what", ["more wanted", "others wanted", "closing", "a renewal", "a full hand"]
)
def test_nothing_is_sent_while_much_comes_that_would_change_something(what: str):
    talk, sent = much_comes()
    if what == "more wanted":
        talk.leader.set_partitions(frozenset(SIX[:4]))
    if what == "others wanted":
        talk.leader.set_partitions(frozenset({*SIX[1:], SharePartition(TOPIC_ID, 6)}))
    if what == "closing":
        talk.leader.close()
    if what == "a renewal":
        lease = lease_of(talk, sent)
        lease.acknowledge(lease.acquired[0][0], RENEW)
    if what == "a full hand":
        talk.pace.acquired(500)

    assert talk.leader.next_behind(talk.now) is None


def lease_of(talk: Talk, sent: ShareFetch) -> Lease:
    """What this brought, not acknowledged; another fetch is under way then."""
    talk.answer(sent, fetched(part(SIX[1], (0, 499))))
    (lease,) = talk.leases()
    talk.now += 1e-3
    talk.pace.asked(talk.now)
    talk.fetch()
    return lease


def test_many_partitions_have_their_turn_though_all_were_asked_twice():
    """After two parts in vain all are asked twice; the second changes nothing."""
    many = tuple(SharePartition(TOPIC_ID, n) for n in range(24))
    talk, request = much_comes(wanted=many)
    known = [len(request.forgotten)]
    for turn, brings in enumerate([0, 500, 0, 500], start=4):
        first = 500 * turn
        came = [part(many[0], (first, first + brings - 1))] if brings else []
        talk.answer(request, fetched(*came))
        worked(talk)
        talk.pace.asked(talk.now + 1e-4)
        request = talk.fetch()
        known.append(len(request.forgotten))

    assert [12, 0, 12, 0, 0] == known
    assert frozenset() == request.added, "all are asked, again"
    assert talk.leader.next_behind(talk.now) is None


def worked(talk: Talk) -> None:
    for lease in talk.leases():
        lease.acknowledge_open(0, lease.count, ACCEPT)
        talk.now += 1e-4
        talk.pace.asked(talk.now)


def test_in_a_pause_nothing_is_sent_behind_the_second_of_two():
    talk, first, _ = two_under_way()
    talk.answer(first, fetched(part(SIX[1], (0, 499)), throttle=0.001))
    worked(talk)

    in_pause = talk.leader.next_behind(talk.now)
    talk.now += 0.001
    talk.pace.asked(talk.now)

    assert in_pause is None
    assert talk.leader.next_behind(talk.now) is not None
