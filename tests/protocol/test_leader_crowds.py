"""Where records come in crowds, a fetch waits at the broker until some are together."""

import math
from typing import Final

import pytest

from sharecons.protocol.acknowledge.linger import ACK_DELAY
from sharecons.protocol.fetch.arrivals import CROWD, GATHERED, MOST_GATHERED, Arrivals
from sharecons.protocol.messages import ShareFetch
from sharecons.record import ACCEPT, RELEASE
from tests.protocol.making import P0, SETTINGS, fetched, part
from tests.protocol.talk import Talk

APART: Final = CROWD / 2
MANY: Final = 30
SIZE: Final = 170  # bytes, of a record that came alone
TOOK: Final = MANY * APART
TOGETHER: Final = int(GATHERED / APART) * SIZE


def crowded(
    records: int = MANY,
    *,
    took: float = TOOK,
    record_seconds: float = 1e-6,
    **settings: object,
) -> Talk:
    """Each fetch brings so many records; the application works them and asks."""
    talk = Talk(**settings)
    talk.pace.allowance = 500
    for number in range(60):
        first = number * records
        answered(talk, talk.fetch(), took, (first, first + records - 1))
        talk.now += records * record_seconds
        asks(talk)
    return talk


def answered(
    talk: Talk, request: ShareFetch, took: float, records: tuple[int, int]
) -> None:
    """The fetch brings these records, and the application accepts them."""
    talk.pace.waiting = 0
    talk.now += took
    first, last = records
    content = bytes((last - first + 1) * SIZE)
    talk.answer(request, fetched(part(P0, records, records=content)))
    for lease in talk.leases():
        lease.acknowledge_open(0, lease.count, ACCEPT)


def asks(talk: Talk) -> None:
    talk.pace.asked(talk.now)
    talk.pace.waiting = 1


def test_where_records_come_in_crowds_a_fetch_waits_for_some_of_them():
    request = crowded().fetch()

    assert pytest.approx(TOGETHER, rel=0.05) == request.min_bytes


def test_it_waits_for_moments_should_no_more_come():
    talk = crowded()
    said = talk.fetch()  # what had gathered, perhaps
    answered(talk, said, TOOK, (9000, 9029))
    asks(talk)

    assert MOST_GATHERED >= talk.fetch().max_wait


def test_what_comes_faster_is_waited_for_as_long():
    slowly, fast = crowded().fetch(), crowded(took=TOOK / 3).fetch()

    assert pytest.approx(3 * slowly.min_bytes, rel=0.1) == fast.min_bytes


def test_no_more_is_waited_for_than_may_come():
    """As in virtual time, where answers come at one instant."""
    talk = crowded()
    for number in range(200):
        answered(talk, talk.fetch(), 0.0, (30 * number, 30 * number + 29))
        asks(talk)

    assert SETTINGS.max_bytes == talk.fetch().min_bytes


def test_any_number_of_answers_may_come_at_one_instant():
    arrivals = Arrivals()
    for _ in range(5000):
        arrivals.came(30, 30 * SIZE, 0.0, keeps_up=True)

    assert SETTINGS.max_bytes < arrivals.least < 2**63


def test_once_none_came_the_next_fetch_waits_for_any():
    """Else it would ask each three milliseconds until the day's end."""
    talk = crowded()
    request = talk.fetch()
    talk.now += request.max_wait
    talk.answer(request, fetched())

    request = talk.fetch()

    assert SETTINGS.min_bytes == request.min_bytes
    assert ACK_DELAY / 2 < request.max_wait


def test_fewer_bring_the_crowd_to_its_end():
    talk = crowded()
    for number in range(20):
        request = talk.fetch()
        answered(talk, request, request.max_wait, (9000 + number, 9000 + number))
        asks(talk)

    assert SETTINGS.min_bytes == talk.fetch().min_bytes


@pytest.mark.parametrize(
    ("took", "record_seconds"),
    [
        pytest.param(MANY * CROWD * 1.2, 1e-6, id="records further apart"),
        pytest.param(TOOK, 0.001, id="an application that takes its time"),
    ],
)
def test_without_a_crowd_it_waits_for_any(took: float, record_seconds: float):
    talk = crowded(took=took, record_seconds=record_seconds)

    assert SETTINGS.min_bytes == talk.fetch().min_bytes


def test_more_may_be_asked_for_by_the_consumer():
    request = crowded(min_bytes=100_000, max_wait=0.004).fetch()

    assert (100_000, 0.004) == (request.min_bytes, request.max_wait)


def test_a_fetch_that_releases_does_not_wait_for_them():
    talk = crowded()
    request = talk.fetch()
    talk.pace.waiting = 0
    talk.answer(request, fetched(part(P0, (9000, 9029), records=bytes(30 * SIZE))))
    (lease,) = talk.leases()
    lease.acknowledge_open(0, lease.count, RELEASE)
    asks(talk)

    request = talk.fetch()

    assert (0.0, SETTINGS.min_bytes) == (request.max_wait, request.min_bytes)


def test_acknowledgements_leave_in_their_time():
    talk = crowded()
    carrying, since, waited = 0, talk.now, []
    for number in range(40):
        request = talk.fetch()
        if request.acknowledgements:
            waited.append(talk.now - since)
            carrying, since = carrying + 1, math.inf
        first = 9000 + 25 * number
        answered(talk, request, MOST_GATHERED, (first, first + 24))
        since = min(since, talk.now)
        asks(talk)

    assert 10 <= carrying <= 20
    assert max(waited[1:]) <= ACK_DELAY
