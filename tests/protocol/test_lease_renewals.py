"""Leases with renewed records."""

from collections.abc import Callable

import pytest

from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.runs import Run
from sharecons.record import ACCEPT, REJECT, RENEW, AcknowledgeType
from tests.protocol.lease_factories import (
    TERMINAL_TYPES,
    TYPE_PAIRS,
    RecordingOwner,
    lease_of_ten,
    settle,
    sparse_lease,
    take_runs,
)


@pytest.mark.parametrize("make", [lease_of_ten, sparse_lease])
def test_renewed_record_is_open_with_a_later_deadline(
    make: Callable[[], Lease],
):
    lease = make()
    lease.acknowledge(4, RENEW)

    settle(lease, take_runs(lease), renewed_until=55.0)

    assert lease.is_open(4)
    assert (55.0, 30.0) == (lease.deadline_of(4), lease.deadline_of(5))
    assert 55.0 == lease.locks.last()


@pytest.mark.parametrize("kind", TERMINAL_TYPES)
def test_acknowledgement_during_a_renewal_is_sent_after_its_response(
    kind: AcknowledgeType,
):
    owner = RecordingOwner()
    lease = lease_of_ten(owner)
    lease.acknowledge(4, RENEW)
    renewal = take_runs(lease)

    lease.acknowledge(4, kind)
    during = take_runs(lease)
    settle(lease, renewal, renewed_until=55.0)

    assert [] == during
    assert 2 == owner.notifications
    assert [(55.0, [Run(4, 4, kind)])] == lease.take_runs()


@pytest.mark.parametrize(("first", "last"), TYPE_PAIRS)
def test_last_acknowledgement_during_a_renewal_is_sent(
    first: AcknowledgeType, last: AcknowledgeType
):
    lease = lease_of_ten()
    lease.acknowledge(4, RENEW)
    renewal = take_runs(lease)

    lease.acknowledge(4, first)
    lease.acknowledge(4, last)
    settle(lease, renewal)

    renewing_only = (first, last) == (RENEW, RENEW)
    assert ([] if renewing_only else [Run(4, 4, last)]) == take_runs(lease)


@pytest.mark.parametrize("kind", TERMINAL_TYPES)
@pytest.mark.parametrize("taken", [False, True])
def test_acknowledge_open_includes_records_that_are_being_renewed(
    kind: AcknowledgeType, taken: bool
):
    lease = lease_of_ten()
    lease.acknowledge_open(0, 10, RENEW)
    renewal = take_runs(lease) if taken else []

    lease.acknowledge_open(0, 10, kind)
    settle(lease, renewal, renewed_until=55.0)

    assert [Run(0, 9, kind)] == take_runs(lease)


def test_acknowledge_open_keeps_acknowledgements_made_during_a_renewal():
    lease = lease_of_ten()
    lease.acknowledge_open(0, 2, RENEW)
    renewal = take_runs(lease)
    lease.acknowledge(0, REJECT)

    lease.acknowledge_open(0, 2, ACCEPT)
    settle(lease, renewal)

    assert [Run(0, 0, REJECT), Run(1, 1, ACCEPT)] == take_runs(lease)


@pytest.mark.parametrize("make", [lease_of_ten, sparse_lease])
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
