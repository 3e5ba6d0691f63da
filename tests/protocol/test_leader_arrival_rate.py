"""Where records come in crowds, a fetch waits at the broker until some are together."""

import math
from typing import Final

import pytest

from sharecons.protocol.acknowledge.batcher import ACK_DELAY
from sharecons.protocol.fetch.fetch_control import (
    DENSE_INTERVAL,
    GATHER_TIME,
    MAX_GATHER_TIME,
    ArrivalRate,
)
from sharecons.protocol.messages import ShareFetch
from sharecons.record import ACCEPT, RELEASE
from tests.protocol.leader_harness import LeaderHarness
from tests.protocol.message_factories import (
    P0,
    SETTINGS,
    fetch_response,
    partition_response,
)

APART: Final = DENSE_INTERVAL / 2
MANY: Final = 30
SIZE: Final = 170  # bytes, of a record that came alone
TOOK: Final = MANY * APART
TOGETHER: Final = int(GATHER_TIME / APART) * SIZE


def crowded(
    records: int = MANY,
    *,
    took: float = TOOK,
    record_seconds: float = 1e-6,
    **settings: object,
) -> LeaderHarness:
    """Each fetch brings so many records; the application works them and asks."""
    harness = LeaderHarness(**settings)
    harness.prefetch.allowance = 500
    for number in range(60):
        first = number * records
        answered(harness, harness.next_fetch(), took, (first, first + records - 1))
        harness.now += records * record_seconds
        asks(harness)
    return harness


def answered(
    harness: LeaderHarness, request: ShareFetch, took: float, records: tuple[int, int]
) -> None:
    """The fetch brings these records, and the application accepts them."""
    harness.prefetch.waiting_readers = 0
    harness.now += took
    first, last = records
    content = bytes((last - first + 1) * SIZE)
    harness.respond(
        request, fetch_response(partition_response(P0, records, records=content))
    )
    for lease in harness.take_leases():
        lease.acknowledge_open(0, lease.count, ACCEPT)


def asks(harness: LeaderHarness) -> None:
    harness.prefetch.on_requested(harness.now)
    harness.prefetch.waiting_readers = 1


def test_where_records_come_in_crowds_a_fetch_waits_for_some_of_them():
    request = crowded().next_fetch()

    assert pytest.approx(TOGETHER, rel=0.05) == request.min_bytes


def test_it_waits_for_moments_should_no_more_come():
    harness = crowded()
    said = harness.next_fetch()  # what had gathered, perhaps
    answered(harness, said, TOOK, (9000, 9029))
    asks(harness)

    assert MAX_GATHER_TIME >= harness.next_fetch().max_wait


def test_what_comes_faster_is_waited_for_as_long():
    slowly, fast = crowded().next_fetch(), crowded(took=TOOK / 3).next_fetch()

    assert pytest.approx(3 * slowly.min_bytes, rel=0.1) == fast.min_bytes


def test_no_more_is_waited_for_than_may_come():
    """As in virtual time, where answers come at one instant."""
    harness = crowded()
    for number in range(200):
        answered(harness, harness.next_fetch(), 0.0, (30 * number, 30 * number + 29))
        asks(harness)

    assert SETTINGS.max_bytes == harness.next_fetch().min_bytes


def test_any_number_of_answers_may_come_at_one_instant():
    arrivals = ArrivalRate()
    for _ in range(5000):
        arrivals.on_response(30, 30 * SIZE, 0.0, keeps_up=True)

    assert SETTINGS.max_bytes < arrivals.min_bytes < 2**63


def test_once_none_came_the_next_fetch_waits_for_any():
    """Else it would ask each three milliseconds until the day's end."""
    harness = crowded()
    request = harness.next_fetch()
    harness.now += request.max_wait
    harness.respond(request, fetch_response())

    request = harness.next_fetch()

    assert SETTINGS.min_bytes == request.min_bytes
    assert ACK_DELAY / 2 < request.max_wait


def test_fewer_bring_the_crowd_to_its_end():
    harness = crowded()
    for number in range(20):
        request = harness.next_fetch()
        answered(harness, request, request.max_wait, (9000 + number, 9000 + number))
        asks(harness)

    assert SETTINGS.min_bytes == harness.next_fetch().min_bytes


@pytest.mark.parametrize(
    ("took", "record_seconds"),
    [
        pytest.param(MANY * DENSE_INTERVAL * 1.2, 1e-6, id="records further apart"),
        pytest.param(TOOK, 0.001, id="an application that takes its time"),
    ],
)
def test_without_a_crowd_it_waits_for_any(took: float, record_seconds: float):
    harness = crowded(took=took, record_seconds=record_seconds)

    assert SETTINGS.min_bytes == harness.next_fetch().min_bytes


def test_more_may_be_asked_for_by_the_consumer():
    request = crowded(min_bytes=100_000, max_wait=0.004).next_fetch()

    assert (100_000, 0.004) == (request.min_bytes, request.max_wait)


def test_a_fetch_that_releases_does_not_wait_for_them():
    harness = crowded()
    request = harness.next_fetch()
    harness.prefetch.waiting_readers = 0
    harness.respond(
        request,
        fetch_response(partition_response(P0, (9000, 9029), records=bytes(30 * SIZE))),
    )
    (lease,) = harness.take_leases()
    lease.acknowledge_open(0, lease.count, RELEASE)
    asks(harness)

    request = harness.next_fetch()

    assert (0.0, SETTINGS.min_bytes) == (request.max_wait, request.min_bytes)


def test_acknowledgements_leave_in_their_time():
    harness = crowded()
    carrying, since, waited = 0, harness.now, []
    for number in range(40):
        request = harness.next_fetch()
        if request.acknowledgements:
            waited.append(harness.now - since)
            carrying, since = carrying + 1, math.inf
        first = 9000 + 25 * number
        answered(harness, request, MAX_GATHER_TIME, (first, first + 24))
        since = min(since, harness.now)
        asks(harness)

    assert 10 <= carrying <= 20
    assert max(waited[1:]) <= ACK_DELAY
