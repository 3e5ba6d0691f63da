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

Said = dict[int, int]
OTHER = AcknowledgeError(Code.UNKNOWN_SERVER_ERROR, "UNKNOWN_SERVER_ERROR", "")
SPLIT = Code.INVALID_RECORD_STATE


class Batcher:
    """Acknowledgements, with what they said to others and the requests they fill."""

    def __init__(self) -> None:
        self.wake_count = 0
        self.wakes = 0
        self.result_log = ResultLog(self._woken, lambda: 0.0)
        self.machine = AckBatcher(self._wake, self.result_log)
        self.term = LockScope()

    def _wake(self) -> None:
        self.wake_count += 1

    def _woken(self) -> None:
        self.wakes += 1

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
            lock_scope=self.term,
            owner=self.machine,
        )
        self.machine.add_lease(lease)
        lease.set_offsets(offsets, gaps=gaps)
        return lease

    def take(self, now: float = 0.0) -> dict[SharePartition, Said]:
        return {
            p: acks_by_offset(ranges)
            for p, ranges in self.machine.take_ranges(now).items()
        }

    def answer(
        self,
        *partitions: PartitionResponse,
        error: AcknowledgeError | None = None,
        renewed_until: float = 0.0,
        now: float = 0.0,
    ) -> None:
        self.machine.on_response(
            partitions, error=error, renewed_until=renewed_until, now=now
        )

    def exchange(self, code: int = 0, now: float = 0.0) -> dict[SharePartition, Said]:
        """Send what is to be sent now; each partition of it is answered by `code`."""
        said = self.take(now)
        self.answer(
            *(partition_response(p, acknowledge_error=code) for p in said), now=now
        )
        return said

    def freeze(self) -> CommitWaiter:
        waiter = CommitWaiter()
        self.machine.collect(waiter)
        return waiter

    @property
    def results(self) -> list[tuple[int, int, AcknowledgeType, str | None]]:
        """The results: offsets, type, and the error's name."""
        return [
            (r.first_offset, r.last_offset, r.type, r.error.name if r.error else None)
            for r in join_results(self.result_log.results)
        ]


def accepted(*offsets: int) -> Said:
    return dict.fromkeys(offsets, ACCEPT)


# The contents of a request.


def test_nothing_said_is_nothing_sent():
    batcher = Batcher()
    batcher.lease(*range(10))

    assert {} == batcher.take()
    assert not batcher.machine.has_pending


def test_a_mark_rings_and_is_pending():
    batcher = Batcher()

    batcher.lease(*range(10)).acknowledge(4, ACCEPT)

    assert 1 == batcher.wake_count
    assert batcher.machine.has_pending


def test_marks_of_many_leases_and_partitions_travel_in_one_request():
    batcher = Batcher()
    batcher.lease(0, 1, 2).acknowledge_open(0, 3, ACCEPT)
    batcher.lease(7, 8, 9).acknowledge(8, REJECT)
    batcher.lease(0, 1, at=P1).acknowledge(1, RELEASE)

    expected = {P0: {**accepted(0, 1, 2), 8: REJECT}, P1: {1: RELEASE}}
    assert expected == batcher.take()
    assert not batcher.machine.has_pending


def test_leases_that_came_out_of_order_are_said_in_order():
    batcher = Batcher()
    for first in (20, 0, 10):
        batcher.lease(*range(first, first + 3)).acknowledge_open(0, 3, ACCEPT)

    ranges = batcher.machine.take_ranges(now=0.0)[P0]

    assert [0, 10, 20] == [r.first_offset for r in ranges]


def test_gaps_are_sent_though_the_application_said_nothing():
    batcher = Batcher()
    batcher.lease(0, 4, gaps=((1, 3),))

    assert {P0: {1: GAP, 2: GAP, 3: GAP}} == batcher.exchange()
    assert [] == batcher.results


