import pytest

from sharecons.errors import LockLostError
from sharecons.protocol import error_actions
from sharecons.protocol.acknowledge.ack_batches import MAX_PASSED_OVER, MAX_SPLITS
from sharecons.protocol.acknowledge.ack_states import GAP
from sharecons.protocol.acknowledge.batcher import AckBatcher
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.lock_scope import LockScope
from sharecons.protocol.acknowledge.result_log import (
    AcknowledgeError,
    AcknowledgeResult,
    ResultLog,
)
from sharecons.protocol.acknowledge.results import CommitWaiter, join_results
from sharecons.protocol.codes import Code
from sharecons.protocol.error_actions import ErrorAction
from sharecons.protocol.messages import PartitionResponse, SharePartition
from sharecons.record import ACCEPT, REJECT, RELEASE, RENEW, AcknowledgeType
from tests.protocol.message_factories import (
    P0,
    P1,
    TOPIC,
    acks_by_offset,
    partition_response,
)

Acks = dict[int, int]
UNKNOWN_ERROR = AcknowledgeError(Code.UNKNOWN_SERVER_ERROR, "UNKNOWN_SERVER_ERROR", "")
INVALID_STATE = Code.INVALID_RECORD_STATE


class Harness:
    """An acknowledgement batcher with its result log, and calls of its leader."""

    def __init__(self) -> None:
        self.pending_notifications = 0
        self.result_notifications = 0
        self.result_log = ResultLog(self._on_result, lambda: 0.0)
        self.batcher = AckBatcher(self._on_pending, self.result_log)
        self.lock_scope = LockScope()

    def _on_pending(self) -> None:
        self.pending_notifications += 1

    def _on_result(self) -> None:
        self.result_notifications += 1

    def lease(
        self,
        *offsets: int,
        at: SharePartition = P0,
        deadline: float = 30.0,
        gaps: tuple[tuple[int, int], ...] = (),
    ) -> Lease:
        lease = Lease(
            topic=TOPIC,
            share_partition=at,
            acquired=((offsets[0], offsets[-1], 1),),
            payload=b"",
            deadline=deadline,
            lock_scope=self.lock_scope,
            owner=self.batcher,
        )
        self.batcher.add_lease(lease)
        lease.set_offsets(offsets, gaps=gaps)
        return lease

    def take_acks(self, now: float = 0.0) -> dict[SharePartition, Acks]:
        return {
            p: acks_by_offset(ranges)
            for p, ranges in self.batcher.take_ranges(now).items()
        }

    def respond(
        self,
        *partitions: PartitionResponse,
        error: AcknowledgeError | None = None,
        renewed_until: float = 0.0,
        now: float = 0.0,
    ) -> None:
        self.batcher.on_response(
            partitions, error=error, renewed_until=renewed_until, now=now
        )

    def exchange(self, code: int = 0, now: float = 0.0) -> dict[SharePartition, Acks]:
        """Send the next request; the response has `code` for each partition."""
        sent = self.take_acks(now)
        self.respond(
            *(partition_response(p, acknowledge_error=code) for p in sent), now=now
        )
        return sent

    def commit(self) -> CommitWaiter:
        waiter = CommitWaiter()
        self.batcher.collect(waiter)
        return waiter

    @property
    def results(self) -> list[tuple[int, int, AcknowledgeType, str | None]]:
        """The results: offsets, type, and the error's name."""
        return [
            (r.first_offset, r.last_offset, r.type, r.error.name if r.error else None)
            for r in join_results(self.result_log.results)
        ]


def accepted(*offsets: int) -> Acks:
    return dict.fromkeys(offsets, ACCEPT)


# The contents of a request.


def test_lease_without_acknowledgements_sends_nothing():
    harness = Harness()
    harness.lease(*range(10))

    assert {} == harness.take_acks()
    assert not harness.batcher.has_pending


def test_acknowledgement_notifies_and_is_pending():
    harness = Harness()

    harness.lease(*range(10)).acknowledge(4, ACCEPT)

    assert 1 == harness.pending_notifications
    assert harness.batcher.has_pending


