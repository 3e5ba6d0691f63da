"""Many partitions, which the leader's machine asks for some at a time."""

from typing import Final

import pytest

from sharecons.protocol.codes import Code
from sharecons.protocol.fetch.prefetch import DEMAND_PERIOD
from sharecons.protocol.fetch.session_manager import PART_SIZE
from sharecons.protocol.messages import ShareFetch, SharePartition
from sharecons.record import ACCEPT
from tests.protocol.leader_harness import LeaderHarness
from tests.protocol.message_factories import (
    P0,
    TOPIC_ID,
    acks_by_offset,
    fetch_response,
    partition_response,
)

MANY: Final = frozenset(SharePartition(TOPIC_ID, n) for n in range(4 * PART_SIZE))
MUCH: Final = (0, 499)


def fast(harness: LeaderHarness) -> None:
    """Process all records in no time, and request more."""
    for lease in harness.take_leases():
        lease.acknowledge_open(0, lease.count, ACCEPT)
    harness.prefetch.waiting_readers = 0
    harness.prefetch.on_requested(harness.now)
    harness.prefetch.allowance = 500


def backlogged() -> LeaderHarness:
    """The session is open with all partitions, and more lies ready than came."""
    harness = LeaderHarness(*MANY)
    harness.respond(
        harness.next_fetch(), fetch_response(partition_response(P0, (0, 0)))
    )
    fast(harness)
    return harness


def bring(harness: LeaderHarness, request: ShareFetch, where: SharePartition) -> None:
    """Much of one partition; what was acknowledged was, too."""
    acknowledged = [
        partition_response(p) for p in request.acknowledgements if p != where
    ]
    harness.respond(
        request, fetch_response(partition_response(where, MUCH), *acknowledged)
    )
    fast(harness)


def test_where_much_lies_ready_some_of_many_partitions_are_asked_without_waiting():
    harness = backlogged()

    first = harness.next_fetch()
    bring(harness, first, min(MANY - first.forgotten))
    second = harness.next_fetch()

    assert 3 * PART_SIZE == len(first.forgotten)
    assert MANY - first.forgotten == second.forgotten
    assert PART_SIZE == len(second.added)
    assert [0.0] * 2 == [first.max_wait, second.max_wait]


def test_what_some_bring_is_acknowledged_with_the_fetch_that_asks_the_next():
    harness = backlogged()
    first = harness.next_fetch()
    where = min(MANY - first.forgotten)
    bring(harness, first, where)

    second = harness.next_fetch()

    assert where in second.forgotten
    said = acks_by_offset(second.acknowledgements[where])
    assert dict.fromkeys(range(500), ACCEPT) == said
    bring(harness, second, min(second.added))
    assert {None} == set(harness.errors)


def test_when_some_bring_little_all_are_asked_at_once():
    harness = backlogged()
    harness.respond(harness.next_fetch(), fetch_response())

    everything = harness.next_fetch()

    assert 3 * PART_SIZE == len(everything.added)
    assert frozenset() == everything.forgotten
    assert 0.0 < everything.max_wait


def test_after_small_responses_no_fetch_is_sent_before_the_application_asks():
    harness = backlogged()
    harness.respond(harness.next_fetch(), fetch_response())
    harness.respond(
        harness.next_fetch(), fetch_response(partition_response(P0, (500, 500)))
    )
    harness.take_leases()
    harness.now += DEMAND_PERIOD

    assert harness.next_request() is None
    harness.prefetch.waiting_readers = 1
    everything = harness.next_fetch()
    assert (frozenset(), frozenset()) == (everything.added, everything.forgotten)


@pytest.mark.parametrize("gone", [False, True])
def test_after_a_change_of_partitions_the_new_ones_have_their_turns(gone: bool):
    harness = backlogged()
    first = harness.next_fetch()
    wanted = frozenset(sorted(MANY)[: 2 * PART_SIZE - gone])
    harness.leader.set_partitions(wanted)
    bring(harness, first, min(MANY - first.forgotten))

    asked = {some for _ in range(2) for some in asks(harness)}

    assert wanted == asked


def asks(harness: LeaderHarness) -> frozenset[SharePartition]:
    """Return the partitions of the session after the next fetch."""
    request = harness.next_fetch()
    bring(harness, request, min(request.added, default=P0))
    return harness.leader._session.partitions


@pytest.mark.parametrize(
    "code", [Code.INVALID_SHARE_SESSION_EPOCH, Code.UNKNOWN_SERVER_ERROR]
)
def test_a_session_opened_anew_begins_with_all(code: Code):
    """Whatever ended the one before, the broker may have to load them again."""
    harness = backlogged()
    harness.respond(harness.next_fetch(), fetch_response(error=code))
    harness.now = harness.leader.next_deadline(harness.now)

    opening = harness.next_fetch()

    assert 0 == opening.share_session_epoch
    assert MANY == opening.added
    bring(harness, opening, P0)
    assert 3 * PART_SIZE <= len(harness.next_fetch().forgotten)
