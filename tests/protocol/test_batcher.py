"""The acknowledgement batcher: requests and their responses."""

import pytest

from sharecons.protocol import error_actions
from sharecons.protocol.acknowledge.ack_batches import MAX_PASSED_OVER
from sharecons.protocol.acknowledge.result_log import (
    AcknowledgeFailure,
    AcknowledgeResult,
)
from sharecons.protocol.acknowledge.results import join_results
from sharecons.protocol.codes import Code
from sharecons.protocol.error_actions import ErrorAction
from sharecons.record import ACCEPT, REJECT, RELEASE, AcknowledgeType
from tests.protocol.batcher_harness import INVALID_STATE, BatcherHarness, accepted
from tests.protocol.message_factories import P0, P1, TOPIC, partition_response

UNKNOWN_ERROR = AcknowledgeFailure(
    Code.UNKNOWN_SERVER_ERROR, "UNKNOWN_SERVER_ERROR", ""
)


# The contents of a request.


def test_acknowledgements_of_several_leases_and_partitions_share_one_request():
    harness = BatcherHarness()
    harness.add_lease(0, 1, 2).acknowledge_open(0, 3, ACCEPT)
    harness.add_lease(7, 8, 9).acknowledge(8, REJECT)
    harness.add_lease(0, 1, at=P1).acknowledge(1, RELEASE)

    expected = {P0: {**accepted(0, 1, 2), 8: REJECT}, P1: {1: RELEASE}}
    assert expected == harness.take_acks()
    assert not harness.batcher.has_pending


def test_ranges_of_leases_added_out_of_order_are_sorted():
    harness = BatcherHarness()
    for first in (20, 0, 10):
        harness.add_lease(*range(first, first + 3)).acknowledge_open(0, 3, ACCEPT)

    ranges = harness.batcher.take_ranges(now=0.0)[P0]

    assert [0, 10, 20] == [r.first_offset for r in ranges]


# Batches that share a request.


def test_acknowledgement_near_the_end_of_its_lock_is_sent_first_and_separately():
    harness = BatcherHarness()
    harness.add_lease(5, deadline=60.0).acknowledge(5, ACCEPT)
    harness.add_lease(0, deadline=30.0).acknowledge(0, ACCEPT)

    first = harness.exchange(now=29.5)
    second = harness.exchange(now=29.6)

    assert ({P0: accepted(0)}, {P0: accepted(5)}) == (first, second)


def test_acknowledgement_after_the_end_of_its_lock_is_sent_last_and_separately():
    harness = BatcherHarness()
    harness.add_lease(0, deadline=30.0).acknowledge(0, ACCEPT)
    harness.add_lease(5, deadline=60.0).acknowledge(5, ACCEPT)

    first = harness.exchange(now=31.0)
    second = harness.exchange(now=31.1)

    assert ({P0: accepted(5)}, {P0: accepted(0)}) == (first, second)


def test_urgent_acknowledgement_does_not_delay_other_partitions():
    harness = BatcherHarness()
    harness.add_lease(0, deadline=30.0).acknowledge(0, ACCEPT)
    harness.add_lease(5, at=P1, deadline=60.0).acknowledge(5, ACCEPT)

    assert {P0: accepted(0), P1: accepted(5)} == harness.take_acks(now=31.0)


def test_late_acknowledgement_is_passed_over_a_limited_number_of_times():
    harness = BatcherHarness()
    harness.add_lease(0, deadline=30.0).acknowledge(0, ACCEPT)
    waiter = harness.commit()

    requests = 0
    while not waiter.is_done and requests < 20:
        requests += 1
        harness.add_lease(requests, deadline=60.0).acknowledge(requests, ACCEPT)
        harness.exchange(now=31.0)

    assert MAX_PASSED_OVER + 1 == requests


def test_two_acknowledgements_of_an_offset_acquired_twice_are_sent_separately():
    harness = BatcherHarness()
    for _ in range(2):
        harness.add_lease(0, 1, 2, deadline=30.0).acknowledge(1, ACCEPT)

    requests = [harness.exchange(now=40.0), harness.exchange(now=40.0)]

    assert [{P0: accepted(1)}] * 2 == requests


# Responses.


def test_applied_acknowledgements_succeed_and_the_lease_is_dropped():
    harness = BatcherHarness()
    harness.add_lease(0, 1, 2).acknowledge_open(0, 3, ACCEPT)

    harness.exchange()

    assert [(0, 2, ACCEPT, None)] == harness.results
    assert () == harness.batcher.leases


def test_successes_without_a_listener_are_not_logged():
    harness = BatcherHarness()
    harness.result_log.has_listener = False
    harness.add_lease(0, 4, gaps=((1, 3),)).acknowledge_open(0, 2, ACCEPT)
    harness.add_lease(10, 11, 40, gaps=((12, 39),)).acknowledge_open(0, 3, REJECT)

    harness.exchange()

    assert [] == harness.result_log.results
    assert () == harness.batcher.leases