def test_acknowledgements_of_several_leases_and_partitions_share_one_request():
    harness = Harness()
    harness.lease(0, 1, 2).acknowledge_open(0, 3, ACCEPT)
    harness.lease(7, 8, 9).acknowledge(8, REJECT)
    harness.lease(0, 1, at=P1).acknowledge(1, RELEASE)

    expected = {P0: {**accepted(0, 1, 2), 8: REJECT}, P1: {1: RELEASE}}
    assert expected == harness.take_acks()
    assert not harness.batcher.has_pending


def test_ranges_of_leases_added_out_of_order_are_sorted():
    harness = Harness()
    for first in (20, 0, 10):
        harness.lease(*range(first, first + 3)).acknowledge_open(0, 3, ACCEPT)

    ranges = harness.batcher.take_ranges(now=0.0)[P0]

    assert [0, 10, 20] == [r.first_offset for r in ranges]


def test_gaps_are_sent_without_an_acknowledgement_of_the_application():
    harness = Harness()
    harness.lease(0, 4, gaps=((1, 3),))

    assert {P0: {1: GAP, 2: GAP, 3: GAP}} == harness.exchange()
    assert [] == harness.results


def test_acknowledgements_during_a_request_are_sent_with_the_next():
    harness = Harness()
    lease = harness.lease(*range(10))
    lease.acknowledge(0, ACCEPT)
    harness.take_acks()

    lease.acknowledge(1, ACCEPT)
    lease.acknowledge(2, ACCEPT)
    harness.respond(partition_response(P0))

    assert {P0: accepted(1, 2)} == harness.take_acks()


# Batches that share a request.


def test_acknowledgement_near_the_end_of_its_lock_is_sent_first_and_separately():
    harness = Harness()
    harness.lease(5, deadline=60.0).acknowledge(5, ACCEPT)
    harness.lease(0, deadline=30.0).acknowledge(0, ACCEPT)

    first = harness.exchange(now=29.5)
    second = harness.exchange(now=29.6)

    assert ({P0: accepted(0)}, {P0: accepted(5)}) == (first, second)


def test_acknowledgement_after_the_end_of_its_lock_is_sent_last_and_separately():
    harness = Harness()
    harness.lease(0, deadline=30.0).acknowledge(0, ACCEPT)
    harness.lease(5, deadline=60.0).acknowledge(5, ACCEPT)

    first = harness.exchange(now=31.0)
    second = harness.exchange(now=31.1)

    assert ({P0: accepted(5)}, {P0: accepted(0)}) == (first, second)


def test_urgent_acknowledgement_does_not_delay_other_partitions():
    harness = Harness()
    harness.lease(0, deadline=30.0).acknowledge(0, ACCEPT)
    harness.lease(5, at=P1, deadline=60.0).acknowledge(5, ACCEPT)

    assert {P0: accepted(0), P1: accepted(5)} == harness.take_acks(now=31.0)


def test_late_acknowledgement_is_passed_over_a_limited_number_of_times():
    harness = Harness()
    harness.lease(0, deadline=30.0).acknowledge(0, ACCEPT)
    waiter = harness.commit()

    requests = 0
    while not waiter.is_done and requests < 20:
        requests += 1
        harness.lease(requests, deadline=60.0).acknowledge(requests, ACCEPT)
        harness.exchange(now=31.0)

    assert MAX_PASSED_OVER + 1 == requests


@pytest.mark.parametrize("deadlines", [(30.0, 30.0), (30.0, 20.0)])
def test_two_acknowledgements_of_an_offset_acquired_twice_are_sent_separately(
    deadlines: tuple[float, float],
):
    harness = Harness()
    for deadline in deadlines:
        harness.lease(0, 1, 2, deadline=deadline).acknowledge(1, ACCEPT)

    requests = [harness.exchange(now=40.0), harness.exchange(now=40.0)]

    assert [{P0: accepted(1)}] * 2 == requests


