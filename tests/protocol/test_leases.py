import itertools
import math
from collections.abc import Callable, Sequence

import pytest

from sharecons.errors import (
    ClosedError,
    LockLostError,
    RecordStateError,
    UnsupportedVersionError,
)
from sharecons.protocol.acknowledge.ack_states import GAP, Run, ranges_of
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.lock_scope import LockScope
from sharecons.protocol.acknowledge.result_log import ResultLog
from sharecons.record import ACCEPT, REJECT, RELEASE, RENEW, AcknowledgeType
from tests.protocol.message_factories import P0, TOPIC

KINDS = (ACCEPT, RELEASE, REJECT, RENEW)
TERMINAL = (ACCEPT, RELEASE, REJECT)
PAIRS = list(itertools.product(KINDS, KINDS))


class RecordingOwner:
    """An owner that records its calls."""

    def __init__(self) -> None:
        self.renewable = True
        self.now = 0.0
        self.result_log = ResultLog(lambda: None, lambda: self.now)
        self.notifications = 0
        self.late_acks: list[Run] = []

    def on_acknowledged(self, lease: Lease) -> None:
        self.notifications += 1

    def reject_late_ack(self, lease: Lease, runs: Sequence[Run]) -> None:
        self.late_acks += runs


def packed(
    *acquired: tuple[int, int, int], owner: RecordingOwner | None = None
) -> Lease:
    return Lease(
        topic=TOPIC,
        share_partition=P0,
        acquired=acquired or ((0, 9, 1),),
        payload=b"records",
        deadline=30.0,
        lock_scope=LockScope(),
        owner=owner or RecordingOwner(),
    )


def unpacked(*offsets: int, owner: RecordingOwner | None = None) -> Lease:
    lease = packed((offsets[0], offsets[-1], 1), owner=owner)
    lease.set_offsets(offsets)
    return lease


def ten(owner: RecordingOwner | None = None) -> Lease:
    return unpacked(*range(10), owner=owner)


def sparse(owner: RecordingOwner | None = None) -> Lease:
    """Return a lease of records with gaps between them, as after compaction."""
    return unpacked(0, 1, 4, 5, 9, owner=owner)


def take_runs(lease: Lease) -> list[Run]:
    """Return the runs to send, with any deadline."""
    return sorted(run for _, runs in lease.take_runs() for run in runs)


def settle(lease: Lease, runs: Sequence[Run], *, renewed_until: float = 0.0) -> None:
    lease.on_settled(ranges_of(runs), renewed_until=renewed_until)


def lose_locks(lease: Lease) -> list[Run]:
    lease.lock_scope.ended = True
    return lease.abandon()


# Attributes of a lease.


def test_count_includes_every_acquired_offset():
    assert 13 == packed((0, 9, 1), (20, 22, 4)).count


def test_highest_delivery_count_is_the_maximum_of_the_acquired_ranges():
    assert 4 == packed((0, 9, 1), (20, 22, 4), (30, 30, 2)).highest_delivery_count


def test_packed_lease_is_open_and_not_settled():
    lease = packed()

    assert (True, False) == (lease.has_open, lease.is_settled)


def test_unpacking_drops_the_payload():
    assert b"" == ten().payload


def test_deadline_of_a_record_is_the_leases():
    assert 30.0 == ten().deadline_of(3)


def test_new_lease_has_nothing_to_send():
    owner = RecordingOwner()

    assert [] == ten(owner).take_runs()
    assert 0 == owner.notifications


# Acknowledgements.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [ten, sparse])
def test_acknowledged_record_is_sent_once(
    make: Callable[[RecordingOwner], Lease], kind: AcknowledgeType
):
    owner = RecordingOwner()
    lease = make(owner)

    lease.acknowledge(5, kind)

    assert 1 == owner.notifications
    assert [Run(5, 5, kind)] == take_runs(lease)
    assert [] == take_runs(lease)


