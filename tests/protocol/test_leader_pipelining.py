"""A second fetch, behind the one that is under way."""

from typing import Any

import pytest

from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.linger import ACK_DELAY
from sharecons.protocol.codes import Code
from sharecons.protocol.fetch.events import UnexpectedResponse
from sharecons.protocol.fetch.session_manager import CLOSING
from sharecons.protocol.messages import ShareFetch, SharePartition
from sharecons.record import ACCEPT, RENEW
from tests.protocol.leader_harness import LeaderHarness
from tests.protocol.message_factories import (
    P0,
    TOPIC_ID,
    fetch_response,
    partition_response,
)

SIX = tuple(SharePartition(TOPIC_ID, number) for number in range(6))


def much_comes(
    *,
    wanted: tuple[SharePartition, ...] = SIX,
    seconds: float = 1e-3,
    brings: int = 500,
) -> tuple[LeaderHarness, ShareFetch]:
    """Fetches bring much, one after the other; gives the one that is under way."""
    harness = LeaderHarness(*wanted)
    harness.prefetch.allowance = 500
    for turn in range(4):
        request = harness.next_fetch()
        first = turn * brings
        harness.respond(
            request,
            fetch_response(partition_response(wanted[0], (first, first + brings - 1))),
        )
        for lease in harness.take_leases():
            harness.now += seconds
            harness.prefetch.on_requested(harness.now)
            lease.acknowledge_open(0, lease.count, ACCEPT)
    return harness, harness.next_fetch()


def two_under_way() -> tuple[LeaderHarness, ShareFetch, ShareFetch]:
    """Much comes; gives a fetch and the one that was sent behind it."""
    harness, first = much_comes()
    second = harness.leader.next_pipelined_request(harness.now)
    assert isinstance(second, ShareFetch)
    return harness, first, second


def test_what_two_fetches_bring_counts_from_each_ones_own_time():
    harness, first = much_comes()
    sent = harness.now
    harness.now += 0.001
    second = harness.leader.next_pipelined_request(harness.now)
    assert isinstance(second, ShareFetch)
    harness.respond(
        first, fetch_response(partition_response(SIX[1], (0, 499)), lock_timeout=30.0)
    )
    harness.respond(
        second,
        fetch_response(partition_response(SIX[1], (500, 999)), lock_timeout=30.0),
    )

    one, two = harness.take_leases()

    assert first.share_session_epoch + 1 == second.share_session_epoch
    assert [sent + 30.0, sent + 30.001] == pytest.approx([one.deadline, two.deadline])


def test_acknowledgements_of_two_fetches_in_flight_get_the_result_of_theirs():
    harness, first, second = two_under_way()
    assert first.acknowledgements, "where more lies ready, with each fetch"
    assert {} == second.acknowledgements
    harness.result_log.results.clear()
    harness.respond(
        first,
        fetch_response(
            partition_response(SIX[0]), partition_response(SIX[1], (0, 499))
        ),
    )
    results_before = list(harness.result_log.results)
    worked(harness)

    third = harness.leader.next_pipelined_request(harness.now)
    assert third is not None
    assert {SIX[1]} == third.acknowledgements.keys()
    harness.respond(second, fetch_response(partition_response(SIX[1], (500, 999))))
    assert results_before == harness.result_log.results, "the third's is to come"
    harness.respond(third, fetch_response(partition_response(SIX[1])))

    assert len(results_before) + 1 == len(harness.result_log.results)
    assert {None} == set(harness.errors)


def test_nothing_is_sent_behind_the_fetch_that_opens_the_session():
    harness, first, second = two_under_way()
    harness.respond(first, fetch_response(error=Code.SHARE_SESSION_LIMIT_REACHED))
    harness.respond(second, fetch_response(partition_response(P0, (30, 30))))
    harness.take_leases()
    harness.now = harness.leader.next_deadline(harness.now)
    opening = harness.next_fetch()

    assert 0 == opening.share_session_epoch
    assert harness.leader.next_pipelined_request(harness.now) is None


def test_records_that_an_outlived_session_brings_are_delivered():
    harness, first, second = two_under_way()

    harness.respond(first, fetch_response(error=Code.UNKNOWN_SERVER_ERROR))
    harness.respond(second, fetch_response(partition_response(P0, (30, 30))))

    (lease,) = harness.take_leases()
    assert not lease.lock_scope.ended
    assert [] == harness.take_events(UnexpectedResponse)
    harness.now = harness.leader.next_deadline(harness.now)
    assert 0 == harness.next_fetch().share_session_epoch


def test_a_stranger_in_what_an_outlived_session_brings_is_left_alone():
    harness, first, second = two_under_way()

    harness.respond(first, fetch_response(error=Code.UNKNOWN_SERVER_ERROR))
    stranger = SharePartition(TOPIC_ID, 6)
    harness.respond(second, fetch_response(partition_response(stranger, (0, 0))))

    assert [] == harness.take_leases()
    assert 1 == len(harness.take_events(UnexpectedResponse))


def test_two_wrong_epochs_open_anew_once():
    harness, first, second = two_under_way()
    harness.result_log.results.clear()
    harness.respond(first, fetch_response(error=Code.INVALID_SHARE_SESSION_EPOCH))
    harness.respond(second, fetch_response(error=Code.INVALID_SHARE_SESSION_EPOCH))
    harness.now = harness.leader.next_deadline(harness.now)
    opening = harness.next_fetch()
    harness.respond(opening, fetch_response())
    harness.now += ACK_DELAY
    again = harness.next_request()

    assert 0 == opening.share_session_epoch
    assert again is not None
    assert first.acknowledgements == again.acknowledgements
    assert [] == harness.result_log.results