def test_acknowledgements_of_several_commits_share_one_request():
    harness = Harness()
    lease = harness.lease(*range(10))
    for offset in (0, 5, 3, 9, 4):
        lease.acknowledge(offset, ACCEPT)
        harness.commit()

    assert {P0: accepted(0, 3, 4, 5, 9)} == harness.take_acks()


# Responses.


def test_applied_acknowledgements_succeed_and_the_lease_is_dropped():
    harness = Harness()
    harness.lease(0, 1, 2).acknowledge_open(0, 3, ACCEPT)

    harness.exchange()

    assert [(0, 2, ACCEPT, None)] == harness.results
    assert () == harness.batcher.leases


def test_successes_without_a_listener_are_not_logged():
    harness = Harness()
    harness.result_log.has_listener = False
    harness.lease(0, 4, gaps=((1, 3),)).acknowledge_open(0, 2, ACCEPT)
    harness.lease(10, 11, 40, gaps=((12, 39),)).acknowledge_open(0, 3, REJECT)

    harness.exchange()

    assert [] == harness.result_log.results
    assert () == harness.batcher.leases


def test_failure_without_a_listener_is_logged():
    harness = Harness()
    harness.result_log.has_listener = False
    harness.lease(0, 1).acknowledge_open(0, 2, ACCEPT)

    harness.exchange(code=Code.TOPIC_AUTHORIZATION_FAILED)

    assert [(0, 1, ACCEPT, "TOPIC_AUTHORIZATION_FAILED")] == harness.results


def test_commit_without_a_listener_receives_results():
    harness = Harness()
    harness.result_log.has_listener = False
    harness.lease(0, 1).acknowledge_open(0, 2, ACCEPT)

    waiter = harness.commit()
    harness.exchange()

    assert [(0, 1)] == [(r.first_offset, r.last_offset) for r in waiter.results]


def test_lease_with_open_records_is_kept():
    harness = Harness()
    lease = harness.lease(0, 1, 2)
    lease.acknowledge(1, ACCEPT)

    harness.exchange()

    assert (lease,) == harness.batcher.leases
    assert harness.batcher.has_open


@pytest.mark.parametrize("code", error_actions.ACKNOWLEDGE)
def test_each_error_code_has_the_outcome_of_its_action(code: int):
    harness = Harness()
    harness.lease(0).acknowledge(0, ACCEPT)

    harness.exchange(code)

    match error_actions.ACKNOWLEDGE[code]:
        case ErrorAction.PROCEED:
            assert [(0, 0, ACCEPT, None)] == harness.results
        case ErrorAction.RETRY:
            assert harness.batcher.needs_backoff
            assert [] == harness.results
            assert {P0: accepted(0)} == harness.take_acks()
        case _:
            assert [(0, 0, ACCEPT, Code(code).name)] == harness.results
            assert {} == harness.take_acks()


def test_acknowledgement_with_an_unknown_error_code_is_sent_again():
    harness = Harness()
    harness.lease(0).acknowledge(0, ACCEPT)

    harness.exchange(9_999)

    assert harness.batcher.needs_backoff
    assert {P0: accepted(0)} == harness.take_acks()


def test_success_ends_the_backoff():
    harness = Harness()
    harness.lease(0).acknowledge(0, ACCEPT)
    harness.exchange(Code.REQUEST_TIMED_OUT)

    harness.exchange()

    assert not harness.batcher.needs_backoff
    assert [(0, 0, ACCEPT, None)] == harness.results


def test_retriable_error_after_the_end_of_the_lock_is_final():
    harness = Harness()
    harness.lease(0, deadline=30.0).acknowledge(0, ACCEPT)

    harness.exchange(Code.REQUEST_TIMED_OUT, now=29.0)
    harness.exchange(Code.REQUEST_TIMED_OUT, now=30.0)

    assert [(0, 0, ACCEPT, "REQUEST_TIMED_OUT")] == harness.results
    assert {} == harness.take_acks(now=30.0)