def test_acknowledgements_in_any_order_are_sent_as_ascending_runs():
    lease = ten()

    for offset in (7, 0, 8, 2, 1):
        lease.acknowledge(offset, ACCEPT)
    lease.acknowledge(3, RELEASE)

    assert [Run(0, 2, ACCEPT), Run(3, 3, RELEASE), Run(7, 8, ACCEPT)] == take_runs(
        lease
    )


def test_offsets_without_a_record_are_not_included_in_runs():
    lease = sparse()

    lease.acknowledge_open(0, 5, ACCEPT)

    assert [Run(0, 1, ACCEPT), Run(4, 5, ACCEPT), Run(9, 9, ACCEPT)] == take_runs(lease)


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_last_acknowledgement_before_sending_replaces_the_first(
    before: AcknowledgeType, after: AcknowledgeType
):
    lease = ten()

    lease.acknowledge(4, before)
    lease.acknowledge(4, after)

    assert [Run(4, 4, after)] == take_runs(lease)


@pytest.mark.parametrize("kind", KINDS)
def test_acknowledge_open_affects_only_open_records(
    kind: AcknowledgeType,
):
    lease = ten()
    lease.acknowledge(3, REJECT)
    lease.acknowledge(5, RELEASE)

    lease.acknowledge_open(2, 7, kind)

    expected = {2: kind, 3: REJECT, 4: kind, 5: RELEASE, 6: kind}
    assert expected == {
        offset: run_kind
        for first, last, run_kind in take_runs(lease)
        for offset in range(first, last + 1)
    }


def test_acknowledge_open_without_open_records_does_not_notify():
    owner = RecordingOwner()
    lease = ten(owner)
    lease.acknowledge_open(0, 10, ACCEPT)

    lease.acknowledge_open(0, 10, RELEASE)

    assert 1 == owner.notifications
    assert [Run(0, 9, ACCEPT)] == take_runs(lease)


@pytest.mark.parametrize("state", ["sent", "settled"])
@pytest.mark.parametrize("kind", TERMINAL)
def test_repeated_acknowledgement_after_sending_changes_nothing(
    kind: AcknowledgeType, state: str
):
    lease = ten()
    lease.acknowledge(4, kind)
    runs = take_runs(lease)
    if state == "settled":
        settle(lease, runs)

    lease.acknowledge(4, kind)

    assert [] == take_runs(lease)


@pytest.mark.parametrize("state", ["sent", "settled"])
@pytest.mark.parametrize(
    ("before", "after"), [p for p in itertools.product(TERMINAL, KINDS) if p[0] != p[1]]
)
def test_different_acknowledgement_after_sending_raises_and_sends_nothing(
    before: AcknowledgeType, after: AcknowledgeType, state: str
):
    lease = ten()
    lease.acknowledge(4, before)
    runs = take_runs(lease)
    if state == "settled":
        settle(lease, runs)

    with pytest.raises(RecordStateError, match=before.name.lower()):
        lease.acknowledge(4, after)

    assert [] == take_runs(lease)


@pytest.mark.parametrize("kind", KINDS)
def test_acknowledgement_after_the_consumer_closed_raises(kind: AcknowledgeType):
    owner = RecordingOwner()
    lease = ten(owner)
    owner.result_log.closed = True

    with pytest.raises(ClosedError, match="closed"):
        lease.acknowledge(4, kind)
    with pytest.raises(ClosedError, match="closed"):
        lease.acknowledge_open(0, 10, kind)

    assert [] == take_runs(lease)


def test_consecutive_acknowledgement_after_the_consumer_closed_raises():
    owner = RecordingOwner()
    lease = ten(owner)
    lease.acknowledge(3, ACCEPT)
    lease.acknowledge(4, ACCEPT)
    owner.result_log.closed = True

    with pytest.raises(ClosedError, match="closed"):
        lease.acknowledge(5, ACCEPT)


def test_consecutive_acknowledgement_after_the_locks_were_lost_raises():
    lease = ten()
    lease.acknowledge(3, ACCEPT)
    lease.acknowledge(4, ACCEPT)
    lease.lock_scope.ended = True
    unsent = lease.abandon()

    with pytest.raises(LockLostError):
        lease.acknowledge(5, ACCEPT)

    assert [Run(3, 4, ACCEPT)] == unsent


