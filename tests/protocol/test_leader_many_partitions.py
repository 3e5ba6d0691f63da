"""A leader with many partitions, which it fetches in parts."""

from typing import Final

import pytest

from sharecons.protocol.codes import Code
from sharecons.protocol.fetch.partition_rotation import PART_SIZE
from sharecons.protocol.fetch.prefetch import DEMAND_PERIOD
from sharecons.protocol.partitions import SharePartition
from sharecons.protocol.share_messages import ShareFetch
from sharecons.record import ACCEPT
from tests.protocol.leader_harness import LeaderHarness
from tests.protocol.message_factories import (
    P0,
    TOPIC_ID,
    acks_by_offset,
    fetch_response,
    partition_response,
)

PARTITIONS: Final = frozenset(SharePartition(TOPIC_ID, n) for n in range(4 * PART_SIZE))
MANY_OFFSETS: Final = (0, 499)


def process_and_request(harness: LeaderHarness) -> None:
    """Process all records in no time, and request more."""
    for lease in harness.take_leases():
        lease.acknowledge_open(0, lease.count, ACCEPT)
    harness.prefetch.waiting_readers = 0
    harness.prefetch.on_requested(harness.now)
    harness.prefetch.allowance = 500


def fast_leader() -> LeaderHarness:
    """Return a leader with an open session whose application is fast."""
    harness = LeaderHarness(*PARTITIONS)
    harness.fetch(partition_response(P0, (0, 0)))
    process_and_request(harness)
    return harness


def return_many(
    harness: LeaderHarness, request: ShareFetch, partition: SharePartition
) -> None:
    """Return many records of one partition, and confirm the acknowledgements."""
    acknowledged = [
        partition_response(p) for p in request.acknowledgements if p != partition
    ]
    harness.respond(
        request,
        fetch_response(partition_response(partition, MANY_OFFSETS), *acknowledged),
    )
    process_and_request(harness)


def test_fetches_with_many_records_available_have_some_partitions_and_no_wait():
    harness = fast_leader()

    first = harness.next_fetch()
    return_many(harness, first, min(PARTITIONS - first.forgotten))
    second = harness.next_fetch()

    assert 3 * PART_SIZE == len(first.forgotten)
    assert PARTITIONS - first.forgotten == second.forgotten
    assert PART_SIZE == len(second.added)
    assert [0.0] * 2 == [first.max_wait, second.max_wait]


def test_records_of_one_part_are_acknowledged_with_the_fetch_of_the_next():
    harness = fast_leader()
    first = harness.next_fetch()
    partition = min(PARTITIONS - first.forgotten)
    return_many(harness, first, partition)

    second = harness.next_fetch()

    assert partition in second.forgotten
    sent = acks_by_offset(second.acknowledgements[partition])
    assert dict.fromkeys(range(500), ACCEPT) == sent
    return_many(harness, second, min(second.added))
    assert {None} == set(harness.errors)


def test_fetch_after_small_responses_waits_for_a_reader():
    harness = fast_leader()
    harness.fetch()
    harness.fetch(partition_response(P0, (500, 500)))
    harness.take_leases()
    harness.now += DEMAND_PERIOD

    assert harness.next_request() is None
    harness.prefetch.waiting_readers = 1
    everything = harness.next_fetch()
    assert (frozenset(), frozenset()) == (everything.added, everything.forgotten)


@pytest.mark.parametrize("removed", [False, True])
def test_changed_partitions_are_fetched_in_parts(removed: bool):
    harness = fast_leader()
    first = harness.next_fetch()
    partitions = frozenset(sorted(PARTITIONS)[: 2 * PART_SIZE - removed])
    harness.leader.set_partitions(partitions)
    return_many(harness, first, min(PARTITIONS - first.forgotten))

    fetched = {each for _ in range(2) for each in fetch_part(harness)}

    assert partitions == fetched


def fetch_part(harness: LeaderHarness) -> frozenset[SharePartition]:
    """Exchange the next fetch; return the partitions of its session."""
    request = harness.next_fetch()
    return_many(harness, request, min(request.added, default=P0))
    return harness.session_partitions


@pytest.mark.parametrize(
    "code", [Code.INVALID_SHARE_SESSION_EPOCH, Code.UNKNOWN_SERVER_ERROR]
)
def test_session_opened_again_has_all_partitions(code: Code):
    """The broker possibly has to load the partitions again."""
    harness = fast_leader()
    harness.fetch(error=code)
    harness.now = harness.leader.next_deadline(harness.now)

    opening = harness.next_fetch()

    assert 0 == opening.share_session_epoch
    assert PARTITIONS == opening.added
    return_many(harness, opening, P0)
    assert 3 * PART_SIZE <= len(harness.next_fetch().forgotten)