def test_error_of_one_partition_does_not_affect_others():
    harness = Harness()
    harness.lease(0).acknowledge(0, ACCEPT)
    harness.lease(0, at=P1).acknowledge(0, ACCEPT)
    harness.take_acks()

    code = Code.NOT_LEADER_OR_FOLLOWER
    harness.respond(
        partition_response(P0), partition_response(P1, acknowledge_error=code)
    )

    assert {(0, None), (1, code.name)} == {
        (r.partition, r.error and r.error.name) for r in harness.result_log.results
    }


def test_error_of_the_whole_request_fails_each_partition():
    harness = Harness()
    harness.lease(0).acknowledge(0, ACCEPT)
    harness.lease(0, at=P1).acknowledge(0, ACCEPT)
    harness.take_acks()

    harness.respond(error=UNKNOWN_ERROR)

    assert [UNKNOWN_ERROR, UNKNOWN_ERROR] == [
        r.error for r in harness.result_log.results
    ]
    assert {} == harness.take_acks()


def test_partition_missing_in_the_response_fails():
    harness = Harness()
    harness.lease(0).acknowledge(0, ACCEPT)
    harness.take_acks()

    harness.respond(partition_response(P1))

    assert [(0, 0, ACCEPT, "UNKNOWN_SERVER_ERROR")] == harness.results
    assert "does not contain the partition" in str(harness.result_log.results[0].error)


def test_unrequested_partition_in_the_response_changes_nothing():
    harness = Harness()
    harness.lease(0).acknowledge(0, ACCEPT)
    harness.take_acks()

    harness.respond(
        partition_response(P0), partition_response(P1, acknowledge_error=INVALID_STATE)
    )

    assert [(0, 0, ACCEPT, None)] == harness.results


def test_error_has_the_brokers_message():
    harness = Harness()
    harness.lease(0).acknowledge(0, ACCEPT)
    harness.take_acks()

    harness.respond(
        partition_response(
            P0, acknowledge_error=INVALID_STATE, acknowledge_message="not yours"
        )
    )

    error = AcknowledgeError(INVALID_STATE, "INVALID_RECORD_STATE", "not yours")
    expected = AcknowledgeResult(TOPIC, 0, 0, 0, ACCEPT, error)
    assert [expected] == harness.result_log.results


def test_resend_repeats_the_last_request():
    harness = Harness()
    harness.lease(0, 1).acknowledge_open(0, 2, ACCEPT)
    first = harness.take_acks()

    harness.batcher.resend()

    assert first == harness.take_acks()
    assert [] == harness.results


# Rejections: the batch is split until the invalid records are found.


def exchange_all(harness: Harness, *bad: int, max_requests: int = 500) -> list[Acks]:
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
    harness = Harness()
    harness.lease(*range(10)).acknowledge_open(0, 10, ACCEPT)

    exchange_all(harness, bad)

    failed = [r for r in harness.results if r[3] is not None]
    assert [(bad, bad, ACCEPT, INVALID_STATE.name)] == failed
    assert 10 == sum(last - first + 1 for first, last, *_ in harness.results)
    assert () == harness.batcher.leases


def test_two_invalid_offsets_of_a_full_window_fail_alone():
    harness = Harness()
    harness.lease(*range(2_000)).acknowledge_open(0, 2_000, ACCEPT)

    exchange_all(harness, 700, 1_999)

    failed = [r[:2] for r in harness.results if r[3] is not None]
    assert [(700, 700), (1_999, 1_999)] == failed


def test_lease_of_invalid_offsets_fails_after_a_limited_number_of_requests():
    harness = Harness()
    harness.lease(*range(2_000)).acknowledge_open(0, 2_000, ACCEPT)

    requests = exchange_all(harness, *range(2_000))

    assert 2 * MAX_SPLITS + 1 == len(requests)
    assert [(0, 1_999, ACCEPT, INVALID_STATE.name)] == harness.results


def test_leases_rejected_together_are_sent_one_by_one():
    harness = Harness()
    for first in (0, 10, 20):
        harness.lease(first, first + 1).acknowledge_open(0, 2, ACCEPT)

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
    harness = Harness()
    harness.lease(0, 1).acknowledge_open(0, 2, ACCEPT)
    harness.exchange(INVALID_STATE)
    harness.lease(5).acknowledge(5, ACCEPT)

    requests = [harness.exchange()[P0] for _ in range(3)]

    assert [accepted(0), accepted(1), accepted(5)] == sorted(requests, key=min)