def test_renewal_with_a_broker_without_renewals_raises():
    owner = RecordingOwner()
    lease = ten(owner)
    owner.renewable = False

    with pytest.raises(UnsupportedVersionError, match=r"4\.2"):
        lease.acknowledge(4, RENEW)
    with pytest.raises(UnsupportedVersionError, match=r"4\.2"):
        lease.acknowledge_open(0, 10, RENEW)
    lease.acknowledge(4, ACCEPT)

    assert [Run(4, 4, ACCEPT)] == take_runs(lease)


def test_offsets_at_equal_steps_are_acknowledged_individually():
    lease = packed()
    lease.set_offsets(range(0, 10, 3))

    lease.acknowledge(6, ACCEPT)
    lease.acknowledge(9, RELEASE)

    assert [Run(6, 6, ACCEPT), Run(9, 9, RELEASE)] == take_runs(lease)


def test_dense_offsets_have_a_record_at_each_acquired_offset():
    lease = packed((5, 7, 1))
    lease.set_dense_offsets()

    assert lease.has_open
    lease.acknowledge(6, REJECT)
    lease.acknowledge_open(0, 3, ACCEPT)

    assert [Run(5, 5, ACCEPT), Run(6, 6, REJECT), Run(7, 7, ACCEPT)] == take_runs(lease)
    assert not lease.has_open


def test_packed_leases_share_no_state():
    abandoned, kept = packed(), packed()
    abandoned.release_remaining()
    abandoned.abandon()

    assert kept.has_open
    assert not kept.is_settled
    kept.set_dense_offsets()
    kept.acknowledge_open(0, 10, ACCEPT)
    assert [Run(0, 9, ACCEPT)] == take_runs(kept)


# Gaps and undeliverable records.


def test_gaps_and_undeliverable_offsets_are_sent_without_an_acknowledgement():
    owner = RecordingOwner()
    lease = packed(owner=owner)

    lease.set_offsets(
        [0, 1, 5],
        gaps=[(2, 4), (9, 9)],
        undeliverable=[(6, 8)],
    )

    assert 1 == owner.notifications
    assert [Run(2, 4, GAP), Run(6, 8, RELEASE), Run(9, 9, GAP)] == take_runs(lease)


def test_gaps_and_acknowledgements_are_sent_in_order():
    lease = packed()
    lease.set_offsets([0, 1, 5], gaps=[(2, 4)])

    lease.acknowledge_open(0, 3, ACCEPT)

    assert [Run(0, 1, ACCEPT), Run(2, 4, GAP), Run(5, 5, ACCEPT)] == take_runs(lease)


def test_settled_gaps_do_not_settle_records():
    lease = packed()
    lease.set_offsets([5], gaps=[(6, 9)])
    gaps = take_runs(lease)
    lease.acknowledge(5, ACCEPT)
    record = take_runs(lease)

    settle(lease, gaps)
    before = lease.is_settled
    settle(lease, record)

    assert (False, True) == (before, lease.is_settled)


def test_lease_of_gaps_is_settled_with_them():
    lease = packed()
    lease.set_offsets([], gaps=[(0, 9)])

    before = lease.is_settled
    runs = take_runs(lease)
    settle(lease, runs)

    assert (False, True) == (before, lease.is_settled)
    assert not lease.has_open


def test_releasing_a_packed_lease_releases_all_offsets():
    lease = packed((0, 4, 1), (7, 9, 2))

    lease.release_remaining()

    assert [Run(0, 4, RELEASE), Run(7, 9, RELEASE)] == take_runs(lease)
    assert b"" == lease.payload
    assert not lease.has_open


def test_releasing_an_unpacked_lease_releases_undelivered_records():
    lease = ten()
    lease.cursor = 4

    lease.release_remaining()

    assert [Run(4, 9, RELEASE)] == take_runs(lease)
    assert lease.is_open(3)