def test_what_is_said_while_a_request_is_under_way_goes_with_the_next_one():
    batcher = Batcher()
    lease = batcher.lease(*range(10))
    lease.acknowledge(0, ACCEPT)
    batcher.take()

    lease.acknowledge(1, ACCEPT)
    lease.acknowledge(2, ACCEPT)
    batcher.answer(partition_response(P0))

    assert {P0: accepted(1, 2)} == batcher.take()


# Batches that share a request.


def test_what_is_near_its_locks_end_goes_first_and_apart():
    batcher = Batcher()
    batcher.lease(5, deadline=60.0).acknowledge(5, ACCEPT)
    batcher.lease(0, deadline=30.0).acknowledge(0, ACCEPT)

    first = batcher.exchange(now=29.5)
    second = batcher.exchange(now=29.6)

    assert ({P0: accepted(0)}, {P0: accepted(5)}) == (first, second)


def test_what_is_past_its_lock_goes_last_and_apart():
    batcher = Batcher()
    batcher.lease(0, deadline=30.0).acknowledge(0, ACCEPT)
    batcher.lease(5, deadline=60.0).acknowledge(5, ACCEPT)

    first = batcher.exchange(now=31.0)
    second = batcher.exchange(now=31.1)

    assert ({P0: accepted(5)}, {P0: accepted(0)}) == (first, second)


def test_partitions_do_not_wait_for_each_others_urgent_ones():
    batcher = Batcher()
    batcher.lease(0, deadline=30.0).acknowledge(0, ACCEPT)
    batcher.lease(5, at=P1, deadline=60.0).acknowledge(5, ACCEPT)

    assert {P0: accepted(0), P1: accepted(5)} == batcher.take(now=31.0)


def test_what_is_past_its_lock_gets_its_turn_though_fresh_ones_keep_coming():
    batcher = Batcher()
    batcher.lease(0, deadline=30.0).acknowledge(0, ACCEPT)
    waiter = batcher.freeze()

    requests = 0
    for offset in range(1, 20):
        batcher.lease(offset, deadline=60.0).acknowledge(offset, ACCEPT)
        batcher.exchange(now=31.0)
        requests += 1
        if waiter.is_done:
            break

    assert MAX_PASSED_OVER + 1 == requests


@pytest.mark.parametrize("deadlines", [(30.0, 30.0), (30.0, 20.0)])
def test_an_offset_acquired_anew_never_meets_its_former_self_in_a_request(
    deadlines: tuple[float, float],
):
    batcher = Batcher()
    for deadline in deadlines:
        batcher.lease(0, 1, 2, deadline=deadline).acknowledge(1, ACCEPT)

    requests = [batcher.exchange(now=40.0), batcher.exchange(now=40.0)]

    assert [{P0: accepted(1)}] * 2 == requests


def test_commits_in_a_hurry_do_not_keep_one_leases_records_apart():
    batcher = Batcher()
    lease = batcher.lease(*range(10))
    for offset in (0, 5, 3, 9, 4):
        lease.acknowledge(offset, ACCEPT)
        batcher.freeze()

    assert {P0: accepted(0, 3, 4, 5, 9)} == batcher.take()


# Answers.


def test_an_applied_acknowledgement_succeeds_and_its_lease_is_let_go():
    batcher = Batcher()
    batcher.lease(0, 1, 2).acknowledge_open(0, 3, ACCEPT)

    batcher.exchange()

    assert [(0, 2, ACCEPT, None)] == batcher.results
    assert () == batcher.machine.leases


def test_applied_records_without_listener_have_no_results():
    batcher = Batcher()
    batcher.result_log.has_listener = False
    batcher.lease(0, 4, gaps=((1, 3),)).acknowledge_open(0, 2, ACCEPT)
    batcher.lease(10, 11, 40, gaps=((12, 39),)).acknowledge_open(0, 3, REJECT)

    batcher.exchange()

    assert [] == batcher.result_log.results
    assert () == batcher.machine.leases


def test_a_failure_is_reported_without_listener():
    batcher = Batcher()
    batcher.result_log.has_listener = False
    batcher.lease(0, 1).acknowledge_open(0, 2, ACCEPT)

    batcher.exchange(code=Code.TOPIC_AUTHORIZATION_FAILED)

    assert [(0, 1, ACCEPT, "TOPIC_AUTHORIZATION_FAILED")] == batcher.results