def test_batch_rejected_after_the_end_of_its_lock_is_not_split():
    harness = Harness()
    harness.lease(*range(10), deadline=30.0).acknowledge_open(0, 10, ACCEPT)

    harness.exchange(INVALID_STATE, now=31.0)

    assert [(0, 9, ACCEPT, INVALID_STATE.name)] == harness.results
    assert {} == harness.take_acks(now=31.0)


# Commits.


def test_commit_without_acknowledgements_is_done_immediately():
    assert Harness().commit().is_done


def test_commit_waits_for_pending_and_sent_acknowledgements():
    harness = Harness()
    lease = harness.lease(*range(10))
    lease.acknowledge(0, ACCEPT)
    harness.take_acks()
    lease.acknowledge(1, RELEASE)

    waiter = harness.commit()
    lease.acknowledge(2, ACCEPT)
    done = [waiter.is_done]
    harness.respond(partition_response(P0))
    done.append(waiter.is_done)
    harness.exchange()

    assert [False, False] == done
    assert waiter.is_done
    assert [(0, ACCEPT), (1, RELEASE)] == [
        (r.first_offset, r.type) for r in waiter.results
    ]


def test_two_commits_wait_for_one_record():
    harness = Harness()
    harness.lease(0).acknowledge(0, ACCEPT)

    waiters = [harness.commit(), harness.commit()]
    harness.exchange()

    assert [(True, 1), (True, 1)] == [
        (each.is_done, len(each.results)) for each in waiters
    ]


def test_commit_of_a_rejected_batch_waits_for_its_last_part():
    harness = Harness()
    harness.lease(*range(10)).acknowledge_open(0, 10, ACCEPT)
    waiter = harness.commit()
    done = []

    while sent := harness.take_acks():
        done.append(waiter.is_done)
        bad = INVALID_STATE if 3 in sent[P0] else 0
        harness.respond(partition_response(P0, acknowledge_error=bad))

    assert not any(done)
    assert waiter.is_done
    assert harness.results == [
        (r.first_offset, r.last_offset, r.type, r.error and r.error.name)
        for r in join_results(waiter.results)
    ]


def test_commit_waits_for_retries_and_resent_requests():
    harness = Harness()
    harness.lease(0).acknowledge(0, ACCEPT)
    waiter = harness.commit()

    harness.exchange(Code.REQUEST_TIMED_OUT)
    harness.take_acks()
    harness.batcher.resend()
    done_before = waiter.is_done
    harness.exchange()

    assert (False, True, 1) == (done_before, waiter.is_done, len(waiter.results))


def test_commit_waits_for_an_acknowledgement_made_during_a_renewal():
    harness = Harness()
    lease = harness.lease(0, 1)
    lease.acknowledge(0, RENEW)
    harness.take_acks()
    lease.acknowledge(0, ACCEPT)

    waiter = harness.commit()
    harness.respond(partition_response(P0), renewed_until=60.0)
    done_before = waiter.is_done
    harness.exchange()

    assert (False, True) == (done_before, waiter.is_done)
    assert [RENEW, ACCEPT] == [r.type for r in waiter.results]


def test_commit_is_done_with_errors_when_the_session_is_lost():
    harness = Harness()
    lease = harness.lease(*range(10))
    lease.acknowledge(0, RENEW)
    lease.acknowledge(1, ACCEPT)
    harness.take_acks()
    lease.acknowledge(0, REJECT)
    lease.acknowledge(2, ACCEPT)
    waiter = harness.commit()

    lose_session(harness)

    assert waiter.is_done
    assert [(0, REJECT), (0, RENEW), (1, ACCEPT), (2, ACCEPT)] == sorted(
        (r.first_offset, r.type) for r in waiter.results if r.error
    )


# Renewals.


def test_collected_renewal_is_reported_before_it_is_sent():
    harness = Harness()
    harness.lease(0).acknowledge(0, RENEW)

    harness.batcher.collect()

    assert harness.batcher.has_renewals