# Settling.


@pytest.mark.parametrize("make", [ten, sparse])
def test_lease_is_settled_when_all_records_are(make: Callable[[], Lease]):
    lease = make()
    lease.acknowledge_open(0, 3, ACCEPT)
    first = take_runs(lease)
    lease.acknowledge_open(3, 10, REJECT)
    second = take_runs(lease)

    settle(lease, second)
    settled_before = lease.is_settled
    settle(lease, first)

    assert (False, True) == (settled_before, lease.is_settled)


def test_lease_with_an_open_record_is_not_settled():
    lease = ten()
    lease.acknowledge_open(0, 9, ACCEPT)

    settle(lease, take_runs(lease))

    assert not lease.is_settled
    assert lease.has_open


@pytest.mark.parametrize("make", [ten, sparse])
def test_settling_affects_only_the_given_ranges(make: Callable[[], Lease]):
    lease = make()
    lease.acknowledge(1, ACCEPT)
    lease.acknowledge(4, RELEASE)
    take_runs(lease)

    settle(lease, [Run(1, 1, ACCEPT)])
    settle(lease, [Run(4, 4, RELEASE)])

    assert [False, True, False, True] == [lease.is_open(o) for o in (1, 0, 4, 5)]
    with pytest.raises(RecordStateError):
        lease.acknowledge(4, ACCEPT)


# Renewals.


@pytest.mark.parametrize("make", [ten, sparse])
def test_renewed_record_is_open_with_a_later_deadline(
    make: Callable[[], Lease],
):
    lease = make()
    lease.acknowledge(4, RENEW)

    settle(lease, take_runs(lease), renewed_until=55.0)

    assert lease.is_open(4)
    assert (55.0, 30.0) == (lease.deadline_of(4), lease.deadline_of(5))
    assert 55.0 == lease.last_deadline()


def test_record_can_be_renewed_again_and_then_accepted():
    lease = ten()
    for until in (55.0, 80.0):
        lease.acknowledge(4, RENEW)
        settle(lease, take_runs(lease), renewed_until=until)

    lease.acknowledge(4, ACCEPT)

    assert 80.0 == lease.deadline_of(4)
    assert [(80.0, [Run(4, 4, ACCEPT)])] == lease.take_runs()


def test_failed_renewal_leaves_the_record_open_with_the_old_deadline():
    lease = ten()
    lease.acknowledge(4, RENEW)

    settle(lease, take_runs(lease))

    assert lease.is_open(4)
    assert 30.0 == lease.deadline_of(4)


def test_only_renewed_records_get_a_later_deadline():
    lease = ten()
    lease.acknowledge_open(0, 3, RENEW)
    lease.acknowledge_open(3, 10, ACCEPT)

    settle(lease, take_runs(lease), renewed_until=55.0)

    assert [55.0, 55.0, 55.0, 30.0] == [lease.deadline_of(o) for o in range(4)]


@pytest.mark.parametrize("kind", TERMINAL)
def test_acknowledgement_during_a_renewal_is_sent_after_its_response(
    kind: AcknowledgeType,
):
    owner = RecordingOwner()
    lease = ten(owner)
    lease.acknowledge(4, RENEW)
    renewal = take_runs(lease)

    lease.acknowledge(4, kind)
    during = take_runs(lease)
    settle(lease, renewal, renewed_until=55.0)

    assert [] == during
    assert 2 == owner.notifications
    assert [(55.0, [Run(4, 4, kind)])] == lease.take_runs()


@pytest.mark.parametrize(("first", "last"), PAIRS)
def test_last_acknowledgement_during_a_renewal_is_sent(
    first: AcknowledgeType, last: AcknowledgeType
):
    lease = ten()
    lease.acknowledge(4, RENEW)
    renewal = take_runs(lease)

    lease.acknowledge(4, first)
    lease.acknowledge(4, last)
    settle(lease, renewal)

    renewing_only = (first, last) == (RENEW, RENEW)
    assert ([] if renewing_only else [Run(4, 4, last)]) == take_runs(lease)


