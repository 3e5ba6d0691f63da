"""Releases with a delay: the requests that a leader sends for them, and when."""

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Final

import pytest

from sharecons.errors import (
    ClosedError,
    ConfigurationError,
    LockLostError,
    RecordStateError,
    WrongThreadError,
)
from sharecons.protocol.acknowledge.commit_waiter import CommitWaiter
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.runs import Run
from sharecons.protocol.codes import Code
from sharecons.protocol.share_messages import ShareAcknowledge, ShareFetch
from sharecons.record import ACCEPT, REJECT, RELEASE, RENEW, AcknowledgeType
from tests.protocol.leader_harness import CONNECTION_LOST, LeaderHarness
from tests.protocol.lease_factories import (
    TERMINAL_TYPES,
    RecordingOwner,
    lease_of_ten,
    lose_locks,
    settle,
    sparse_lease,
    take_runs,
)
from tests.protocol.message_factories import (
    P0,
    acknowledge_response,
    acks_by_offset,
    fetch_response,
    partition_response,
)

LOCK: Final = 30.0
INVALID: Final = Code.INVALID_RECORD_STATE
Sent = tuple[float, dict[int, int]]


class Delaying(LeaderHarness):
    """A leader with one lease of ten records, and what it sends for them.

    Attributes:
        code: the error in responses to acknowledgements.
        renews: the broker applies renewals.
    """

    def __init__(self, *, version_2: bool = True) -> None:
        super().__init__()
        self.code = 0
        self.renews = True
        self._fetched = fetch_response(
            partition_response(P0, (0, 9)), lock_timeout=LOCK, renewable=version_2
        )
        self.respond(self.next_fetch(), self._fetched)
        self.prefetch.waiting_readers = 0
        (self.lease,) = self.take_leases()

    def exchange(self, request: ShareAcknowledge | ShareFetch) -> dict[int, int]:
        """Respond to a request, and return its acknowledgements."""
        sent = acks_by_offset(request.acknowledgements.get(P0, ()))
        fails = self.code or (RENEW in sent.values() and not self.renews)
        code = (self.code or INVALID) if fails else 0
        partition = partition_response(P0, acknowledge_error=code)
        if isinstance(request, ShareFetch):
            self.respond(request, fetch_response(partition, lock_timeout=LOCK))
        else:
            self.respond(request, acknowledge_response(partition, lock_timeout=LOCK))
        return sent

    def run(self, until: float) -> Iterator[Sent]:
        """Send what is due until this time; yield times and acknowledgements."""
        while self.now <= until:
            while (request := self.next_request()) is not None:
                assert isinstance(request, ShareAcknowledge | ShareFetch)
                at = self.now
                if sent := self.exchange(request):
                    yield at, sent
            self.now = self.leader.next_deadline(self.now)
        self.now = until

    def next_renewal(self) -> ShareAcknowledge:
        """Let time pass until a renewal is sent, and return its request."""
        while (request := self.next_request()) is None:
            self.now = self.leader.next_deadline(self.now)
        assert isinstance(request, ShareAcknowledge)
        assert request.is_renew_ack
        return request


def kinds(sent: list[Sent]) -> list[tuple[int, set[int]]]:
    """Return the seconds, rounded down, and the types of what was sent."""
    return [(int(at), set(acks.values())) for at, acks in sent]


def release_later(lease: Lease, *offsets: int, after: float) -> None:
    for offset in offsets:
        lease.release_later(offset, after)


# When it is sent.


def test_record_is_released_after_the_delay_within_its_lock() -> None:
    leader = Delaying()
    release_later(leader.lease, 3, after=10.0)

    sent = list(leader.run(60.0))

    ((at, acks),) = sent
    assert {3: RELEASE} == acks
    assert 10.0 <= at <= 10.1


def test_lock_is_renewed_until_the_release_is_due() -> None:
    leader = Delaying()
    release_later(leader.lease, 3, after=100.0)

    sent = list(leader.run(200.0))

    renewals, (at, last) = sent[:-1], sent[-1]
    assert {3: RELEASE} == last
    assert 100.0 <= at <= 100.1
    times = [0.0, *(at for at, acks in renewals if acks == {3: RENEW}), at]
    assert len(times) == len(renewals) + 2
    assert max(b - a for a, b in zip(times, times[1:], strict=False)) < LOCK - 1
    assert len(renewals) <= 8


