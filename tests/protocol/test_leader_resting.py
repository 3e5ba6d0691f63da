"""Where records come in crowds, the next fetch rests."""

import pytest

from sharecons.protocol.arrivals import CROWD, LONGEST_REST, SPARED
from sharecons.protocol.gathering import ACK_DELAY
from sharecons.protocol.values import ShareFetch
from sharecons.record import ACCEPT
from tests.protocol.making import P0, each, fetched, part
from tests.protocol.talk import Talk

TOOK = SPARED + LONGEST_REST / 2
REST = TOOK - SPARED


def rested(talk: Talk) -> ShareFetch:
    """The fetch that is due next, when it is."""
    while (request := talk.next()) is None:
        talk.now = talk.leader.next_deadline(talk.now)
    assert isinstance(request, ShareFetch)
    return request


def crowded(
    records: int = 30, *, took: float = TOOK, record_seconds: float = 1e-6
) -> Talk:
    """Each fetch brings so many records; the application works them and asks."""
    talk = Talk()
    talk.pace.allowance = 500
    for number in range(30):
        first = number * records
        answered(talk, rested(talk), took, (first, first + records - 1))
        talk.now += records * record_seconds
        asks(talk)
    return talk


def answered(
    talk: Talk, request: ShareFetch, took: float, records: tuple[int, int]
) -> None:
    """The fetch brings these records, and the application accepts them."""
    talk.pace.waiting = 0
    talk.now += took
    talk.answer(request, fetched(part(P0, records)))
    for lease in talk.leases():
        lease.acknowledge_open(0, lease.count, ACCEPT)


def asks(talk: Talk) -> None:
    talk.pace.asked(talk.now)
    talk.pace.waiting = 1


def test_where_records_come_in_crowds_the_next_fetch_rests():
    talk = crowded()
    came = talk.now - 30e-6

    assert talk.next() is None
    rested(talk)

    assert came + REST == pytest.approx(talk.now)


@pytest.mark.parametrize(
    ("took", "rest"),
    [
        pytest.param(SPARED * 0.9, 0.0, id="an answer that came soon"),
        pytest.param(SPARED + LONGEST_REST * 1.1, LONGEST_REST, id="one that waited"),
    ],
)
def test_it_rests_as_long_as_a_busy_broker_needs(took: float, rest: float):
    # As many as make a crowd, whatever it took.
    talk = crowded(int(took / CROWD * 2), took=took, record_seconds=0.0)
    came = talk.now

    rested(talk)

    assert came + rest == pytest.approx(talk.now, abs=1e-9)


def test_what_is_to_be_said_meanwhile_takes_the_fetch():
    talk = crowded()
    first = rested(talk)
    assert {} == first.acknowledgements, "they have just begun to gather"
    answered(talk, first, ACK_DELAY, (900, 999))
    asks(talk)

    second = talk.fetch()

    assert set(range(870, 900)) <= each(second.acknowledgements[P0]).keys()


@pytest.mark.parametrize(
    ("records", "record_seconds"),
    [
        pytest.param(int(TOOK / CROWD * 0.8), 1e-6, id="records further apart"),
        pytest.param(30, 0.001, id="an application that takes its time"),
    ],
)
def test_without_a_crowd_it_does_not_rest(records: int, record_seconds: float):
    talk = crowded(records, record_seconds=record_seconds)

    assert isinstance(talk.next(), ShareFetch)


def test_where_more_lies_ready_it_does_not_rest():
    talk = crowded()
    request = rested(talk)
    talk.now += TOOK
    talk.answer(request, fetched(part(P0, (900, 1399))))

    assert isinstance(talk.next(), ShareFetch)


def test_what_somebody_waits_for_does_not_rest():
    talk = crowded()
    assert talk.next() is None
    talk.leader.hasten()

    said = talk.acknowledge().acknowledgements

    assert set(range(870, 900)) <= each(said[P0]).keys()


def test_acknowledgements_leave_in_their_time_though_nobody_asks():
    talk = crowded()
    talk.pace.waiting = 0
    talk.pace.handed_out(0, talk.now)  # nobody asks any more
    assert talk.next() is None
    begun = talk.now

    talk.now = talk.leader.next_deadline(talk.now)

    assert talk.now - begun <= ACK_DELAY
    assert talk.acknowledge().acknowledgements
