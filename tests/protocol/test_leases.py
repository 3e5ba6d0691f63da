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


def holding(*offsets: int, owner: RecordingOwner | None = None) -> Lease:
    lease = packed((offsets[0], offsets[-1], 1), owner=owner)
    lease.set_offsets(offsets)
    return lease


def ten(owner: RecordingOwner | None = None) -> Lease:
    return holding(*range(10), owner=owner)


def sparse(owner: RecordingOwner | None = None) -> Lease:
    """Records with holes between them, as compaction leaves them."""
    return holding(0, 1, 4, 5, 9, owner=owner)


def take(lease: Lease) -> list[Run]:
    """Return the runs to send, with any deadline."""
    return sorted(run for _, runs in lease.take_runs() for run in runs)


def settle(lease: Lease, runs: Sequence[Run], *, renewed_until: float = 0.0) -> None:
    lease.on_settled(ranges_of(runs), renewed_until=renewed_until)


def lose(lease: Lease) -> list[Run]:
    lease.lock_scope.ended = True
    return lease.abandon()


# Attributes of a lease.


def test_a_lease_counts_every_offset_that_was_acquired():
    assert 13 == packed((0, 9, 1), (20, 22, 4)).count


def test_a_lease_knows_its_highest_delivery_count():
    assert 4 == packed((0, 9, 1), (20, 22, 4), (30, 30, 2)).highest_delivery_count


def test_a_packed_lease_is_open_and_not_settled():
    lease = packed()

    assert (True, False) == (lease.has_open, lease.is_settled)


def test_unpacking_lets_go_of_the_answers_bytes():
    assert b"" == ten().payload


def test_a_record_locks_end_with_its_lease():
    assert 30.0 == ten().deadline_of(3)


def test_a_fresh_lease_has_nothing_to_send():
    owner = RecordingOwner()

    assert [] == ten(owner).take_runs()
    assert 0 == owner.notifications


# Verbs.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [ten, sparse])
def test_a_marked_record_is_sent_once(
    make: Callable[[RecordingOwner], Lease], kind: AcknowledgeType
):
    owner = RecordingOwner()
    lease = make(owner)

    lease.acknowledge(5, kind)

    assert 1 == owner.notifications
    assert [Run(5, 5, kind)] == take(lease)
    assert [] == take(lease)


def test_marks_in_any_order_are_sent_ascending_as_runs():
    lease = ten()

    for offset in (7, 0, 8, 2, 1):
        lease.acknowledge(offset, ACCEPT)
    lease.acknowledge(3, RELEASE)

    assert [Run(0, 2, ACCEPT), Run(3, 3, RELEASE), Run(7, 8, ACCEPT)] == take(lease)


def test_offsets_without_a_record_are_not_sent_with_their_neighbours():
    lease = sparse()

    lease.acknowledge_open(0, 5, ACCEPT)

    assert [Run(0, 1, ACCEPT), Run(4, 5, ACCEPT), Run(9, 9, ACCEPT)] == take(lease)


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_the_last_mark_before_sending_counts_and_only_it_is_sent(
    before: AcknowledgeType, after: AcknowledgeType
):
    lease = ten()

    lease.acknowledge(4, before)
    lease.acknowledge(4, after)

    assert [Run(4, 4, after)] == take(lease)


@pytest.mark.parametrize("kind", KINDS)
def test_a_batchs_verb_marks_the_records_of_which_nothing_was_said(
    kind: AcknowledgeType,
):
    lease = ten()
    lease.acknowledge(3, REJECT)
    lease.acknowledge(5, RELEASE)

    lease.acknowledge_open(2, 7, kind)

    expected = {2: kind, 3: REJECT, 4: kind, 5: RELEASE, 6: kind}
    assert expected == {
        offset: run_kind
        for first, last, run_kind in take(lease)
        for offset in range(first, last + 1)
    }


def test_acknowledging_an_acknowledged_batch_does_not_notify_the_owner():
    owner = RecordingOwner()
    lease = ten(owner)
    lease.acknowledge_open(0, 10, ACCEPT)

    lease.acknowledge_open(0, 10, RELEASE)

    assert 1 == owner.notifications
    assert [Run(0, 9, ACCEPT)] == take(lease)


@pytest.mark.parametrize("state", ["sent", "settled"])
@pytest.mark.parametrize("kind", TERMINAL)
def test_saying_the_same_again_changes_nothing(kind: AcknowledgeType, state: str):
    lease = ten()
    lease.acknowledge(4, kind)
    runs = take(lease)
    if state == "settled":
        settle(lease, runs)

    lease.acknowledge(4, kind)

    assert [] == take(lease)


