"""Leases: acknowledgements, gaps and settled records."""

import itertools
from collections.abc import Callable

import pytest

from sharecons.errors import (
    ClosedError,
    LockLostError,
    RecordStateError,
    UnsupportedVersionError,
)
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.runs import GAP, Run
from sharecons.record import ACCEPT, REJECT, RELEASE, RENEW, AcknowledgeType
from tests.protocol.lease_factories import (
    ACKNOWLEDGE_TYPES,
    TERMINAL_TYPES,
    TYPE_PAIRS,
    RecordingOwner,
    lease_of_ten,
    packed_lease,
    settle,
    sparse_lease,
    take_runs,
)

# Attributes of a lease.


def test_count_includes_every_acquired_offset():
    assert 13 == packed_lease((0, 9, 1), (20, 22, 4)).count


def test_highest_delivery_count_is_the_maximum_of_the_acquired_ranges():
    assert 4 == packed_lease((0, 9, 1), (20, 22, 4), (30, 30, 2)).highest_delivery_count


# Acknowledgements.


@pytest.mark.parametrize("kind", ACKNOWLEDGE_TYPES)
@pytest.mark.parametrize("make", [lease_of_ten, sparse_lease])
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
    lease = lease_of_ten()

    for offset in (7, 0, 8, 2, 1):
        lease.acknowledge(offset, ACCEPT)
    lease.acknowledge(3, RELEASE)

    assert [Run(0, 2, ACCEPT), Run(3, 3, RELEASE), Run(7, 8, ACCEPT)] == take_runs(
        lease
    )


def test_offsets_without_a_record_are_not_included_in_runs():
    lease = sparse_lease()

    lease.acknowledge_open(0, 5, ACCEPT)

    assert [Run(0, 1, ACCEPT), Run(4, 5, ACCEPT), Run(9, 9, ACCEPT)] == take_runs(lease)


@pytest.mark.parametrize(("before", "after"), TYPE_PAIRS)
def test_last_acknowledgement_before_sending_replaces_the_first(
    before: AcknowledgeType, after: AcknowledgeType
):
    lease = lease_of_ten()

    lease.acknowledge(4, before)
    lease.acknowledge(4, after)

    assert [Run(4, 4, after)] == take_runs(lease)


@pytest.mark.parametrize("kind", ACKNOWLEDGE_TYPES)
def test_acknowledge_open_affects_only_open_records(
    kind: AcknowledgeType,
):
    lease = lease_of_ten()
    lease.acknowledge(3, REJECT)
    lease.acknowledge(5, RELEASE)

    lease.acknowledge_open(2, 7, kind)

    expected = {2: kind, 3: REJECT, 4: kind, 5: RELEASE, 6: kind}
    assert expected == {
        offset: run_kind
        for first, last, run_kind in take_runs(lease)
        for offset in range(first, last + 1)
    }


@pytest.mark.parametrize("state", ["sent", "settled"])
@pytest.mark.parametrize("kind", TERMINAL_TYPES)
def test_repeated_acknowledgement_after_sending_changes_nothing(
    kind: AcknowledgeType, state: str
):
    lease = lease_of_ten()
    lease.acknowledge(4, kind)
    runs = take_runs(lease)
    if state == "settled":
        settle(lease, runs)

    lease.acknowledge(4, kind)

    assert [] == take_runs(lease)


@pytest.mark.parametrize("state", ["sent", "settled"])
@pytest.mark.parametrize(
    ("before", "after"),
    [p for p in itertools.product(TERMINAL_TYPES, ACKNOWLEDGE_TYPES) if p[0] != p[1]],
)
def test_different_acknowledgement_after_sending_raises_and_sends_nothing(
    before: AcknowledgeType, after: AcknowledgeType, state: str
):
    lease = lease_of_ten()
    lease.acknowledge(4, before)
    runs = take_runs(lease)
    if state == "settled":
        settle(lease, runs)

    with pytest.raises(RecordStateError, match=before.name.lower()):
        lease.acknowledge(4, after)

    assert [] == take_runs(lease)