def test_a_commit_receives_results_without_listener():
    batcher = Batcher()
    batcher.result_log.has_listener = False
    batcher.lease(0, 1).acknowledge_open(0, 2, ACCEPT)

    waiter = batcher.freeze()
    batcher.exchange()

    assert [(0, 1)] == [(r.first_offset, r.last_offset) for r in waiter.results]


def test_a_lease_with_something_left_to_say_is_held():
    batcher = Batcher()
    lease = batcher.lease(0, 1, 2)
    lease.acknowledge(1, ACCEPT)

    batcher.exchange()

    assert (lease,) == batcher.machine.leases
    assert batcher.machine.has_open


@pytest.mark.parametrize("code", error_actions.ACKNOWLEDGE)
def test_each_code_of_an_acknowledgement_has_its_outcome(code: int):
    batcher = Batcher()
    batcher.lease(0).acknowledge(0, ACCEPT)

    batcher.exchange(code)

    match error_actions.ACKNOWLEDGE[code]:
        case ErrorAction.PROCEED:
            assert [(0, 0, ACCEPT, None)] == batcher.results
        case ErrorAction.RETRY:
            assert batcher.machine.needs_backoff
            assert [] == batcher.results
            assert {P0: accepted(0)} == batcher.take()
        case _:
            assert [(0, 0, ACCEPT, Code(code).name)] == batcher.results
            assert {} == batcher.take()


def test_an_unknown_code_is_sent_again():
    batcher = Batcher()
    batcher.lease(0).acknowledge(0, ACCEPT)

    batcher.exchange(9_999)

    assert batcher.machine.needs_backoff
    assert {P0: accepted(0)} == batcher.take()


def test_a_success_ends_the_patience():
    batcher = Batcher()
    batcher.lease(0).acknowledge(0, ACCEPT)
    batcher.exchange(Code.REQUEST_TIMED_OUT)

    batcher.exchange()

    assert not batcher.machine.needs_backoff
    assert [(0, 0, ACCEPT, None)] == batcher.results


def test_nothing_is_retried_past_its_locks_end():
    batcher = Batcher()
    batcher.lease(0, deadline=30.0).acknowledge(0, ACCEPT)

    batcher.exchange(Code.REQUEST_TIMED_OUT, now=29.0)
    batcher.exchange(Code.REQUEST_TIMED_OUT, now=30.0)

    assert [(0, 0, ACCEPT, "REQUEST_TIMED_OUT")] == batcher.results
    assert {} == batcher.take(now=30.0)


def test_an_error_of_one_partition_leaves_the_others_alone():
    batcher = Batcher()
    batcher.lease(0).acknowledge(0, ACCEPT)
    batcher.lease(0, at=P1).acknowledge(0, ACCEPT)
    batcher.take()

    code = Code.NOT_LEADER_OR_FOLLOWER
    batcher.answer(
        partition_response(P0), partition_response(P1, acknowledge_error=code)
    )

    assert {(0, None), (1, code.name)} == {
        (r.partition, r.error and r.error.name) for r in batcher.result_log.results
    }


def test_an_error_of_the_whole_request_is_each_partitions():
    batcher = Batcher()
    batcher.lease(0).acknowledge(0, ACCEPT)
    batcher.lease(0, at=P1).acknowledge(0, ACCEPT)
    batcher.take()

    batcher.answer(error=OTHER)

    assert [OTHER, OTHER] == [r.error for r in batcher.result_log.results]
    assert {} == batcher.take()


def test_a_partition_that_the_answer_leaves_out_has_failed():
    batcher = Batcher()
    batcher.lease(0).acknowledge(0, ACCEPT)
    batcher.take()

    batcher.answer(partition_response(P1))

    assert [(0, 0, ACCEPT, "UNKNOWN_SERVER_ERROR")] == batcher.results
    assert "does not contain the partition" in str(batcher.result_log.results[0].error)