def test_renewals_of_many_calls_share_requests() -> None:
    leader = Delaying()
    for offset in range(10):
        leader.now = offset * 0.05
        release_later(leader.lease, offset, after=100.0)

    sent = list(leader.run(70.0))

    assert [dict.fromkeys(range(10), RENEW)] * len(sent) == [acks for _, acks in sent]
    assert 2 <= len(sent) <= 5


def test_delay_of_open_records_is_one_release() -> None:
    leader = Delaying()
    leader.lease.acknowledge(2, REJECT)
    leader.lease.release_open_later(0, 5, 7.0)

    sent = list(leader.run(20.0))

    assert [(0, {REJECT}), (7, {RELEASE})] == kinds(sent)
    assert [0, 1, 3, 4] == sorted(sent[1][1])
    assert leader.lease.is_open(5)


def test_delay_of_zero_is_a_release() -> None:
    leader = Delaying()
    release_later(leader.lease, 3, after=0)
    leader.lease.release_open_later(4, 6, 0.0)

    assert [(0, {RELEASE})] == kinds(list(leader.run(1.0)))


def test_record_that_is_renewed_meanwhile_is_released_after_the_response() -> None:
    leader = Delaying()
    leader.lease.acknowledge(3, RENEW)
    request = leader.next_acknowledge()
    release_later(leader.lease, 3, after=5.0)
    leader.exchange(request)

    assert [(5, {RELEASE})] == kinds(list(leader.run(40.0)))


def test_release_that_is_due_during_a_renewal_follows_its_response() -> None:
    leader = Delaying()
    release_later(leader.lease, 3, after=32.0)
    renewal = leader.next_renewal()
    leader.now = 33.0
    leader.batcher.update_delays(leader.now)
    assert {3: RENEW} == leader.exchange(renewal)

    assert [(33, {RELEASE})] == kinds(list(leader.run(80.0)))


def test_fetch_waits_at_the_broker_until_the_next_check_at_most() -> None:
    leader = Delaying()
    leader.lease.acknowledge_open(1, 10, ACCEPT)
    release_later(leader.lease, 0, after=0.2)
    list(leader.run(0.1))

    leader.prefetch.waiting_readers = 1
    request = leader.next_fetch()

    assert 0.05 < request.max_wait <= 0.1


# Other calls.


@pytest.mark.parametrize("kind", TERMINAL_TYPES)
def test_other_acknowledgement_replaces_a_delayed_release(
    kind: AcknowledgeType,
) -> None:
    leader = Delaying()
    release_later(leader.lease, 3, after=10.0)
    list(leader.run(1.0))
    leader.lease.acknowledge(3, kind)

    assert [(1, {kind})] == kinds(list(leader.run(60.0)))


def test_renewal_takes_a_delayed_release_back() -> None:
    leader = Delaying()
    release_later(leader.lease, 3, after=10.0)
    assert not leader.lease.is_open(3)

    leader.lease.acknowledge(3, RENEW)

    assert [(0, {RENEW})] == kinds(list(leader.run(60.0)))
    assert leader.lease.is_open(3)


@pytest.mark.parametrize(("first", "second"), [(10.0, 20.0), (20.0, 10.0)])
def test_later_delay_replaces_the_earlier_one(first: float, second: float) -> None:
    leader = Delaying()
    release_later(leader.lease, 3, after=first)
    release_later(leader.lease, 3, after=second)

    assert [(int(second), {RELEASE})] == kinds(list(leader.run(28.0)))


def test_acknowledging_open_records_leaves_delayed_ones() -> None:
    leader = Delaying()
    release_later(leader.lease, 3, after=10.0)
    leader.lease.acknowledge_open(0, 10, ACCEPT)
    leader.lease.acknowledge_implicitly(0, 10, RELEASE)

    first, second = leader.run(28.0)

    assert [0, 1, 2, 4, 5, 6, 7, 8, 9] == sorted(first[1])
    assert {3: RELEASE} == second[1]


@pytest.mark.parametrize("kind", TERMINAL_TYPES)
def test_delay_after_a_sent_acknowledgement_raises(kind: AcknowledgeType) -> None:
    leader = Delaying()
    leader.lease.acknowledge(3, kind)
    list(leader.run(1.0))

    with pytest.raises(RecordStateError, match=f"settled by {kind.name.lower()}"):
        release_later(leader.lease, 3, after=10.0)
    assert [] == list(leader.run(60.0))