@pytest.mark.parametrize("state", ["sent", "settled"])
@pytest.mark.parametrize(
    ("before", "after"), [p for p in itertools.product(TERMINAL, KINDS) if p[0] != p[1]]
)
def test_another_verb_after_sending_is_refused_and_sends_nothing(
    before: AcknowledgeType, after: AcknowledgeType, state: str
):
    lease = ten()
    lease.acknowledge(4, before)
    runs = take(lease)
    if state == "settled":
        settle(lease, runs)

    with pytest.raises(RecordStateError, match=before.name.lower()):
        lease.acknowledge(4, after)

    assert [] == take(lease)


@pytest.mark.parametrize("kind", KINDS)
def test_a_verb_after_the_consumer_closed_says_so(kind: AcknowledgeType):
    owner = RecordingOwner()
    lease = ten(owner)
    owner.result_log.closed = True

    with pytest.raises(ClosedError, match="closed"):
        lease.acknowledge(4, kind)
    with pytest.raises(ClosedError, match="closed"):
        lease.acknowledge_open(0, 10, kind)

    assert [] == take(lease)


def test_a_verb_said_in_turn_after_the_consumer_closed_says_so_too():
    owner = RecordingOwner()
    lease = ten(owner)
    lease.acknowledge(3, ACCEPT)
    lease.acknowledge(4, ACCEPT)
    owner.result_log.closed = True

    with pytest.raises(ClosedError, match="closed"):
        lease.acknowledge(5, ACCEPT)


def test_a_verb_said_in_turn_after_the_locks_were_lost_raises():
    lease = ten()
    lease.acknowledge(3, ACCEPT)
    lease.acknowledge(4, ACCEPT)
    lease.lock_scope.ended = True
    unsent = lease.abandon()

    with pytest.raises(LockLostError):
        lease.acknowledge(5, ACCEPT)

    assert [Run(3, 4, ACCEPT)] == unsent


def test_renewing_at_a_broker_that_cannot_says_so():
    owner = RecordingOwner()
    lease = ten(owner)
    owner.renewable = False

    with pytest.raises(UnsupportedVersionError, match=r"4\.2"):
        lease.acknowledge(4, RENEW)
    with pytest.raises(UnsupportedVersionError, match=r"4\.2"):
        lease.acknowledge_open(0, 10, RENEW)
    lease.acknowledge(4, ACCEPT)

    assert [Run(4, 4, ACCEPT)] == take(lease)


def test_offsets_at_equal_steps_are_records_with_holes_between_them():
    lease = packed()
    lease.set_offsets(range(0, 10, 3))

    lease.acknowledge(6, ACCEPT)
    lease.acknowledge(9, RELEASE)

    assert [Run(6, 6, ACCEPT), Run(9, 9, RELEASE)] == take(lease)


def test_each_acquired_offset_may_have_its_record():
    lease = packed((5, 7, 1))
    lease.set_dense_offsets()

    assert lease.has_open
    lease.acknowledge(6, REJECT)
    lease.acknowledge_open(0, 3, ACCEPT)

    assert [Run(5, 5, ACCEPT), Run(6, 6, REJECT), Run(7, 7, ACCEPT)] == take(lease)
    assert not lease.has_open


def test_leases_of_which_nothing_is_known_share_nothing():
    given, kept = packed(), packed()
    given.release_remaining()
    given.abandon()

    assert kept.has_open
    assert not kept.is_settled
    kept.set_dense_offsets()
    kept.acknowledge_open(0, 10, ACCEPT)
    assert [Run(0, 9, ACCEPT)] == take(kept)


# Gaps, and what cannot be shown.


def test_gaps_and_unfit_offsets_are_sent_without_being_asked_for():
    owner = RecordingOwner()
    lease = packed(owner=owner)

    lease.set_offsets(
        [0, 1, 5],
        gaps=[(2, 4), (9, 9)],
        undeliverable=[(6, 8)],
    )

    assert 1 == owner.notifications
    assert [Run(2, 4, GAP), Run(6, 8, RELEASE), Run(9, 9, GAP)] == take(lease)