def test_a_partition_that_was_not_asked_about_changes_nothing():
    batcher = Batcher()
    batcher.lease(0).acknowledge(0, ACCEPT)
    batcher.take()

    batcher.answer(
        partition_response(P0), partition_response(P1, acknowledge_error=SPLIT)
    )

    assert [(0, 0, ACCEPT, None)] == batcher.results


def test_the_brokers_words_are_passed_on():
    batcher = Batcher()
    batcher.lease(0).acknowledge(0, ACCEPT)
    batcher.take()

    batcher.answer(
        partition_response(P0, acknowledge_error=SPLIT, acknowledge_message="not yours")
    )

    error = AcknowledgeError(SPLIT, "INVALID_RECORD_STATE", "not yours")
    expected = AcknowledgeResult(TOPIC, 0, 0, 0, ACCEPT, error)
    assert [expected] == batcher.result_log.results


def test_what_was_not_applied_is_sent_again_as_it_was():
    batcher = Batcher()
    batcher.lease(0, 1).acknowledge_open(0, 2, ACCEPT)
    first = batcher.take()

    batcher.machine.resend()

    assert first == batcher.take()
    assert [] == batcher.results


# Refusals, and how they are narrowed down.


def refusing(batcher: Batcher, *bad: int, most: int = 500) -> list[Said]:
    """Exchange until nothing is left; a partition with a bad offset is refused."""
    requests = []
    while said := batcher.take():
        requests.append(said[P0])
        code = SPLIT if said[P0].keys() & set(bad) else 0
        batcher.answer(partition_response(P0, acknowledge_error=code))
        assert len(requests) <= most
    return requests


@pytest.mark.parametrize("bad", [0, 5, 9])
def test_one_bad_offset_is_singled_out_and_the_others_are_applied(bad: int):
    batcher = Batcher()
    batcher.lease(*range(10)).acknowledge_open(0, 10, ACCEPT)

    refusing(batcher, bad)

    failed = [r for r in batcher.results if r[3] is not None]
    assert [(bad, bad, ACCEPT, SPLIT.name)] == failed
    assert 10 == sum(last - first + 1 for first, last, *_ in batcher.results)
    assert () == batcher.machine.leases


def test_two_bad_offsets_are_singled_out_of_a_whole_window():
    batcher = Batcher()
    batcher.lease(*range(2_000)).acknowledge_open(0, 2_000, ACCEPT)

    refusing(batcher, 700, 1_999)

    failed = [r[:2] for r in batcher.results if r[3] is not None]
    assert [(700, 700), (1_999, 1_999)] == failed


def test_a_lease_that_is_bad_throughout_is_given_up_after_a_number_of_requests():
    batcher = Batcher()
    batcher.lease(*range(2_000)).acknowledge_open(0, 2_000, ACCEPT)

    requests = refusing(batcher, *range(2_000))

    assert 2 * MAX_SPLITS + 1 == len(requests)
    assert [(0, 1_999, ACCEPT, SPLIT.name)] == batcher.results


def test_pieces_refused_together_are_sent_one_by_one_then():
    batcher = Batcher()
    for first in (0, 10, 20):
        batcher.lease(first, first + 1).acknowledge_open(0, 2, ACCEPT)

    requests = refusing(batcher, 10)

    assert [
        accepted(0, 1, 10, 11, 20, 21),
        accepted(0, 1),
        accepted(10, 11),
        accepted(20, 21),
        accepted(10),
        accepted(11),
    ] == requests


def test_nothing_fresh_joins_what_was_refused():
    batcher = Batcher()
    batcher.lease(0, 1).acknowledge_open(0, 2, ACCEPT)
    batcher.exchange(SPLIT)
    batcher.lease(5).acknowledge(5, ACCEPT)

    requests = [batcher.exchange()[P0] for _ in range(3)]

    assert [accepted(0), accepted(1), accepted(5)] == sorted(requests, key=min)


def test_what_is_past_its_lock_is_not_narrowed_down():
    batcher = Batcher()
    batcher.lease(*range(10), deadline=30.0).acknowledge_open(0, 10, ACCEPT)

    batcher.exchange(SPLIT, now=31.0)

    assert [(0, 9, ACCEPT, SPLIT.name)] == batcher.results
    assert {} == batcher.take(now=31.0)


