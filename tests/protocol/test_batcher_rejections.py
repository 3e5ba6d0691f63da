"""Rejected batches, which the batcher splits until it finds the invalid records."""

import pytest

from sharecons.protocol.acknowledge.ack_batches import MAX_SPLITS
from sharecons.record import ACCEPT
from tests.protocol.batcher_harness import (
    INVALID_STATE,
    Acks,
    BatcherHarness,
    accepted,
)
from tests.protocol.message_factories import (
    P0,
    partition_response,
)


def exchange_all(
    harness: BatcherHarness, *bad: int, max_requests: int = 500
) -> list[Acks]:
    """Exchange until nothing is pending; reject each request with a bad offset."""
    requests = []
    while sent := harness.take_acks():
        requests.append(sent[P0])
        code = INVALID_STATE if sent[P0].keys() & set(bad) else 0
        harness.respond(partition_response(P0, acknowledge_error=code))
        assert len(requests) <= max_requests
    return requests


@pytest.mark.parametrize("bad", [0, 5, 9])
def test_one_invalid_offset_fails_alone_and_the_others_are_applied(bad: int):
    harness = BatcherHarness()
    harness.add_lease(*range(10)).acknowledge_open(0, 10, ACCEPT)

    exchange_all(harness, bad)

    failed = [r for r in harness.results if r[3] is not None]
    assert [(bad, bad, ACCEPT, INVALID_STATE.name)] == failed
    assert 10 == sum(last - first + 1 for first, last, *_ in harness.results)
    assert () == harness.batcher.leases


def test_lease_of_invalid_offsets_fails_after_a_limited_number_of_requests():
    harness = BatcherHarness()
    harness.add_lease(*range(2_000)).acknowledge_open(0, 2_000, ACCEPT)

    requests = exchange_all(harness, *range(2_000))

    assert 2 * MAX_SPLITS + 1 == len(requests)
    assert [(0, 1_999, ACCEPT, INVALID_STATE.name)] == harness.results


def test_leases_rejected_together_are_sent_one_by_one():
    harness = BatcherHarness()
    for first in (0, 10, 20):
        harness.add_lease(first, first + 1).acknowledge_open(0, 2, ACCEPT)

    requests = exchange_all(harness, 10)

    assert [
        accepted(0, 1, 10, 11, 20, 21),
        accepted(0, 1),
        accepted(10, 11),
        accepted(20, 21),
        accepted(10),
        accepted(11),
    ] == requests


def test_new_acknowledgements_are_sent_separately_from_rejected_ones():
    harness = BatcherHarness()
    harness.add_lease(0, 1).acknowledge_open(0, 2, ACCEPT)
    harness.exchange(INVALID_STATE)
    harness.add_lease(5).acknowledge(5, ACCEPT)

    requests = [harness.exchange()[P0] for _ in range(3)]

    assert [accepted(0), accepted(1), accepted(5)] == sorted(requests, key=min)


def test_batch_rejected_after_the_end_of_its_lock_is_not_split():
    harness = BatcherHarness()
    harness.add_lease(*range(10), deadline=30.0).acknowledge_open(0, 10, ACCEPT)

    harness.exchange(INVALID_STATE, now=31.0)

    assert [(0, 9, ACCEPT, INVALID_STATE.name)] == harness.results
    assert {} == harness.take_acks(now=31.0)