@pytest.mark.parametrize("kind", TERMINAL)
@pytest.mark.parametrize("taken", [False, True])
def test_acknowledge_open_includes_records_that_are_being_renewed(
    kind: AcknowledgeType, taken: bool
):
    lease = ten()
    lease.acknowledge_open(0, 10, RENEW)
    renewal = take_runs(lease) if taken else []

    lease.acknowledge_open(0, 10, kind)
    settle(lease, renewal, renewed_until=55.0)

    assert [Run(0, 9, kind)] == take_runs(lease)


def test_acknowledge_open_keeps_acknowledgements_made_during_a_renewal():
    lease = ten()
    lease.acknowledge_open(0, 2, RENEW)
    renewal = take_runs(lease)
    lease.acknowledge(0, REJECT)

    lease.acknowledge_open(0, 2, ACCEPT)
    settle(lease, renewal)

    assert [Run(0, 0, REJECT), Run(1, 1, ACCEPT)] == take_runs(lease)


def test_renewal_during_a_renewal_is_not_sent():
    lease = ten()
    lease.acknowledge_open(0, 10, RENEW)
    renewal = take_runs(lease)

    lease.acknowledge_open(0, 10, RENEW)
    settle(lease, renewal, renewed_until=55.0)

    assert [] == take_runs(lease)


@pytest.mark.parametrize("taken", [False, True])
def test_record_that_is_being_renewed_is_open(taken: bool):
    lease = ten()
    lease.acknowledge(4, RENEW)
    if taken:
        take_runs(lease)

    assert lease.is_open(4)
    assert not lease.is_settled


@pytest.mark.parametrize("taken", [False, True])
def test_record_acknowledged_during_its_renewal_is_not_open(taken: bool):
    lease = ten()
    lease.acknowledge(4, RENEW)
    if taken:
        take_runs(lease)

    lease.acknowledge(4, ACCEPT)

    assert not lease.is_open(4)


@pytest.mark.parametrize("make", [ten, sparse])
def test_runs_are_grouped_by_the_deadlines_of_the_locks(make: Callable[[], Lease]):
    lease = make()
    lease.acknowledge(4, RENEW)
    settle(lease, take_runs(lease), renewed_until=55.0)

    for offset in (0, 1, 4, 5, 9):
        lease.acknowledge(offset, ACCEPT)

    expected = [
        (30.0, [Run(0, 1, ACCEPT), Run(5, 5, ACCEPT), Run(9, 9, ACCEPT)]),
        (55.0, [Run(4, 4, ACCEPT)]),
    ]
    assert expected == lease.take_runs()


# Lost locks.


def test_abandon_returns_unsent_acknowledgements():
    lease = ten()
    lease.acknowledge_open(0, 3, ACCEPT)
    take_runs(lease)
    lease.acknowledge(8, REJECT)
    lease.acknowledge(5, RENEW)

    assert [Run(5, 5, RENEW), Run(8, 8, REJECT)] == lose_locks(lease)
    assert lease.is_settled


def test_abandoned_packed_lease_is_settled_and_has_no_payload():
    lease = packed()

    assert [] == lose_locks(lease)
    assert lease.is_settled
    assert b"" == lease.payload


@pytest.mark.parametrize("kind", KINDS)
def test_acknowledgement_after_the_locks_were_lost_raises_each_time(
    kind: AcknowledgeType,
):
    owner = RecordingOwner()
    lease = ten(owner)
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
@pytest.mark.parametrize("kind", TERMINAL)
def test_repeated_acknowledgement_raises_after_the_first_was_lost(
    kind: AcknowledgeType, state: str
):
    lease = ten()
    lease.acknowledge(4, kind)
    sent = take_runs(lease) if state == "sent" else []
    lease.lock_scope.ended = True
    settle(lease, sent)
    lease.abandon()
    lease.fail_settled(ranges_of(sent))

    with pytest.raises(LockLostError):
        lease.acknowledge(4, kind)


