"""Leases whose locks ended or were lost."""

import math

import pytest

from sharecons.errors import LockLostError, RecordStateError
from sharecons.protocol.acknowledge.ranges import ranges_of
from sharecons.protocol.acknowledge.runs import Run
from sharecons.record import ACCEPT, REJECT, RELEASE, RENEW, AcknowledgeType
from tests.protocol.lease_factories import (
    ACKNOWLEDGE_TYPES,
    TERMINAL_TYPES,
    RecordingOwner,
    lease_of_ten,
    lose_locks,
    packed_lease,
    settle,
    take_runs,
)


def test_abandon_returns_unsent_acknowledgements():
    lease = lease_of_ten()
    lease.acknowledge_open(0, 3, ACCEPT)
    take_runs(lease)
    lease.acknowledge(8, REJECT)
    lease.acknowledge(5, RENEW)

    assert [Run(5, 5, RENEW), Run(8, 8, REJECT)] == lose_locks(lease)
    assert lease.is_settled


def test_abandoned_packed_lease_is_settled():
    lease = packed_lease()

    assert [] == lose_locks(lease)
    assert lease.is_settled


def test_lost_runs_are_the_records_that_were_not_settled():
    lease = lease_of_ten()
    lease.acknowledge_open(2, 4, ACCEPT)
    take_runs(lease)
    settle(lease, [Run(2, 3, ACCEPT)])
    lease.acknowledge(8, REJECT)
    lose_locks(lease)

    assert [(0, 1), (4, 9)] == [
        (first, last) for first, last, _ in lease.unsettled_runs()
    ]


def test_lost_runs_of_a_packed_lease_are_all_its_offsets():
    lease = packed_lease()
    lose_locks(lease)

    lost = [(first, last) for first, last, _ in lease.unsettled_runs()]
    assert [(first, last) for first, last, _ in lease.acquired] == lost


@pytest.mark.parametrize("kind", ACKNOWLEDGE_TYPES)
def test_acknowledgement_after_the_locks_were_lost_raises_each_time(
    kind: AcknowledgeType,
):
    owner = RecordingOwner()
    lease = lease_of_ten(owner)
    lease.lock_scope.reason = "the connection to node 1 was lost"
    lose_locks(lease)

    for _ in range(2):
        with pytest.raises(LockLostError, match=r"lost: the conn.*delivered again"):
            lease.acknowledge(4, kind)
        with pytest.raises(LockLostError, match="delivered again"):
            lease.acknowledge_open(4, 6, kind)

    assert [] == owner.late_acks
    assert [] == take_runs(lease)


@pytest.mark.parametrize("state", ["unsent", "sent"])
@pytest.mark.parametrize("kind", TERMINAL_TYPES)
def test_repeated_acknowledgement_raises_after_the_first_was_lost(
    kind: AcknowledgeType, state: str
):
    lease = lease_of_ten()
    lease.acknowledge(4, kind)
    sent = take_runs(lease) if state == "sent" else []
    lease.lock_scope.ended = True
    settle(lease, sent)
    lease.abandon()
    lease.fail_settled(ranges_of(sent))

    with pytest.raises(LockLostError):
        lease.acknowledge(4, kind)


@pytest.mark.parametrize("kind", TERMINAL_TYPES)
def test_record_settled_before_the_locks_were_lost_stays_settled(
    kind: AcknowledgeType,
):
    lease = lease_of_ten()
    lease.acknowledge(4, kind)
    settle(lease, take_runs(lease))
    lose_locks(lease)

    lease.acknowledge(4, kind)
    lease.acknowledge_open(4, 5, kind)
    for other in set(ACKNOWLEDGE_TYPES) - {kind}:
        with pytest.raises(RecordStateError, match="was settled by"):
            lease.acknowledge(4, other)


def test_implicit_acknowledgement_after_the_locks_were_lost_is_reported_once():
    owner = RecordingOwner()
    lease = lease_of_ten(owner)
    lease.acknowledge(2, ACCEPT)
    take_runs(lease)
    lose_locks(lease)

    was_open = [lease.acknowledge_implicitly(0, 5, REJECT) for _ in range(2)]

    assert [Run(0, 1, REJECT), Run(3, 4, REJECT)] == owner.late_acks
    assert [False, False] == was_open


@pytest.mark.parametrize("state", ["unsent", "sent"])
@pytest.mark.parametrize("kind", TERMINAL_TYPES)
def test_record_is_not_settled_by_a_lost_renewal(kind: AcknowledgeType, state: str):
    owner = RecordingOwner()
    lease = lease_of_ten(owner)
    lease.acknowledge(4, RENEW)
    renewal = take_runs(lease) if state == "sent" else []
    lease.lock_scope.ended = True
    settle(lease, renewal)
    lease.abandon()
    lease.fail_settled(ranges_of(renewal))

    with pytest.raises(LockLostError):
        lease.acknowledge(4, kind)
    lease.acknowledge_implicitly(4, 5, kind)

    assert Run(4, 4, kind) == owner.late_acks[-1]


@pytest.mark.parametrize("kind", ACKNOWLEDGE_TYPES)
def test_locks_end_with_the_session_before_the_lease_is_abandoned(
    kind: AcknowledgeType,
):
    owner = RecordingOwner()
    lease = lease_of_ten(owner)
    lease.lock_scope.ended = True

    with pytest.raises(LockLostError):
        lease.acknowledge(4, kind)
    with pytest.raises(LockLostError):
        lease.acknowledge_open(5, 7, kind)
    lease.acknowledge_implicitly(5, 7, kind)

    assert [Run(5, 6, kind)] == owner.late_acks
    assert 0 == owner.notifications


def test_renewed_record_is_held_until_its_new_deadline():
    owner = RecordingOwner()
    lease = lease_of_ten(owner)
    lease.acknowledge(4, RENEW)
    while_renewing = lease.holds(4)
    settle(lease, take_runs(lease), renewed_until=55.0)
    owner.now = 40.0

    assert while_renewing
    assert lease.holds(4)
    assert not lease.holds(5)


@pytest.mark.parametrize("how", ["session", "closed"])
def test_lost_record_is_not_held_and_its_deadline_is_past(how: str):
    owner = RecordingOwner()
    lease = lease_of_ten(owner)
    if how == "session":
        lose_locks(lease)
    else:
        owner.result_log.closed = True

    assert not lease.holds(4)
    assert -math.inf == lease.deadline_of(4)


def test_lease_unpacked_after_its_locks_were_lost_sends_nothing():
    owner = RecordingOwner()
    lease = packed_lease(owner=owner)
    lose_locks(lease)

    lease.set_offsets([0], gaps=[(1, 9)])
    lease.acknowledge_implicitly(0, 1, ACCEPT)

    assert [Run(0, 0, ACCEPT)] == owner.late_acks


def test_releasing_lost_records_is_reported_as_failed():
    owner = RecordingOwner()
    lease = lease_of_ten(owner)
    lease.cursor = 8
    lose_locks(lease)

    lease.release_remaining()

    assert [Run(8, 9, RELEASE)] == owner.late_acks