@pytest.mark.parametrize(
    "after", [-1, -0.001, math.nan, math.inf, 3600.1, "5", True, Decimal(5), [5]]
)
def test_invalid_delay_is_an_error_and_changes_nothing(after: object) -> None:
    owner = RecordingOwner()
    lease = lease_of_ten(owner)

    for call in (
        lambda: lease.release_later(3, after),
        lambda: lease.release_open_later(0, 10, after),
    ):
        with pytest.raises(ConfigurationError, match=r"after must be .*seconds"):
            call()

    assert lease.is_open(3)
    assert [] == owner.delays


def test_delay_in_another_thread_raises_and_changes_nothing() -> None:
    owner = RecordingOwner()
    lease = lease_of_ten(owner)
    owner.result_log.thread = 1

    with pytest.raises(WrongThreadError):
        lease.release_later(3, 5.0)
    with pytest.raises(WrongThreadError):
        lease.release_open_later(0, 10, 5.0)

    assert lease.is_open(3)
    assert [] == owner.delays


def test_delay_after_the_consumer_closed_raises() -> None:
    owner = RecordingOwner()
    lease = lease_of_ten(owner)
    owner.result_log.closed = True

    with pytest.raises(ClosedError):
        lease.release_later(3, 5.0)
    with pytest.raises(ClosedError):
        lease.release_open_later(0, 10, 5.0)


# The lease.


def test_delayed_record_is_settled_for_the_application_and_held_at_the_broker() -> None:
    owner = RecordingOwner()
    lease = lease_of_ten(owner)

    lease.release_later(4, 12.5)

    assert (False, False, 10) == (
        lease.is_open(4),
        lease.is_settled,
        lease.held_count,
    )
    assert [] == take_runs(lease)
    assert [([4], 12.5)] == owner.delays


def test_delays_of_sparse_offsets_name_the_offsets() -> None:
    owner = RecordingOwner()
    lease = sparse_lease(owner)

    lease.release_open_later(1, 4, 5.0)

    assert [([1, 4, 5], 5.0)] == owner.delays


def test_lost_session_fails_delayed_releases_once() -> None:
    lease = lease_of_ten()
    lease.release_later(4, 12.5)
    lease.acknowledge_open(5, 6, ACCEPT)

    unsent = lose_locks(lease)

    assert [(4, 4, RELEASE), (5, 5, ACCEPT)] == unsent
    for offset in (4, 5, 6):
        with pytest.raises(LockLostError):
            lease.release_later(offset, 1.0)
    with pytest.raises(LockLostError):
        lease.release_open_later(0, 10, 1.0)
    assert lease.is_settled


# Locks that are not renewed.


def test_record_is_released_before_its_lock_ends_if_the_broker_is_too_old() -> None:
    leader = Delaying(version_2=False)
    release_later(leader.lease, 3, after=100.0)

    ((at, acks),) = leader.run(200.0)

    assert {3: RELEASE} == acks
    assert LOCK - 2.0 < at < LOCK
    assert 1 == leader.result_log.early_releases


def test_delay_within_the_lock_needs_no_renewal_on_an_old_broker() -> None:
    leader = Delaying(version_2=False)
    release_later(leader.lease, 3, after=29.5)

    ((at, acks),) = leader.run(200.0)

    assert {3: RELEASE} == acks
    assert 29.5 <= at < LOCK
    assert 0 == leader.result_log.early_releases


def test_record_is_released_before_its_lock_ends_if_the_group_does_not_renew() -> None:
    leader = Delaying()
    leader.result_log.renews = False
    release_later(leader.lease, 3, after=100.0)

    assert [(29, {RELEASE})] == kinds(list(leader.run(200.0)))


def test_record_is_released_before_its_lock_ends_after_one_failed_renewal() -> None:
    leader = Delaying()
    leader.renews = False
    release_later(leader.lease, 3, after=100.0)

    assert [(15, {RENEW}), (29, {RELEASE})] == kinds(list(leader.run(200.0)))
    assert ["INVALID_RECORD_STATE", None] == leader.errors
    assert 0 == leader.result_log.early_releases