# Tickets.


def test_a_ticket_for_nothing_is_done():
    assert Batcher().freeze().is_done


def test_a_ticket_waits_for_what_was_marked_and_what_is_under_way():
    batcher = Batcher()
    lease = batcher.lease(*range(10))
    lease.acknowledge(0, ACCEPT)
    batcher.take()
    lease.acknowledge(1, RELEASE)

    waiter = batcher.freeze()
    lease.acknowledge(2, ACCEPT)
    waiting = [waiter.is_done]
    batcher.answer(partition_response(P0))
    waiting.append(waiter.is_done)
    batcher.exchange()

    assert [False, False] == waiting
    assert waiter.is_done
    assert [(0, ACCEPT), (1, RELEASE)] == [
        (r.first_offset, r.type) for r in waiter.results
    ]


def test_two_tickets_wait_for_one_record():
    batcher = Batcher()
    batcher.lease(0).acknowledge(0, ACCEPT)

    waiters = [batcher.freeze(), batcher.freeze()]
    batcher.exchange()

    assert [(True, 1), (True, 1)] == [(t.is_done, len(t.results)) for t in waiters]


def test_a_ticket_waits_until_the_last_part_of_what_was_refused_is_judged():
    batcher = Batcher()
    batcher.lease(*range(10)).acknowledge_open(0, 10, ACCEPT)
    waiter = batcher.freeze()
    done = []

    while said := batcher.take():
        done.append(waiter.is_done)
        bad = SPLIT if 3 in said[P0] else 0
        batcher.answer(partition_response(P0, acknowledge_error=bad))

    assert not any(done)
    assert waiter.is_done
    assert batcher.results == [
        (r.first_offset, r.last_offset, r.type, r.error and r.error.name)
        for r in join_results(waiter.results)
    ]


def test_a_ticket_waits_through_retries_and_what_is_sent_again():
    batcher = Batcher()
    batcher.lease(0).acknowledge(0, ACCEPT)
    waiter = batcher.freeze()

    batcher.exchange(Code.REQUEST_TIMED_OUT)
    batcher.take()
    batcher.machine.resend()
    waiting = waiter.is_done
    batcher.exchange()

    assert (False, True, 1) == (waiting, waiter.is_done, len(waiter.results))


def test_a_ticket_waits_for_what_was_said_during_a_renewal():
    batcher = Batcher()
    lease = batcher.lease(0, 1)
    lease.acknowledge(0, RENEW)
    batcher.take()
    lease.acknowledge(0, ACCEPT)

    waiter = batcher.freeze()
    batcher.answer(partition_response(P0), renewed_until=60.0)
    waiting = waiter.is_done
    batcher.exchange()

    assert (False, True) == (waiting, waiter.is_done)
    assert [RENEW, ACCEPT] == [r.type for r in waiter.results]


def test_every_ticket_is_done_when_the_session_is_lost():
    batcher = Batcher()
    lease = batcher.lease(*range(10))
    lease.acknowledge(0, RENEW)
    lease.acknowledge(1, ACCEPT)
    batcher.take()
    lease.acknowledge(0, REJECT)
    lease.acknowledge(2, ACCEPT)
    waiter = batcher.freeze()

    lose(batcher)

    assert waiter.is_done
    assert [(0, REJECT), (0, RENEW), (1, ACCEPT), (2, ACCEPT)] == sorted(
        (r.first_offset, r.type) for r in waiter.results if r.error
    )


# Renewals.


def test_a_renewal_is_seen_before_it_is_taken():
    batcher = Batcher()
    batcher.lease(0).acknowledge(0, RENEW)

    batcher.machine.collect()

    assert batcher.machine.has_renewals