def test_renewed_lease_is_kept_until_it_is_acknowledged():
    harness = Harness()
    lease = harness.lease(0)
    lease.acknowledge(0, RENEW)
    harness.take_acks()

    harness.respond(partition_response(P0), renewed_until=60.0)
    held = harness.batcher.leases
    lease.acknowledge(0, ACCEPT)
    harness.exchange(now=31.0)

    assert (lease,) == held
    assert 60.0 == lease.deadline_of(0)
    assert [(0, 0, ACCEPT, None), (0, 0, RENEW, None)] == sorted(harness.results)


def test_renewed_and_urgent_records_of_a_lease_are_sent_separately():
    harness = Harness()
    lease = harness.lease(0, 1)
    lease.acknowledge(0, RENEW)
    harness.take_acks()
    harness.respond(partition_response(P0), renewed_until=60.0)

    lease.acknowledge_open(0, 2, ACCEPT)

    assert {P0: accepted(1)} == harness.exchange(now=29.5)
    assert {P0: accepted(0)} == harness.exchange(now=29.5)


def test_closing_fails_renewals_and_sends_other_acknowledgements():
    harness = Harness()
    lease = harness.lease(0, 1, 2)
    lease.acknowledge(0, RENEW)
    lease.acknowledge(1, ACCEPT)
    waiter = harness.commit()

    harness.batcher.fail_renewals()
    sent = harness.exchange()

    assert {P0: accepted(1)} == sent
    assert waiter.is_done
    assert [(0, 0, RENEW, "SHARE_SESSION_NOT_FOUND"), (1, 1, ACCEPT, None)] == (
        harness.results
    )
    assert lease.is_open(0)


@pytest.mark.parametrize("after", [ACCEPT, RENEW])
def test_closing_sends_the_last_acknowledgement_made_during_a_renewal(
    after: AcknowledgeType,
):
    harness = Harness()
    lease = harness.lease(0)
    lease.acknowledge(0, RENEW)
    harness.batcher.collect()
    lease.acknowledge(0, REJECT)
    lease.acknowledge(0, after)

    harness.batcher.fail_renewals()

    assert ({P0: {0: after}} if after == ACCEPT else {}) == harness.take_acks()


# Losing the session.


def lose_session(harness: Harness) -> None:
    harness.lock_scope.ended = True
    harness.lock_scope.reason = "the connection was lost"
    harness.batcher.on_session_lost(harness.lock_scope)


def test_unconfirmed_acknowledgements_fail_when_the_session_is_lost():
    harness = Harness()
    lease = harness.lease(*range(10))
    lease.acknowledge(0, ACCEPT)
    harness.take_acks()
    lease.acknowledge(1, RELEASE)
    harness.batcher.collect()
    lease.acknowledge(2, REJECT)

    lose_session(harness)

    name = "SHARE_SESSION_NOT_FOUND"
    expected = [(0, 0, ACCEPT, name), (1, 1, RELEASE, name), (2, 2, REJECT, name)]
    assert expected == harness.results
    assert "the connection was lost" in str(harness.result_log.results[0].error)
    assert () == harness.batcher.leases
    assert not harness.batcher.has_pending


def test_implicit_acknowledgement_after_a_lost_session_fails_with_a_notification():
    harness = Harness()
    lease = harness.lease(*range(10))
    lose_session(harness)

    lease.acknowledge_implicitly(3, 4, ACCEPT)
    lease.acknowledge_implicitly(0, 10, RELEASE)

    name = "SHARE_SESSION_NOT_FOUND"
    assert (3, 3, ACCEPT, name) in harness.results
    assert [(0, 2), (3, 3), (4, 9)] == [r[:2] for r in harness.results]
    assert 2 == harness.result_notifications
    assert not harness.batcher.has_pending