def test_renewed_and_failed_records_of_one_call_are_treated_separately() -> None:
    leader = Delaying()
    leader.lease.release_open_later(0, 2, 50.0)
    list(leader.run(1.0))
    leader.now = 20.0
    leader.batcher.update_delays(leader.now)
    assert [(0, 1, RENEW)] == take_runs(leader.lease)
    settle(leader.lease, [Run(0, 0, RENEW)], renewed_until=50.0)
    settle(leader.lease, [Run(1, 1, RENEW)])

    sent = list(leader.run(100.0))

    assert {1: RELEASE} == sent[0][1]
    assert 29.0 <= sent[0][0] < 30.0
    assert {0: RELEASE} == sent[-1][1]
    assert 50.0 <= sent[-1][0] <= 50.1


def test_record_whose_lock_ended_while_the_loop_was_blocked_is_released_late() -> None:
    leader = Delaying()
    release_later(leader.lease, 3, after=100.0)
    leader.code = INVALID
    leader.now = 45.0

    assert [(45, {RELEASE})] == kinds(list(leader.run(200.0)))
    assert ["INVALID_RECORD_STATE"] == leader.errors


def test_renewal_without_a_response_is_not_repeated() -> None:
    leader = Delaying()
    release_later(leader.lease, 3, after=100.0)
    renewal = leader.next_renewal()
    for _ in range(100):
        leader.now += 0.2
        leader.batcher.update_delays(leader.now)
        assert not leader.batcher.has_pending
    leader.exchange(renewal)

    assert RENEW in next(leader.run(200.0))[1].values()


# Events.


def test_commit_does_not_wait_for_delayed_releases() -> None:
    leader = Delaying()
    release_later(leader.lease, 3, after=10.0)
    leader.lease.acknowledge(4, ACCEPT)
    waiter = CommitWaiter()
    leader.batcher.collect(waiter)
    leader.leader.flush_acks()

    assert [(0, {ACCEPT})] == kinds(list(leader.run(1.0)))

    assert waiter.is_done
    assert [(4, ACCEPT)] == [(r.first_offset, r.type) for r in waiter.results]


def test_closing_releases_delayed_records_immediately() -> None:
    leader = Delaying()
    release_later(leader.lease, 3, 4, after=10.0)
    list(leader.run(1.0))

    leader.leader.close()
    request = leader.next_acknowledge()

    assert -1 == request.share_session_epoch
    assert {3: RELEASE, 4: RELEASE} == leader.exchange(request)
    assert [None] == leader.errors
    assert leader.leader.finished


def test_closing_releases_records_whose_renewal_is_in_flight() -> None:
    leader = Delaying()
    release_later(leader.lease, 3, after=100.0)
    renewal = leader.next_renewal()
    leader.leader.close()
    leader.exchange(renewal)

    assert {3: RELEASE} == leader.exchange(leader.next_acknowledge())
    assert leader.leader.finished


def test_lost_connection_reports_delayed_releases_as_failed_and_sends_nothing() -> None:
    leader = Delaying()
    release_later(leader.lease, 3, after=10.0)
    list(leader.run(1.0))

    leader.leader.connection_lost(CONNECTION_LOST, leader.now)

    (result,) = leader.result_log.results
    assert (3, RELEASE) == (result.first_offset, result.type)
    assert result.error is not None
    assert "NETWORK_EXCEPTION" == result.error.name
    assert math.inf == leader.batcher.next_delay_check
    assert () == leader.batcher.leases


def test_closed_consumer_releases_nothing_late() -> None:
    leader = Delaying()
    release_later(leader.lease, 3, after=10.0)
    leader.result_log.closed = True

    assert [] == list(leader.run(60.0))


def test_close_after_the_acknowledgements_were_abandoned_sends_no_release() -> None:
    leader = Delaying()
    release_later(leader.lease, 3, after=10.0)
    leader.result_log.closed = True
    leader.leader.close()

    request = leader.next_acknowledge()

    assert {} == request.acknowledgements
    assert -1 == request.share_session_epoch


def test_delays_leave_nothing_behind() -> None:
    leader = Delaying()
    leader.lease.release_open_later(0, 10, 10.0)
    release_later(leader.lease, 3, after=20.0)
    leader.lease.acknowledge(4, ACCEPT)

    assert [{ACCEPT}, {RELEASE}, {RELEASE}] == [t for _, t in kinds([*leader.run(60)])]

    assert math.inf == leader.batcher.next_delay_check
    assert () == leader.batcher.leases