def test_a_renewed_lease_stays_held_and_is_acknowledged_in_the_end():
    batcher = Batcher()
    lease = batcher.lease(0)
    lease.acknowledge(0, RENEW)
    batcher.take()

    batcher.answer(partition_response(P0), renewed_until=60.0)
    held = batcher.machine.leases
    lease.acknowledge(0, ACCEPT)
    batcher.exchange(now=31.0)

    assert (lease,) == held
    assert 60.0 == lease.deadline_of(0)
    assert [(0, 0, ACCEPT, None), (0, 0, RENEW, None)] == sorted(batcher.results)


def test_renewed_records_are_not_mixed_with_those_near_their_end():
    batcher = Batcher()
    lease = batcher.lease(0, 1)
    lease.acknowledge(0, RENEW)
    batcher.take()
    batcher.answer(partition_response(P0), renewed_until=60.0)

    lease.acknowledge_open(0, 2, ACCEPT)

    assert {P0: accepted(1)} == batcher.exchange(now=29.5)
    assert {P0: accepted(0)} == batcher.exchange(now=29.5)


def test_closing_renews_no_more_and_says_the_rest():
    batcher = Batcher()
    lease = batcher.lease(0, 1, 2)
    lease.acknowledge(0, RENEW)
    lease.acknowledge(1, ACCEPT)
    waiter = batcher.freeze()

    batcher.machine.fail_renewals()
    said = batcher.exchange()

    assert {P0: accepted(1)} == said
    assert waiter.is_done
    assert [(0, 0, RENEW, "SHARE_SESSION_NOT_FOUND"), (1, 1, ACCEPT, None)] == (
        batcher.results
    )
    assert lease.is_open(0)


@pytest.mark.parametrize("after", [ACCEPT, RENEW])
def test_closing_sends_what_was_said_beside_a_renewal(after: AcknowledgeType):
    batcher = Batcher()
    lease = batcher.lease(0)
    lease.acknowledge(0, RENEW)
    batcher.machine.collect()
    lease.acknowledge(0, REJECT)
    lease.acknowledge(0, after)

    batcher.machine.fail_renewals()

    assert ({P0: {0: after}} if after == ACCEPT else {}) == batcher.take()


# Losing the session.


def lose(batcher: Batcher) -> None:
    batcher.term.ended, batcher.term.reason = True, "the connection was lost"
    batcher.machine.on_session_lost(batcher.term)


def test_whatever_was_said_and_not_confirmed_fails_with_the_session():
    batcher = Batcher()
    lease = batcher.lease(*range(10))
    lease.acknowledge(0, ACCEPT)
    batcher.take()
    lease.acknowledge(1, RELEASE)
    batcher.machine.collect()
    lease.acknowledge(2, REJECT)

    lose(batcher)

    name = "SHARE_SESSION_NOT_FOUND"
    expected = [(0, 0, ACCEPT, name), (1, 1, RELEASE, name), (2, 2, REJECT, name)]
    assert expected == batcher.results
    assert "the connection was lost" in str(batcher.result_log.results[0].error)
    assert () == batcher.machine.leases
    assert not batcher.machine.has_pending


def test_what_is_accepted_implicitly_after_the_session_fails_and_wakes_the_shell():
    batcher = Batcher()
    lease = batcher.lease(*range(10))
    lose(batcher)

    lease.acknowledge_implicitly(3, 4, ACCEPT)
    lease.acknowledge_implicitly(0, 10, RELEASE)

    name = "SHARE_SESSION_NOT_FOUND"
    assert (3, 3, ACCEPT, name) in batcher.results
    assert [(0, 2), (3, 3), (4, 9)] == [r[:2] for r in batcher.results]
    assert 2 == batcher.wakes
    assert not batcher.machine.has_pending


def test_a_verb_that_waited_for_a_renewal_fails_with_the_session():
    batcher = Batcher()
    lease = batcher.lease(0)
    lease.acknowledge(0, RENEW)
    batcher.take()
    lease.acknowledge(0, ACCEPT)

    lose(batcher)

    assert {RENEW, ACCEPT} == {r.type for r in batcher.result_log.results if r.error}
    assert 2 == len(batcher.results)


# Locks that ended.