def test_the_pause_that_the_first_asks_for_outlasts_the_second():
    harness, first, second = two_under_way()
    harness.respond(
        first, fetch_response(partition_response(P0, (30, 30)), throttle=5.0)
    )
    harness.respond(second, fetch_response(partition_response(P0, (31, 31))))
    harness.take_leases()

    assert harness.next_request() is None
    assert harness.now + 5.0 == harness.leader.next_deadline(harness.now)


def test_a_lost_connection_fails_both_fetches():
    harness, first, _ = two_under_way()
    harness.result_log.results.clear()

    harness.fail(first)

    assert {"SHARE_SESSION_NOT_FOUND"} == set(harness.errors)
    harness.now = harness.leader.next_deadline(harness.now)
    assert 0 == harness.next_fetch().share_session_epoch


def test_closing_waits_for_both_fetches():
    harness, first, second = two_under_way()
    harness.leader.close()
    harness.respond(first, fetch_response(partition_response(P0, (30, 30))))
    still = harness.leader.next_request(harness.now)
    harness.respond(second, fetch_response())

    closing = harness.next_acknowledge()
    assert still is None
    assert CLOSING == closing.share_session_epoch


def test_while_much_comes_another_fetch_is_sent_behind_the_first():
    harness, _ = much_comes()

    behind = harness.leader.next_pipelined_request(harness.now)

    assert isinstance(behind, ShareFetch)
    assert 0.0 == behind.max_wait
    assert (frozenset(), frozenset()) == (behind.added, behind.forgotten)
    assert {} == behind.acknowledgements, "those under way are not answered yet"
    assert harness.leader.next_pipelined_request(harness.now) is None


def test_acknowledgements_ride_behind_while_none_are_under_way():
    harness, sent = much_comes()
    first = harness.leader.next_pipelined_request(harness.now)
    assert isinstance(first, ShareFetch)
    harness.respond(sent, fetch_response(partition_response(SIX[1], (0, 499))))
    for lease in harness.take_leases():
        lease.acknowledge_open(0, lease.count, ACCEPT)
    harness.now += 1e-3
    harness.prefetch.on_requested(harness.now)

    second = harness.leader.next_pipelined_request(harness.now)

    assert isinstance(second, ShareFetch)
    assert {SIX[1]} == second.acknowledgements.keys()
    assert first.share_session_epoch + 1 == second.share_session_epoch


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param({"wanted": SIX[:1]}, id="windows without room"),
        pytest.param({"seconds": 0.1}, id="an application that takes its time"),
        pytest.param({"brings": 50}, id="nothing more that lies ready"),
        pytest.param(
            {"wanted": tuple(SharePartition(TOPIC_ID, n) for n in range(24))},
            id="partitions that are asked in turn",
        ),
    ],
)
def test_what_else_comes_is_fetched_one_request_at_a_time(kind: dict[str, Any]):
    harness, _ = much_comes(**kind)

    assert harness.leader.next_pipelined_request(harness.now) is None


@pytest.mark.parametrize(
    "what", ["more wanted", "others wanted", "closing", "a renewal", "a full hand"]
)
def test_nothing_is_sent_while_much_comes_that_would_change_something(what: str):
    harness, sent = much_comes()
    if what == "more wanted":
        harness.leader.set_partitions(frozenset(SIX[:4]))
    if what == "others wanted":
        harness.leader.set_partitions(
            frozenset({*SIX[1:], SharePartition(TOPIC_ID, 6)})
        )
    if what == "closing":
        harness.leader.close()
    if what == "a renewal":
        lease = lease_of(harness, sent)
        lease.acknowledge(lease.acquired[0][0], RENEW)
    if what == "a full hand":
        harness.prefetch.on_acquired(500)

    assert harness.leader.next_pipelined_request(harness.now) is None


def lease_of(harness: LeaderHarness, sent: ShareFetch) -> Lease:
    """Return the lease of this response; another fetch is in flight then."""
    harness.respond(sent, fetch_response(partition_response(SIX[1], (0, 499))))
    (lease,) = harness.take_leases()
    harness.now += 1e-3
    harness.prefetch.on_requested(harness.now)
    harness.next_fetch()
    return lease


def test_many_partitions_have_their_turn_though_all_were_asked_twice():
    """After two parts without records all partitions are requested twice."""
    many = tuple(SharePartition(TOPIC_ID, n) for n in range(24))
    harness, request = much_comes(wanted=many)
    known = [len(request.forgotten)]
    for turn, brings in enumerate([0, 500, 0, 500], start=4):
        first = 500 * turn
        came = (
            [partition_response(many[0], (first, first + brings - 1))] if brings else []
        )
        harness.respond(request, fetch_response(*came))
        worked(harness)
        harness.prefetch.on_requested(harness.now + 1e-4)
        request = harness.next_fetch()
        known.append(len(request.forgotten))

    assert [12, 0, 12, 0, 0] == known
    assert frozenset() == request.added, "all are asked, again"
    assert harness.leader.next_pipelined_request(harness.now) is None


def worked(harness: LeaderHarness) -> None:
    for lease in harness.take_leases():
        lease.acknowledge_open(0, lease.count, ACCEPT)
        harness.now += 1e-4
        harness.prefetch.on_requested(harness.now)


def test_in_a_pause_nothing_is_sent_behind_the_second_of_two():
    harness, first, _ = two_under_way()
    harness.respond(
        first, fetch_response(partition_response(SIX[1], (0, 499)), throttle=0.001)
    )
    worked(harness)

    in_pause = harness.leader.next_pipelined_request(harness.now)
    harness.now += 0.001
    harness.prefetch.on_requested(harness.now)

    assert in_pause is None
    assert harness.leader.next_pipelined_request(harness.now) is not None