@pytest.mark.parametrize("kind", ACKNOWLEDGE_TYPES)
def test_acknowledgement_after_the_consumer_closed_raises(kind: AcknowledgeType):
    owner = RecordingOwner()
    lease = lease_of_ten(owner)
    owner.result_log.closed = True

    with pytest.raises(ClosedError, match="closed"):
        lease.acknowledge(4, kind)
    with pytest.raises(ClosedError, match="closed"):
        lease.acknowledge_open(0, 10, kind)

    assert [] == take_runs(lease)


def test_consecutive_acknowledgement_after_the_consumer_closed_raises():
    owner = RecordingOwner()
    lease = lease_of_ten(owner)
    lease.acknowledge(3, ACCEPT)
    lease.acknowledge(4, ACCEPT)
    owner.result_log.closed = True

    with pytest.raises(ClosedError, match="closed"):
        lease.acknowledge(5, ACCEPT)


def test_consecutive_acknowledgement_after_the_locks_were_lost_raises():
    lease = lease_of_ten()
    lease.acknowledge(3, ACCEPT)
    lease.acknowledge(4, ACCEPT)
    lease.lock_scope.ended = True
    unsent = lease.abandon()

    with pytest.raises(LockLostError):
        lease.acknowledge(5, ACCEPT)

    assert [Run(3, 4, ACCEPT)] == unsent


def test_renewal_with_a_broker_without_renewals_raises():
    owner = RecordingOwner()
    lease = lease_of_ten(owner)
    owner.renewable = False

    with pytest.raises(UnsupportedVersionError, match=r"4\.2"):
        lease.acknowledge(4, RENEW)
    with pytest.raises(UnsupportedVersionError, match=r"4\.2"):
        lease.acknowledge_open(0, 10, RENEW)
    lease.acknowledge(4, ACCEPT)

    assert [Run(4, 4, ACCEPT)] == take_runs(lease)


def test_dense_offsets_have_a_record_at_each_acquired_offset():
    lease = packed_lease((5, 7, 1))
    lease.set_dense_offsets()

    assert lease.has_open
    lease.acknowledge(6, REJECT)
    lease.acknowledge_open(0, 3, ACCEPT)

    assert [Run(5, 5, ACCEPT), Run(6, 6, REJECT), Run(7, 7, ACCEPT)] == take_runs(lease)
    assert not lease.has_open


def test_packed_leases_share_no_state():
    abandoned, kept = packed_lease(), packed_lease()
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
    lease = packed_lease(owner=owner)

    lease.set_offsets(
        [0, 1, 5],
        gaps=[(2, 4), (9, 9)],
        undeliverable=[Run(6, 8, RELEASE)],
    )

    assert 1 == owner.notifications
    assert [Run(2, 4, GAP), Run(6, 8, RELEASE), Run(9, 9, GAP)] == take_runs(lease)


def test_settled_gaps_do_not_settle_records():
    lease = packed_lease()
    lease.set_offsets([5], gaps=[(6, 9)])
    gaps = take_runs(lease)
    lease.acknowledge(5, ACCEPT)
    record = take_runs(lease)

    settle(lease, gaps)
    before = lease.is_settled
    settle(lease, record)

    assert (False, True) == (before, lease.is_settled)


def test_lease_of_gaps_is_settled_with_them():
    lease = packed_lease()
    lease.set_offsets([], gaps=[(0, 9)])

    before = lease.is_settled
    runs = take_runs(lease)
    settle(lease, runs)

    assert (False, True) == (before, lease.is_settled)
    assert not lease.has_open


def test_releasing_a_packed_lease_releases_all_offsets():
    lease = packed_lease((0, 4, 1), (7, 9, 2))

    lease.release_remaining()

    assert [Run(0, 4, RELEASE), Run(7, 9, RELEASE)] == take_runs(lease)
    assert b"" == lease.payload
    assert not lease.has_open


def test_releasing_an_unpacked_lease_releases_undelivered_records():
    lease = lease_of_ten()
    lease.cursor = 4

    lease.release_remaining()

    assert [Run(4, 9, RELEASE)] == take_runs(lease)
    assert lease.is_open(3)


# Settling.


@pytest.mark.parametrize("make", [lease_of_ten, sparse_lease])
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


@pytest.mark.parametrize("make", [lease_of_ten, sparse_lease])
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