def test_gaps_are_sent_in_order_among_what_was_asked_for():
    lease = packed()
    lease.set_offsets([0, 1, 5], gaps=[(2, 4)])

    lease.acknowledge_open(0, 3, ACCEPT)

    assert [Run(0, 1, ACCEPT), Run(2, 4, GAP), Run(5, 5, ACCEPT)] == take(lease)


def test_an_answer_for_gaps_settles_no_record_beside_them():
    lease = packed()
    lease.set_offsets([5], gaps=[(6, 9)])
    gaps = take(lease)
    lease.acknowledge(5, ACCEPT)
    record = take(lease)

    settle(lease, gaps)
    before = lease.is_settled
    settle(lease, record)

    assert (False, True) == (before, lease.is_settled)


def test_a_lease_of_gaps_alone_is_settled_once_they_are_taken():
    lease = packed()
    lease.set_offsets([], gaps=[(0, 9)])

    before = lease.is_settled
    runs = take(lease)
    settle(lease, runs)

    assert (False, True) == (before, lease.is_settled)
    assert not lease.has_open


def test_letting_go_of_a_packed_lease_releases_all_of_it():
    lease = packed((0, 4, 1), (7, 9, 2))

    lease.release_remaining()

    assert [Run(0, 4, RELEASE), Run(7, 9, RELEASE)] == take(lease)
    assert b"" == lease.payload
    assert not lease.has_open


def test_letting_go_releases_what_was_not_handed_out():
    lease = ten()
    lease.cursor = 4

    lease.release_remaining()

    assert [Run(4, 9, RELEASE)] == take(lease)
    assert lease.is_open(3)


# Settling.


@pytest.mark.parametrize("make", [ten, sparse])
def test_a_lease_is_settled_when_each_record_is(make: Callable[[], Lease]):
    lease = make()
    lease.acknowledge_open(0, 3, ACCEPT)
    first = take(lease)
    lease.acknowledge_open(3, 10, REJECT)
    second = take(lease)

    settle(lease, second)
    halfway = lease.is_settled
    settle(lease, first)

    assert (False, True) == (halfway, lease.is_settled)


def test_a_lease_with_an_open_record_is_not_settled():
    lease = ten()
    lease.acknowledge_open(0, 9, ACCEPT)

    settle(lease, take(lease))

    assert not lease.is_settled
    assert lease.has_open


@pytest.mark.parametrize("make", [ten, sparse])
def test_settling_touches_only_the_ranges_spoken_of(make: Callable[[], Lease]):
    lease = make()
    lease.acknowledge(1, ACCEPT)
    lease.acknowledge(4, RELEASE)
    take(lease)

    settle(lease, [Run(1, 1, ACCEPT)])
    settle(lease, [Run(4, 4, RELEASE)])

    assert [False, True, False, True] == [lease.is_open(o) for o in (1, 0, 4, 5)]
    with pytest.raises(RecordStateError):
        lease.acknowledge(4, ACCEPT)


# Renewals.


@pytest.mark.parametrize("make", [ten, sparse])
def test_a_renewed_record_is_open_again_with_a_later_deadline(
    make: Callable[[], Lease],
):
    lease = make()
    lease.acknowledge(4, RENEW)

    settle(lease, take(lease), renewed_until=55.0)

    assert lease.is_open(4)
    assert (55.0, 30.0) == (lease.deadline_of(4), lease.deadline_of(5))
    assert 55.0 == lease.last_deadline()


def test_a_record_may_be_renewed_again_and_settled_in_the_end():
    lease = ten()
    for until in (55.0, 80.0):
        lease.acknowledge(4, RENEW)
        settle(lease, take(lease), renewed_until=until)

    lease.acknowledge(4, ACCEPT)

    assert 80.0 == lease.deadline_of(4)
    assert [(80.0, [Run(4, 4, ACCEPT)])] == lease.take_runs()


def test_a_failed_renewal_leaves_the_record_open_with_the_old_deadline():
    lease = ten()
    lease.acknowledge(4, RENEW)

    settle(lease, take(lease))

    assert lease.is_open(4)
    assert 30.0 == lease.deadline_of(4)


def test_only_the_renewed_among_settled_records_get_a_later_deadline():
    lease = ten()
    lease.acknowledge_open(0, 3, RENEW)
    lease.acknowledge_open(3, 10, ACCEPT)

    settle(lease, take(lease), renewed_until=55.0)

    assert [55.0, 55.0, 55.0, 30.0] == [lease.deadline_of(o) for o in range(4)]