@pytest.mark.parametrize("kind", TERMINAL)
def test_record_settled_before_the_locks_were_lost_stays_settled(
    kind: AcknowledgeType,
):
    lease = ten()
    lease.acknowledge(4, kind)
    settle(lease, take_runs(lease))
    lose_locks(lease)

    lease.acknowledge(4, kind)
    lease.acknowledge_open(4, 5, kind)
    for other in set(KINDS) - {kind}:
        with pytest.raises(RecordStateError, match="was settled by"):
            lease.acknowledge(4, other)


def test_implicit_acknowledgement_after_the_locks_were_lost_is_reported_once():
    owner = RecordingOwner()
    lease = ten(owner)
    lease.acknowledge(2, ACCEPT)
    take_runs(lease)
    lose_locks(lease)

    lease.acknowledge_implicitly(0, 5, REJECT)
    lease.acknowledge_implicitly(0, 5, REJECT)

    assert [Run(0, 1, REJECT), Run(3, 4, REJECT)] == owner.late_acks


@pytest.mark.parametrize("state", ["unsent", "sent"])
@pytest.mark.parametrize("kind", TERMINAL)
def test_record_is_not_settled_by_a_lost_renewal(kind: AcknowledgeType, state: str):
    owner = RecordingOwner()
    lease = ten(owner)
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


@pytest.mark.parametrize("kind", KINDS)
def test_locks_end_with_the_session_before_the_lease_is_abandoned(
    kind: AcknowledgeType,
):
    owner = RecordingOwner()
    lease = ten(owner)
    lease.lock_scope.ended = True

    with pytest.raises(LockLostError):
        lease.acknowledge(4, kind)
    with pytest.raises(LockLostError):
        lease.acknowledge_open(5, 7, kind)
    lease.acknowledge_implicitly(5, 7, kind)

    assert [Run(5, 6, kind)] == owner.late_acks
    assert 0 == owner.notifications


def test_record_is_held_until_its_deadline():
    owner = RecordingOwner()
    lease = ten(owner)

    before = lease.holds(4)
    owner.now = 30.0

    assert before
    assert not lease.holds(4)
    assert 30.0 == lease.deadline_of(4)


def test_renewed_record_is_held_until_its_new_deadline():
    owner = RecordingOwner()
    lease = ten(owner)
    lease.acknowledge(4, RENEW)
    while_renewing = lease.holds(4)
    settle(lease, take_runs(lease), renewed_until=55.0)
    owner.now = 40.0

    assert while_renewing
    assert lease.holds(4)
    assert not lease.holds(5)


def test_acknowledged_record_is_not_held():
    lease = ten()

    lease.acknowledge(4, ACCEPT)

    assert not lease.holds(4)
    assert lease.holds(5)


@pytest.mark.parametrize("how", ["session", "closed"])
def test_lost_record_is_not_held_and_its_deadline_is_past(how: str):
    owner = RecordingOwner()
    lease = ten(owner)
    if how == "session":
        lose_locks(lease)
    else:
        owner.result_log.closed = True

    assert not lease.holds(4)
    assert -math.inf == lease.deadline_of(4)


def test_lease_unpacked_after_its_locks_were_lost_sends_nothing():
    owner = RecordingOwner()
    lease = packed(owner=owner)
    lose_locks(lease)

    lease.set_offsets([0], gaps=[(1, 9)])
    lease.acknowledge_implicitly(0, 1, ACCEPT)

    assert [Run(0, 0, ACCEPT)] == owner.late_acks


def test_releasing_lost_records_is_reported_as_failed():
    owner = RecordingOwner()
    lease = ten(owner)
    lease.cursor = 8
    lose_locks(lease)

    lease.release_remaining()

    assert [Run(8, 9, RELEASE)] == owner.late_acks


def test_acknowledgement_is_sent_with_its_deadline():
    lease = ten()

    lease.acknowledge(4, ACCEPT)

    assert [(30.0, [Run(4, 4, ACCEPT)])] == lease.take_runs()
