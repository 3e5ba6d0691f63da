"""How many bytes a fetch requests."""

from typing import Final

import pytest

from sharecons.protocol.fetch.byte_limit import MARGIN, MIN_PART, byte_limit
from sharecons.protocol.fetch.prefetch import DEFAULT_BATCH_SIZE, Prefetch
from tests.protocol.leader_harness import LeaderHarness
from tests.protocol.message_factories import (
    P0,
    P1,
    batch_bytes,
    fetch_response,
    partition_response,
)

MAX_BYTES: Final = 1_000_000


def prefetch_after_batch(*, records: int, size: int) -> Prefetch:
    """Return a prefetch that has measured a response with one batch."""
    prefetch = Prefetch(2000)
    content = batch_bytes(records, size // records)
    prefetch.batches.measure([partition_response(P0, records=content)])
    return prefetch


def limit(
    prefetch: Prefetch,
    *,
    records: int = 2000,
    partitions: int = 1,
    min_bytes: int = 1,
    backlog: bool = False,
) -> int:
    return byte_limit(
        prefetch,
        records=records,
        partitions=partitions,
        min_bytes=min_bytes,
        max_bytes=MAX_BYTES,
        backlog=backlog,
    )


@pytest.mark.parametrize("backlog", [False, True])
def test_limit_grows_with_many_partitions_of_small_records(backlog):
    prefetch = prefetch_after_batch(records=1000, size=110_000)

    assert 6 * 220_000 == limit(prefetch, partitions=6, backlog=backlog)
    assert 4 * MAX_BYTES == limit(prefetch, partitions=500, backlog=backlog)


def test_limit_without_a_backlog_is_at_least_max_bytes():
    prefetch = prefetch_after_batch(records=1000, size=110_000)

    assert MAX_BYTES == limit(prefetch, partitions=1)
    assert MAX_BYTES == limit(prefetch, partitions=3)


def test_limit_with_a_backlog_is_about_what_each_partition_can_return():
    prefetch = prefetch_after_batch(records=1000, size=110_000)

    assert MARGIN * 220_000 == limit(prefetch, partitions=1, backlog=True)
    assert 2 * MARGIN * 220_000 == limit(prefetch, partitions=2, backlog=True)
    assert MAX_BYTES == limit(prefetch, partitions=3, backlog=True)


def test_limit_with_a_backlog_has_space_for_whole_batches():
    prefetch = prefetch_after_batch(records=1000, size=110_000)

    assert MARGIN * 110_000 == limit(prefetch, records=1, backlog=True)


def test_limit_with_a_backlog_of_small_batches_has_a_minimum_per_partition():
    prefetch = prefetch_after_batch(records=10, size=1000)

    assert 3 * MIN_PART == limit(prefetch, records=10, partitions=3, backlog=True)


def test_limit_with_a_backlog_is_at_least_min_bytes_per_partition():
    prefetch = prefetch_after_batch(records=10, size=1000)
    min_bytes = 2 * MIN_PART

    assert 3 * min_bytes == limit(
        prefetch, records=10, partitions=3, min_bytes=min_bytes, backlog=True
    )


@pytest.mark.parametrize("backlog", [False, True])
def test_limit_does_not_grow_for_large_records(backlog):
    prefetch = prefetch_after_batch(records=10, size=10_000)

    assert MAX_BYTES == limit(prefetch, partitions=500, backlog=backlog)


@pytest.mark.parametrize("backlog", [False, True])
def test_limit_for_records_of_unknown_size_is_max_bytes(backlog):
    assert MAX_BYTES < DEFAULT_BATCH_SIZE
    assert MAX_BYTES == limit(Prefetch(2000), partitions=9, backlog=backlog)


def test_fetch_after_a_full_one_requests_fewer_bytes_until_one_returns_few_records():
    harness = LeaderHarness(P0, P1, max_bytes=MAX_BYTES)
    harness.prefetch.allowance = 10
    harness.prefetch.waiting_readers = 1
    # The first fetch is sent without any sizes.
    requested = [fetch_records(harness, first=0, count=10)]
    requested.append(fetch_records(harness, first=10, count=10))
    requested.append(fetch_records(harness, first=20, count=2))
    requested.append(fetch_records(harness, first=22, count=10))

    assert [MAX_BYTES, 2 * MIN_PART, 2 * MIN_PART, MAX_BYTES] == requested


def fetch_records(harness: LeaderHarness, *, first: int, count: int) -> int:
    """Return `count` records to the next fetch, and its `max_bytes`."""
    request = harness.next_fetch()
    response = partition_response(
        P0, (first, first + count - 1), records=batch_bytes(count, 70)
    )
    harness.respond(request, fetch_response(response))
    harness.take_leases()
    return request.max_bytes