@pytest.mark.parametrize("kind", TERMINAL)
def test_a_verb_during_a_renewal_is_sent_once_the_renewal_is_answered(
    kind: AcknowledgeType,
):
    owner = RecordingOwner()
    lease = ten(owner)
    lease.acknowledge(4, RENEW)
    renewal = take(lease)

    lease.acknowledge(4, kind)
    during = take(lease)
    settle(lease, renewal, renewed_until=55.0)

    assert [] == during
    assert 2 == owner.notifications
    assert [(55.0, [Run(4, 4, kind)])] == lease.take_runs()


@pytest.mark.parametrize(("first", "last"), PAIRS)
def test_of_several_verbs_during_a_renewal_the_last_counts(
    first: AcknowledgeType, last: AcknowledgeType
):
    lease = ten()
    lease.acknowledge(4, RENEW)
    renewal = take(lease)

    lease.acknowledge(4, first)
    lease.acknowledge(4, last)
    settle(lease, renewal)

    renewing_only = (first, last) == (RENEW, RENEW)
    assert ([] if renewing_only else [Run(4, 4, last)]) == take(lease)


@pytest.mark.parametrize("kind", TERMINAL)
@pytest.mark.parametrize("taken", [False, True])
def test_a_batchs_verb_settles_records_that_are_only_being_renewed(
    kind: AcknowledgeType, taken: bool
):
    lease = ten()
    lease.acknowledge_open(0, 10, RENEW)
    renewal = take(lease) if taken else []

    lease.acknowledge_open(0, 10, kind)
    settle(lease, renewal, renewed_until=55.0)

    assert [Run(0, 9, kind)] == take(lease)


def test_a_batchs_verb_replaces_no_settling_verb_said_during_a_renewal():
    lease = ten()
    lease.acknowledge_open(0, 2, RENEW)
    renewal = take(lease)
    lease.acknowledge(0, REJECT)

    lease.acknowledge_open(0, 2, ACCEPT)
    settle(lease, renewal)

    assert [Run(0, 0, REJECT), Run(1, 1, ACCEPT)] == take(lease)


def test_renewing_a_batch_twice_asks_once():
    lease = ten()
    lease.acknowledge_open(0, 10, RENEW)
    renewal = take(lease)

    lease.acknowledge_open(0, 10, RENEW)
    settle(lease, renewal, renewed_until=55.0)

    assert [] == take(lease)


@pytest.mark.parametrize("taken", [False, True])
def test_a_record_that_is_only_being_renewed_counts_as_open(taken: bool):
    lease = ten()
    lease.acknowledge(4, RENEW)
    if taken:
        take(lease)

    assert lease.is_open(4)
    assert not lease.is_settled


@pytest.mark.parametrize("taken", [False, True])
def test_a_record_to_be_settled_after_its_renewal_is_not_open(taken: bool):
    lease = ten()
    lease.acknowledge(4, RENEW)
    if taken:
        take(lease)

    lease.acknowledge(4, ACCEPT)

    assert not lease.is_open(4)


@pytest.mark.parametrize("make", [ten, sparse])
def test_what_is_sent_is_grouped_by_the_locks_deadlines(make: Callable[[], Lease]):
    lease = make()
    lease.acknowledge(4, RENEW)
    settle(lease, take(lease), renewed_until=55.0)

    for offset in (0, 1, 4, 5, 9):
        lease.acknowledge(offset, ACCEPT)

    expected = [
        (30.0, [Run(0, 1, ACCEPT), Run(5, 5, ACCEPT), Run(9, 9, ACCEPT)]),
        (55.0, [Run(4, 4, ACCEPT)]),
    ]
    assert expected == lease.take_runs()


# When the locks are gone.


def test_forsaking_gives_what_was_asked_for_and_not_sent():
    lease = ten()
    lease.acknowledge_open(0, 3, ACCEPT)
    take(lease)
    lease.acknowledge(8, REJECT)
    lease.acknowledge(5, RENEW)

    assert [Run(5, 5, RENEW), Run(8, 8, REJECT)] == lose(lease)
    assert lease.is_settled


def test_an_abandoned_packed_lease_is_settled_and_holds_no_bytes():
    lease = packed()

    assert [] == lose(lease)
    assert lease.is_settled
    assert b"" == lease.payload


