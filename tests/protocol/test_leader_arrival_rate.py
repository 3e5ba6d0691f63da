"""If records arrive fast, a fetch waits at the broker until several are available."""

import math
from typing import Final

import pytest

from sharecons.protocol.acknowledge.linger import ACK_DELAY
from sharecons.protocol.fetch.arrival_rate import (
    DENSE_INTERVAL,
    GATHER_TIME,
    MAX_GATHER_TIME,
    ArrivalRate,
)
from sharecons.protocol.share_messages import ShareFetch
from sharecons.record import ACCEPT
from tests.protocol.leader_harness import LeaderHarness
from tests.protocol.message_factories import (
    P0,
    SETTINGS,
    fetch_response,
    partition_response,
)

INTERVAL: Final = DENSE_INTERVAL / 2
MANY: Final = 30
SIZE: Final = 170  # bytes of a record in a batch of its own
TOOK: Final = MANY * INTERVAL
GATHERED_BYTES: Final = int(GATHER_TIME / INTERVAL) * SIZE


def leader_with_fast_records(
    records: int = MANY,
    *,
    took: float = TOOK,
    record_seconds: float = 1e-6,
    **settings: object,
) -> LeaderHarness:
    """Return a leader whose fetches each return this many records after `took` s."""
    harness = LeaderHarness(**settings)
    harness.prefetch.allowance = 500
    for number in range(60):
        first = number * records
        respond(harness, harness.next_fetch(), took, (first, first + records - 1))
        harness.now += records * record_seconds
        request_records(harness)
    return harness


def respond(
    harness: LeaderHarness, request: ShareFetch, took: float, records: tuple[int, int]
) -> None:
    """Return these records to the fetch after `took` s, and accept them."""
    harness.prefetch.waiting_readers = 0
    harness.now += took
    first, last = records
    content = bytes((last - first + 1) * SIZE)
    harness.respond(
        request, fetch_response(partition_response(P0, records, records=content))
    )
    for lease in harness.take_leases():
        lease.acknowledge_open(0, lease.count, ACCEPT)


def request_records(harness: LeaderHarness) -> None:
    harness.prefetch.on_requested(harness.now)
    harness.prefetch.waiting_readers = 1


def test_fetch_with_fast_records_waits_for_several():
    request = leader_with_fast_records().next_fetch()

    assert pytest.approx(GATHERED_BYTES, rel=0.05) == request.min_bytes


def test_fetch_with_faster_records_waits_for_more_bytes():
    slow = leader_with_fast_records().next_fetch()
    fast = leader_with_fast_records(took=TOOK / 3).next_fetch()

    assert pytest.approx(3 * slow.min_bytes, rel=0.1) == fast.min_bytes


def test_min_bytes_after_many_responses_at_one_instant_fits_in_64_bits():
    arrivals = ArrivalRate()
    for _ in range(5000):
        arrivals.on_response(30, 30 * SIZE, 0.0, keeps_up=True)

    assert SETTINGS.max_bytes < arrivals.min_bytes < 2**63


def test_fetch_after_an_empty_response_waits_for_any_record():
    """Otherwise an idle leader would send a fetch every three milliseconds."""
    harness = leader_with_fast_records()
    request = harness.next_fetch()
    harness.now += request.max_wait
    harness.respond(request, fetch_response())

    request = harness.next_fetch()

    assert SETTINGS.min_bytes == request.min_bytes
    assert ACK_DELAY / 2 < request.max_wait


def test_fetch_after_several_small_responses_waits_for_any_record():
    harness = leader_with_fast_records()
    for number in range(20):
        request = harness.next_fetch()
        respond(harness, request, request.max_wait, (9000 + number, 9000 + number))
        request_records(harness)

    assert SETTINGS.min_bytes == harness.next_fetch().min_bytes


@pytest.mark.parametrize(
    ("took", "record_seconds"),
    [
        pytest.param(MANY * DENSE_INTERVAL * 1.2, 1e-6, id="slower records"),
        pytest.param(TOOK, 0.001, id="slower application"),
    ],
)
def test_fetch_without_fast_records_waits_for_any_record(
    took: float, record_seconds: float
):
    harness = leader_with_fast_records(took=took, record_seconds=record_seconds)

    assert SETTINGS.min_bytes == harness.next_fetch().min_bytes


def test_larger_min_bytes_of_the_consumer_is_kept():
    request = leader_with_fast_records(min_bytes=100_000, max_wait=0.004).next_fetch()

    assert (100_000, 0.004) == (request.min_bytes, request.max_wait)


def test_acknowledgements_with_fast_records_are_sent_within_the_linger_time():
    harness = leader_with_fast_records()
    sent, since, waited = 0, harness.now, []
    for number in range(40):
        request = harness.next_fetch()
        if request.acknowledgements:
            waited.append(harness.now - since)
            sent, since = sent + 1, math.inf
        first = 9000 + 25 * number
        respond(harness, request, MAX_GATHER_TIME, (first, first + 24))
        since = min(since, harness.now)
        request_records(harness)

    assert 10 <= sent <= 20
    assert max(waited[1:]) <= ACK_DELAY