def test_renewal_and_later_acknowledgement_fail_when_the_session_is_lost():
    harness = Harness()
    lease = harness.lease(0)
    lease.acknowledge(0, RENEW)
    harness.take_acks()
    lease.acknowledge(0, ACCEPT)

    lose_session(harness)

    assert {RENEW, ACCEPT} == {r.type for r in harness.result_log.results if r.error}
    assert 2 == len(harness.results)


# Locks that ended.


def test_lease_is_dropped_when_its_lock_ends():
    harness = Harness()
    lease = harness.lease(0, deadline=30.0)
    harness.lease(1, deadline=31.0)

    assert [lease] == harness.batcher.forget_expired(now=30.0)
    assert 1 == len(harness.batcher.leases)


def test_renewed_lease_is_kept_until_its_new_deadline():
    harness = Harness()
    lease = harness.lease(0, 1, deadline=30.0)
    lease.acknowledge(1, RENEW)
    harness.take_acks()
    harness.respond(partition_response(P0), renewed_until=60.0)

    assert [] == harness.batcher.forget_expired(now=59.0)
    assert [lease] == harness.batcher.forget_expired(now=60.0)


def test_late_acknowledgement_of_a_dropped_lease_is_sent_separately():
    harness = Harness()
    late = harness.lease(0, deadline=30.0)
    harness.batcher.forget_expired(now=31.0)

    late.acknowledge(0, ACCEPT)
    harness.lease(5, deadline=60.0).acknowledge(5, ACCEPT)

    requests = [harness.exchange(now=31.0), harness.exchange(now=31.0)]
    assert [{P0: accepted(5)}, {P0: accepted(0)}] == requests
    assert [(0, 0, ACCEPT, None), (5, 5, ACCEPT, None)] == harness.results


@pytest.mark.parametrize("stage", ["acknowledged", "collected", "sent", "renewing"])
def test_late_acknowledgement_fails_once_when_the_session_is_lost(stage: str):
    harness = Harness()
    late = harness.lease(0, deadline=30.0)
    harness.batcher.forget_expired(now=31.0)
    if stage == "renewing":
        late.acknowledge(0, RENEW)
        harness.take_acks(now=31.0)
    late.acknowledge(0, ACCEPT)
    if stage == "collected":
        harness.batcher.collect()
    if stage == "sent":
        harness.take_acks(now=31.0)

    lose_session(harness)

    assert 1 == [r[2] for r in harness.results if r[3]].count(ACCEPT)


def test_acknowledgement_after_lock_and_session_ended_raises():
    harness = Harness()
    late = harness.lease(0, deadline=30.0)
    harness.batcher.forget_expired(now=31.0)
    lose_session(harness)

    with pytest.raises(LockLostError, match="connection"):
        late.acknowledge(0, ACCEPT)

    assert [] == harness.results


@pytest.mark.parametrize("state", ["unsent", "sent", "during a renewal"])
def test_accept_before_the_session_was_lost_fails_once_and_a_second_raises(
    state: str,
):
    harness = Harness()
    lease = harness.lease(0, 1)
    if state == "during a renewal":
        lease.acknowledge(0, RENEW)
        harness.take_acks()
    lease.acknowledge(0, ACCEPT)
    if state == "sent":
        harness.take_acks()
    lose_session(harness)

    with pytest.raises(LockLostError):
        lease.acknowledge(0, ACCEPT)
    with pytest.raises(LockLostError):
        lease.acknowledge_open(0, 2, ACCEPT)

    failed = [result for result in harness.results if result[2] == ACCEPT]
    assert [(0, 0, ACCEPT, "SHARE_SESSION_NOT_FOUND")] == failed


def test_packed_lease_is_dropped_when_its_lock_ends():
    harness = Harness()
    lease = Lease(
        topic=TOPIC,
        share_partition=P0,
        acquired=((0, 9, 1),),
        payload=b"records",
        deadline=30.0,
        lock_scope=harness.lock_scope,
        owner=harness.batcher,
    )
    harness.batcher.add_lease(lease)

    assert [lease] == harness.batcher.forget_expired(now=30.0)
    assert not harness.batcher.has_open


# Closing, and results.


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


def test_joining_no_results_returns_an_empty_list():
    assert [] == join_results([])
