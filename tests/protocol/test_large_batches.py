"""The number of records to request where producer batches are large.

A broker sends whole producer batches, even if the record limit is smaller.
"""

import math

import pytest

from sharecons.protocol.fetch.batch_sizes import BatchSizes
from sharecons.protocol.fetch.prefetch import Prefetch
from tests.protocol.leader_harness import LeaderHarness
from tests.protocol.message_factories import (
    P0,
    batch_bytes,
    partition_response,
)
from tests.records.message_sets import message, wrapper

LOCK = 30.0
LARGE = 1000  # records of 1 kB in a batch of 1 MB


def measured_sizes(*payloads: bytes) -> BatchSizes:
    sizes = BatchSizes()
    for payload in payloads:
        sizes.measure([partition_response(P0, records=payload)])
    return sizes


class Handler:
    """An application that takes the same time for each record."""

    def __init__(
        self, seconds: float, *, batch_records: int = LARGE, max_records: int = 2000
    ) -> None:
        self.prefetch = Prefetch(max_records)
        self.now = 0.0
        self._seconds = seconds
        self._payload = batch_bytes(batch_records)
        self.limits: list[int] = []

    def work(self, turns: int, leaders: int = 1) -> list[int]:
        """Fetch and process in turns; return the record limit of each fetch so far."""
        for _ in range(turns):
            count = self.prefetch.record_limit(leaders, partitions=9)
            self.limits.append(count)
            self.prefetch.on_acquired(count)
            self.prefetch.measure([partition_response(P0, records=self._payload)], LOCK)
            self.prefetch.on_delivered(count, self.now)
            self.now += count * self._seconds
            self.prefetch.on_requested(self.now)
        return self.limits


@pytest.mark.parametrize("previous", [b"", message(9, b"a")], ids=["none", "one"])
def test_messages_of_format_1_are_measured(previous: bytes) -> None:
    inner = [message(at, b"a" * 100) for at in range(10)]
    compressed = [wrapper(at, inner) for at in (19, 29)]

    sizes = measured_sizes(previous + b"".join(compressed))

    assert sizes.largest == len(compressed[0])
    assert 8 < sizes.records <= 10


@pytest.mark.parametrize(("seconds", "records"), [(0.1, 150), (1.0, 15), (5.0, 3)])
def test_slow_handler_requests_half_a_lock_of_records_after_the_first(
    seconds: float, records: int
):
    limits = Handler(seconds).work(6)

    assert 1 == limits[0]
    assert limits[1:] == pytest.approx([records] * 5, abs=1)


def test_fast_handler_receives_whole_batches_after_two_fetches():
    handler = Handler(0.0001)
    whole = []
    for _ in range(4):
        whole.append(handler.prefetch.takes_whole_batches(leaders=1))
        handler.work(1)

    assert [False, False, True, True] == whole
    assert [1, 256, 1000, 1000] == [min(count, 1000) for count in handler.limits]


def test_whole_batches_are_taken_if_they_fit_in_half_of_the_lock():
    handler = Handler(0.006)  # 2,500 records in half of the lock

    handler.work(3)

    assert handler.prefetch.takes_whole_batches(leaders=1)
    assert 1501 == pytest.approx(handler.prefetch.record_limit(1, partitions=9), abs=2)
    assert not handler.prefetch.takes_whole_batches(leaders=2), (
        "each leader returns a batch"
    )


@pytest.mark.parametrize("acquire_all", [1, 10])
def test_whole_batches_longer_than_half_of_the_lock_are_never_taken(
    acquire_all: int,
):
    handler = Handler(1 / 50, max_records=acquire_all)

    handler.work(5)

    assert acquire_all == handler.prefetch.allowance, "at full speed"
    assert not handler.prefetch.takes_whole_batches(leaders=1)


def test_set_allowance_applies_exactly_to_one_request():
    prefetch = Prefetch(2000)
    prefetch.lock_duration = 30.0
    prefetch.set_allowance(5)
    assert not prefetch.takes_whole_batches(leaders=1)
    assert 5 == prefetch.record_limit(leaders=1, partitions=1)
    prefetch.on_requested(0.0)
    assert 0.0 == prefetch.next_due(0.0)
    prefetch.on_acquired(5)

    for now in (0.0, 0.001, 1.0):
        assert math.inf == prefetch.next_due(now), "nothing is prefetched"
    prefetch.set_max_records(2000)
    prefetch.on_delivered(5, 1.0)
    prefetch.on_requested(1.001)
    assert 10 == prefetch.allowance, "it grows again"


def test_allowance_without_a_lock_duration_grows_by_the_horizon():
    prefetch = Prefetch(2000)
    prefetch.batches.measure([partition_response(P0, records=batch_bytes(LARGE))])
    prefetch.on_acquired(1)
    prefetch.on_delivered(1, now=0.0)

    prefetch.on_requested(now=0.1)

    assert 2 == prefetch.allowance


def test_rate_of_a_handler_does_not_include_expired_records():
    handler = Handler(0.1)
    handler.work(2)
    prefetch = handler.prefetch
    prefetch.on_acquired(150)
    prefetch.on_delivered(150, now=100.0)

    prefetch.on_requested(now=130.0, expired=120)  # their locks have ended

    assert 15 == prefetch.allowance


def test_batch_sizes_are_weighted_by_bytes():
    sizes = measured_sizes(batch_bytes(1) * 3 + batch_bytes(100))

    assert 97 == pytest.approx(sizes.records, abs=2)
    assert 97_000 == pytest.approx(sizes.size, abs=2000)
    assert 1000 == pytest.approx(sizes.record_size)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\0" * 7,
        b"\0" * 61,
        b"\xff" * 200,
        batch_bytes(5)[:60],
        batch_bytes(0, 0)[:61],
    ],
)
def test_bytes_without_a_batch_are_not_measured(payload: bytes):
    sizes = measured_sizes(payload)

    assert (0, 0, 0) == (sizes.records, sizes.size, sizes.record_size)


def test_truncated_batch_is_measured_by_its_header():
    sizes = measured_sizes(batch_bytes(1000)[:5000])

    assert (1000, 1_000_000) == (sizes.records, sizes.size)


def test_only_the_first_batches_of_a_response_are_measured():
    many = b"".join(batch_bytes(1, 100) for _ in range(200)) + batch_bytes(5000)

    assert 1 == measured_sizes(many).records


def test_leader_uses_the_lock_duration_of_the_group():
    harness = LeaderHarness()
    harness.fetch(
        partition_response(P0, (0, 0), records=batch_bytes(LARGE)), lock_timeout=4.0
    )
    harness.take_leases()

    harness.now = 0.1
    harness.prefetch.on_requested(harness.now)
    request = harness.next_fetch()

    assert 20 == request.max_records