def test_leases_whose_locks_ended_are_let_go():
    batcher = Batcher()
    lease = batcher.lease(0, deadline=30.0)
    batcher.lease(1, deadline=31.0)

    assert [lease] == batcher.machine.forget_expired(now=30.0)
    assert 1 == len(batcher.machine.leases)


def test_a_lease_is_kept_as_long_as_its_last_renewal():
    batcher = Batcher()
    lease = batcher.lease(0, 1, deadline=30.0)
    lease.acknowledge(1, RENEW)
    batcher.take()
    batcher.answer(partition_response(P0), renewed_until=60.0)

    assert [] == batcher.machine.forget_expired(now=59.0)
    assert [lease] == batcher.machine.forget_expired(now=60.0)


def test_a_late_verb_is_sent_all_the_same_and_alone():
    batcher = Batcher()
    late = batcher.lease(0, deadline=30.0)
    batcher.machine.forget_expired(now=31.0)

    late.acknowledge(0, ACCEPT)
    batcher.lease(5, deadline=60.0).acknowledge(5, ACCEPT)

    requests = [batcher.exchange(now=31.0), batcher.exchange(now=31.0)]
    assert [{P0: accepted(5)}, {P0: accepted(0)}] == requests
    assert [(0, 0, ACCEPT, None), (5, 5, ACCEPT, None)] == batcher.results


@pytest.mark.parametrize("stage", ["marked", "frozen", "under way", "renewing"])
def test_a_late_verb_fails_with_the_session_too(stage: str):
    batcher = Batcher()
    late = batcher.lease(0, deadline=30.0)
    batcher.machine.forget_expired(now=31.0)
    if stage == "renewing":
        late.acknowledge(0, RENEW)
        batcher.take(now=31.0)
    late.acknowledge(0, ACCEPT)
    if stage == "frozen":
        batcher.machine.collect()
    if stage == "under way":
        batcher.take(now=31.0)

    lose(batcher)

    assert 1 == [r[2] for r in batcher.results if r[3]].count(ACCEPT)


def test_a_verb_after_lock_and_session_ended_raises():
    batcher = Batcher()
    late = batcher.lease(0, deadline=30.0)
    batcher.machine.forget_expired(now=31.0)
    lose(batcher)

    with pytest.raises(LockLostError, match="connection"):
        late.acknowledge(0, ACCEPT)

    assert [] == batcher.results


@pytest.mark.parametrize("state", ["unsent", "sent", "during a renewal"])
def test_an_accept_before_the_session_was_lost_is_reported_and_a_second_one_raises(
    state: str,
):
    batcher = Batcher()
    lease = batcher.lease(0, 1)
    if state == "during a renewal":
        lease.acknowledge(0, RENEW)
        batcher.take()
    lease.acknowledge(0, ACCEPT)
    if state == "sent":
        batcher.take()
    lose(batcher)

    with pytest.raises(LockLostError):
        lease.acknowledge(0, ACCEPT)
    with pytest.raises(LockLostError):
        lease.acknowledge_open(0, 2, ACCEPT)

    failed = [result for result in batcher.results if result[2] == ACCEPT]
    assert [(0, 0, ACCEPT, "SHARE_SESSION_NOT_FOUND")] == failed


def test_a_packed_lease_whose_lock_ended_is_let_go_with_its_bytes():
    batcher = Batcher()
    lease = Lease(
        topic=TOPIC,
        share_partition=P0,
        acquired=((0, 9, 1),),
        payload=b"records",
        deadline=30.0,
        lock_scope=batcher.term,
        owner=batcher.machine,
    )
    batcher.machine.add_lease(lease)

    assert [lease] == batcher.machine.forget_expired(now=30.0)
    assert not batcher.machine.has_open


# Closing, and results.


def result(
    first: int, last: int, kind: AcknowledgeType = ACCEPT, partition: int = 0
) -> AcknowledgeResult:
    return AcknowledgeResult(TOPIC, partition, first, last, kind, None)


def test_results_of_one_fate_are_joined_and_sorted():
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


def test_no_results_join_to_none():
    assert [] == join_results([])