def test_failure_without_a_listener_is_logged():
    harness = BatcherHarness()
    harness.result_log.has_listener = False
    harness.add_lease(0, 1).acknowledge_open(0, 2, ACCEPT)

    harness.exchange(code=Code.TOPIC_AUTHORIZATION_FAILED)

    assert [(0, 1, ACCEPT, "TOPIC_AUTHORIZATION_FAILED")] == harness.results


def test_commit_without_a_listener_receives_results():
    harness = BatcherHarness()
    harness.result_log.has_listener = False
    harness.add_lease(0, 1).acknowledge_open(0, 2, ACCEPT)

    waiter = harness.commit()
    harness.exchange()

    assert [(0, 1)] == [(r.first_offset, r.last_offset) for r in waiter.results]


@pytest.mark.parametrize("code", [*error_actions.ACKNOWLEDGE, 9_999])
def test_each_error_code_has_the_outcome_of_its_action(code: int):
    harness = BatcherHarness()
    harness.add_lease(0).acknowledge(0, ACCEPT)

    harness.exchange(code)

    match error_actions.action_for(error_actions.ACKNOWLEDGE, code):
        case ErrorAction.PROCEED:
            assert [(0, 0, ACCEPT, None)] == harness.results
        case ErrorAction.RETRY:
            assert harness.batcher.needs_backoff
            assert [] == harness.results
            assert {P0: accepted(0)} == harness.take_acks()
        case _:
            assert [(0, 0, ACCEPT, Code(code).name)] == harness.results
            assert {} == harness.take_acks()


def test_success_ends_the_backoff():
    harness = BatcherHarness()
    harness.add_lease(0).acknowledge(0, ACCEPT)
    harness.exchange(Code.REQUEST_TIMED_OUT)

    harness.exchange()

    assert not harness.batcher.needs_backoff
    assert [(0, 0, ACCEPT, None)] == harness.results


def test_retriable_error_after_the_end_of_the_lock_is_final():
    harness = BatcherHarness()
    harness.add_lease(0, deadline=30.0).acknowledge(0, ACCEPT)

    harness.exchange(Code.REQUEST_TIMED_OUT, now=29.0)
    harness.exchange(Code.REQUEST_TIMED_OUT, now=30.0)

    assert [(0, 0, ACCEPT, "REQUEST_TIMED_OUT")] == harness.results
    assert {} == harness.take_acks(now=30.0)


def test_partition_missing_in_the_response_fails():
    harness = BatcherHarness()
    harness.add_lease(0).acknowledge(0, ACCEPT)
    harness.take_acks()

    harness.respond(partition_response(P1))

    assert [(0, 0, ACCEPT, "UNKNOWN_SERVER_ERROR")] == harness.results
    assert "does not contain the partition" in str(harness.result_log.results[0].error)


def test_unrequested_partition_in_the_response_changes_nothing():
    harness = BatcherHarness()
    harness.add_lease(0).acknowledge(0, ACCEPT)
    harness.take_acks()

    harness.respond(
        partition_response(P0), partition_response(P1, acknowledge_error=INVALID_STATE)
    )

    assert [(0, 0, ACCEPT, None)] == harness.results


def test_error_has_the_brokers_message():
    harness = BatcherHarness()
    harness.add_lease(0).acknowledge(0, ACCEPT)
    harness.take_acks()

    harness.respond(
        partition_response(
            P0, acknowledge_error=INVALID_STATE, acknowledge_message="not yours"
        )
    )

    error = AcknowledgeFailure(INVALID_STATE, "INVALID_RECORD_STATE", "not yours")
    expected = AcknowledgeResult(TOPIC, 0, 0, 0, ACCEPT, error)
    assert [expected] == harness.result_log.results


# Joined results.


def result(
    first: int, last: int, kind: AcknowledgeType = ACCEPT, partition: int = 0
) -> AcknowledgeResult:
    return AcknowledgeResult(TOPIC, partition, first, last, kind, None)


def test_adjacent_equal_results_are_joined_and_sorted():
    results = [
        result(5, 6),
        result(0, 2, partition=1),
        result(3, 4),
        result(7, 9, REJECT),
        result(11, 11, REJECT),
    ]

    assert [
        result(3, 6),
        result(7, 9, REJECT),
        result(11, 11, REJECT),
        result(0, 2, partition=1),
    ] == join_results(results)


def test_acknowledgement_notifies_and_is_pending():
    harness = BatcherHarness()

    harness.add_lease(*range(10)).acknowledge(4, ACCEPT)

    assert 1 == harness.pending_notifications
    assert harness.batcher.has_pending