@pytest.mark.parametrize("kind", KINDS)
def test_a_verb_after_the_locks_were_lost_raises_every_time(kind: AcknowledgeType):
    owner = RecordingOwner()
    lease = ten(owner)
    lease.lock_scope.reason = "the connection to node 1 was lost"
    lose(lease)

    for _ in range(2):
        with pytest.raises(LockLostError, match=r"lost: the conn.*delivered again"):
            lease.acknowledge(4, kind)
        with pytest.raises(LockLostError, match="delivered again"):
            lease.acknowledge_open(4, 6, kind)

    assert [] == owner.late_acks
    assert [] == take(lease)


@pytest.mark.parametrize("state", ["unsent", "sent"])
@pytest.mark.parametrize("kind", TERMINAL)
def test_a_verb_repeated_after_its_acknowledgement_was_lost_raises(
    kind: AcknowledgeType, state: str
):
    lease = ten()
    lease.acknowledge(4, kind)
    sent = take(lease) if state == "sent" else []
    lease.lock_scope.ended = True
    settle(lease, sent)
    lease.abandon()
    lease.fail_settled(ranges_of(sent))

    with pytest.raises(LockLostError):
        lease.acknowledge(4, kind)


@pytest.mark.parametrize("kind", TERMINAL)
def test_a_record_settled_before_the_locks_were_lost_stays_settled(
    kind: AcknowledgeType,
):
    lease = ten()
    lease.acknowledge(4, kind)
    settle(lease, take(lease))
    lose(lease)

    lease.acknowledge(4, kind)
    lease.acknowledge_open(4, 5, kind)
    for other in set(KINDS) - {kind}:
        with pytest.raises(RecordStateError, match="was settled by"):
            lease.acknowledge(4, other)


def test_what_is_accepted_implicitly_after_the_locks_were_lost_is_reported_once():
    owner = RecordingOwner()
    lease = ten(owner)
    lease.acknowledge(2, ACCEPT)
    take(lease)
    lose(lease)

    lease.acknowledge_implicitly(0, 5, REJECT)
    lease.acknowledge_implicitly(0, 5, REJECT)

    assert [Run(0, 1, REJECT), Run(3, 4, REJECT)] == owner.late_acks


@pytest.mark.parametrize("state", ["unsent", "sent"])
@pytest.mark.parametrize("kind", TERMINAL)
def test_a_renewal_that_was_lost_is_no_settling(kind: AcknowledgeType, state: str):
    owner = RecordingOwner()
    lease = ten(owner)
    lease.acknowledge(4, RENEW)
    renewal = take(lease) if state == "sent" else []
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


def test_a_record_is_held_until_its_deadline_which_stays_what_it_was():
    owner = RecordingOwner()
    lease = ten(owner)

    before = lease.holds(4)
    owner.now = 30.0

    assert before
    assert not lease.holds(4)
    assert 30.0 == lease.deadline_of(4)


def test_a_renewed_record_is_held_until_its_new_deadline():
    owner = RecordingOwner()
    lease = ten(owner)
    lease.acknowledge(4, RENEW)
    while_renewing = lease.holds(4)
    settle(lease, take(lease), renewed_until=55.0)
    owner.now = 40.0

    assert while_renewing
    assert lease.holds(4)
    assert not lease.holds(5)


def test_a_record_is_not_held_once_a_verb_settled_it():
    lease = ten()

    lease.acknowledge(4, ACCEPT)

    assert not lease.holds(4)
    assert lease.holds(5)


@pytest.mark.parametrize("how", ["session", "closed"])
def test_lost_records_are_not_held_and_their_deadline_is_past(how: str):
    owner = RecordingOwner()
    lease = ten(owner)
    if how == "session":
        lose(lease)
    else:
        owner.result_log.closed = True

    assert not lease.holds(4)
    assert -math.inf == lease.deadline_of(4)


def test_a_lease_unpacked_after_its_locks_went_sends_nothing():
    owner = RecordingOwner()
    lease = packed(owner=owner)
    lose(lease)

    lease.set_offsets([0], gaps=[(1, 9)])
    lease.acknowledge_implicitly(0, 1, ACCEPT)

    assert [Run(0, 0, ACCEPT)] == owner.late_acks


def test_letting_go_of_what_is_gone_already_is_reported_as_failed():
    owner = RecordingOwner()
    lease = ten(owner)
    lease.cursor = 8
    lose(lease)

    lease.release_remaining()

    assert [Run(8, 9, RELEASE)] == owner.late_acks


def test_an_ended_lock_alone_forsakes_nothing():
    lease = ten()

    lease.acknowledge(4, ACCEPT)

    assert [(30.0, [Run(4, 4, ACCEPT)])] == lease.take_runs()
