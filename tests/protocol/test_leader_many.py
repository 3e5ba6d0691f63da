"""Many partitions, which the leader's machine asks for some at a time."""

from typing import Final

import pytest

from sharecons.protocol.codes import Code
from sharecons.protocol.fetch.prefetch import DEMAND
from sharecons.protocol.fetch.turns import PART
from sharecons.protocol.messages import ShareFetch, SharePartition
from sharecons.record import ACCEPT
from tests.protocol.making import P0, TOPIC_ID, each, fetched, part
from tests.protocol.talk import Talk

MANY: Final = frozenset(SharePartition(TOPIC_ID, n) for n in range(4 * PART))
MUCH: Final = (0, 499)


def fast(talk: Talk) -> None:
    """The application has worked off what it has in no time, and wants more."""
    for lease in talk.leases():
        lease.acknowledge_open(0, lease.count, ACCEPT)
    talk.pace.waiting = 0
    talk.pace.asked(talk.now)
    talk.pace.allowance = 500


def backlogged() -> Talk:
    """The session is open with all partitions, and more lies ready than came."""
    talk = Talk(*MANY)
    talk.answer(talk.fetch(), fetched(part(P0, (0, 0))))
    fast(talk)
    return talk


def bring(talk: Talk, request: ShareFetch, where: SharePartition) -> None:
    """Much of one partition; what was acknowledged was, too."""
    told = [part(p) for p in request.acknowledgements if p != where]
    talk.answer(request, fetched(part(where, MUCH), *told))
    fast(talk)


def test_where_much_lies_ready_some_of_many_partitions_are_asked_without_waiting():
    talk = backlogged()

    first = talk.fetch()
    bring(talk, first, min(MANY - first.forgotten))
    second = talk.fetch()

    assert 3 * PART == len(first.forgotten)
    assert MANY - first.forgotten == second.forgotten
    assert PART == len(second.added)
    assert [0.0] * 2 == [first.max_wait, second.max_wait]


def test_what_some_bring_is_acknowledged_with_the_fetch_that_asks_the_next():
    talk = backlogged()
    first = talk.fetch()
    where = min(MANY - first.forgotten)
    bring(talk, first, where)

    second = talk.fetch()

    assert where in second.forgotten
    said = each(second.acknowledgements[where])
    assert dict.fromkeys(range(500), ACCEPT) == said
    bring(talk, second, min(second.added))
    assert {None} == set(talk.errors)


def test_when_some_bring_little_all_are_asked_at_once():
    talk = backlogged()
    talk.answer(talk.fetch(), fetched())

    everything = talk.fetch()

    assert 3 * PART == len(everything.added)
    assert frozenset() == everything.forgotten
    assert 0.0 < everything.max_wait


def test_when_all_bring_little_nobody_asks_before_the_application():
    talk = backlogged()
    talk.answer(talk.fetch(), fetched())
    talk.answer(talk.fetch(), fetched(part(P0, (500, 500))))
    talk.leases()
    talk.now += DEMAND

    assert talk.next() is None
    talk.pace.waiting = 1
    everything = talk.fetch()
    assert (frozenset(), frozenset()) == (everything.added, everything.forgotten)


@pytest.mark.parametrize("gone", [False, True])
def test_after_a_change_of_partitions_the_new_ones_have_their_turns(gone: bool):
    talk = backlogged()
    first = talk.fetch()
    wanted = frozenset(sorted(MANY)[: 2 * PART - gone])
    talk.leader.set_partitions(wanted)
    bring(talk, first, min(MANY - first.forgotten))

    asked = {some for _ in range(2) for some in asks(talk)}

    assert wanted == asked


def asks(talk: Talk) -> frozenset[SharePartition]:
    """Give the partitions of the session after the next fetch."""
    request = talk.fetch()
    bring(talk, request, min(request.added, default=P0))
    return talk.leader._session.partitions


@pytest.mark.parametrize(
    "code", [Code.INVALID_SHARE_SESSION_EPOCH, Code.UNKNOWN_SERVER_ERROR]
)
def test_a_session_opened_anew_begins_with_all(code: Code):
    """Whatever ended the one before, the broker may have to load them again."""
    talk = backlogged()
    talk.answer(talk.fetch(), fetched(error=code))
    talk.now = talk.leader.next_deadline(talk.now)

    opening = talk.fetch()

    assert 0 == opening.share_session_epoch
    assert MANY == opening.added
    bring(talk, opening, P0)
    assert 3 * PART <= len(talk.fetch().forgotten)
