"""The batcher with renewals, lost sessions and ended locks."""

import pytest

from sharecons.errors import LockLostError
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.lock_times import LockTimes
from sharecons.record import ACCEPT, REJECT, RELEASE, RENEW, AcknowledgeType
from tests.protocol.batcher_harness import (
    INVALID_STATE,
    BatcherHarness,
    accepted,
    lose_session,
)
from tests.protocol.message_factories import (
    P0,
    P1,
    partition_response,
)

# Renewals.


def test_renewed_and_urgent_records_of_a_lease_are_sent_separately():
    harness = BatcherHarness()
    lease = harness.add_lease(0, 1)
    lease.acknowledge(0, RENEW)
    harness.take_acks()
    harness.respond(partition_response(P0), renewed_until=60.0)

    lease.acknowledge_open(0, 2, ACCEPT)

    assert {P0: accepted(1)} == harness.exchange(now=29.5)
    assert {P0: accepted(0)} == harness.exchange(now=29.5)


def test_closing_fails_renewals_and_sends_other_acknowledgements():
    harness = BatcherHarness()
    lease = harness.add_lease(0, 1, 2)
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
    harness = BatcherHarness()
    lease = harness.add_lease(0)
    lease.acknowledge(0, RENEW)
    harness.batcher.collect()
    lease.acknowledge(0, REJECT)
    lease.acknowledge(0, after)

    harness.batcher.fail_renewals()

    assert ({P0: {0: after}} if after == ACCEPT else {}) == harness.take_acks()


# Losing the session.


def test_unconfirmed_acknowledgements_fail_when_the_session_is_lost():
    harness = BatcherHarness()
    lease = harness.add_lease(*range(10))
    lease.acknowledge(0, ACCEPT)
    harness.take_acks()
    lease.acknowledge(1, RELEASE)
    harness.batcher.collect()
    lease.acknowledge(2, REJECT)

    lose_session(harness)

    name = "NETWORK_EXCEPTION"
    expected = [(0, 0, ACCEPT, name), (1, 1, RELEASE, name), (2, 2, REJECT, name)]
    assert expected == harness.results
    assert "the connection was lost" in str(harness.result_log.results[0].error)
    assert () == harness.batcher.leases
    assert not harness.batcher.has_pending


def test_implicit_acknowledgement_after_a_lost_session_fails_with_a_notification():
    harness = BatcherHarness()
    lease = harness.add_lease(*range(10))
    lose_session(harness)

    lease.acknowledge_implicitly(3, 4, ACCEPT)
    lease.acknowledge_implicitly(0, 10, RELEASE)

    name = "NETWORK_EXCEPTION"
    assert (3, 3, ACCEPT, name) in harness.results
    assert [(0, 2), (3, 3), (4, 9)] == [r[:2] for r in harness.results]
    assert 2 == harness.result_notifications
    assert not harness.batcher.has_pending


def test_renewal_and_later_acknowledgement_fail_when_the_session_is_lost():
    harness = BatcherHarness()
    lease = harness.add_lease(0)
    lease.acknowledge(0, RENEW)
    harness.take_acks()
    lease.acknowledge(0, ACCEPT)

    lose_session(harness)

    assert {RENEW, ACCEPT} == {r.type for r in harness.result_log.results if r.error}
    assert 2 == len(harness.results)


# Locks that ended.


def test_lease_is_dropped_when_its_lock_ends():
    harness = BatcherHarness()
    lease = harness.add_lease(0, deadline=30.0)
    harness.add_lease(1, deadline=31.0)

    assert [lease] == harness.batcher.forget_expired(now=30.0)
    assert 1 == len(harness.batcher.leases)


def test_renewed_lease_is_kept_until_its_new_deadline():
    harness = BatcherHarness()
    lease = harness.add_lease(0, 1, deadline=30.0)
    lease.acknowledge(1, RENEW)
    harness.take_acks()
    harness.respond(partition_response(P0), renewed_until=60.0)

    assert [] == harness.batcher.forget_expired(now=59.0)
    assert [lease] == harness.batcher.forget_expired(now=60.0)


def test_late_acknowledgement_of_a_dropped_lease_is_sent_separately():
    harness = BatcherHarness()
    late = harness.add_lease(0, deadline=30.0)
    harness.batcher.forget_expired(now=31.0)

    late.acknowledge(0, ACCEPT)
    harness.add_lease(5, deadline=60.0).acknowledge(5, ACCEPT)

    requests = [harness.exchange(now=31.0), harness.exchange(now=31.0)]
    assert [{P0: accepted(5)}, {P0: accepted(0)}] == requests
    assert [(0, 0, ACCEPT, None), (5, 5, ACCEPT, None)] == harness.results


@pytest.mark.parametrize("stage", ["acknowledged", "collected", "sent", "renewing"])
def test_late_acknowledgement_fails_once_when_the_session_is_lost(stage: str):
    harness = BatcherHarness()
    late = harness.add_lease(0, deadline=30.0)
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
    harness = BatcherHarness()
    late = harness.add_lease(0, deadline=30.0)
    harness.batcher.forget_expired(now=31.0)
    lose_session(harness)

    with pytest.raises(LockLostError, match="connection"):
        late.acknowledge(0, ACCEPT)

    assert [] == harness.results


@pytest.mark.parametrize("state", ["unsent", "sent", "during a renewal"])
def test_accept_before_the_session_was_lost_fails_once_and_a_second_raises(
    state: str,
):
    harness = BatcherHarness()
    lease = harness.add_lease(0, 1)
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
    assert [(0, 0, ACCEPT, "NETWORK_EXCEPTION")] == failed


# Records that were acquired again after their locks had ended.


@pytest.mark.parametrize("kind", [ACCEPT, RELEASE, REJECT])
def test_acknowledgement_of_a_record_acquired_again_is_not_sent(kind: AcknowledgeType):
    harness = BatcherHarness()
    earlier = harness.add_lease(0, 1, 2, 3, deadline=30.0)
    earlier.acknowledge_open(0, 4, kind)
    waiter = harness.commit()
    later = harness.add_lease(1, 2, deadline=60.0, delivery_count=2)

    sent = harness.exchange(now=30.0)

    assert {P0: dict.fromkeys((0, 3), kind)} == sent
    assert waiter.is_done
    assert [(0, 0, None), (1, 2, "INVALID_RECORD_STATE"), (3, 3, None)] == [
        (first, last, error) for first, last, _, error in harness.results
    ]
    assert later.is_open(1)
    assert 2 == harness.result_log.overrun_count


def test_late_acknowledgement_of_a_record_acquired_again_is_not_sent():
    """The batcher has forgotten the earlier lease when its record is acknowledged."""
    harness = BatcherHarness()
    earlier = harness.add_lease(0, deadline=30.0)
    harness.batcher.forget_expired(30.0)
    later = harness.add_lease(0, deadline=60.0, delivery_count=2)

    earlier.acknowledge(0, RELEASE)
    sent = harness.exchange(now=31.0)
    later.acknowledge(0, ACCEPT)

    assert {} == sent
    assert [(0, 0, RELEASE, "INVALID_RECORD_STATE")] == harness.results
    assert {P0: accepted(0)} == harness.exchange(now=31.0)


def test_record_that_is_still_locked_hides_no_record_that_was_acquired_again():
    harness = BatcherHarness()
    harness.add_lease(5, deadline=60.0).acknowledge(5, ACCEPT)
    harness.add_lease(0, deadline=30.0).acknowledge(0, ACCEPT)
    harness.add_lease(0, deadline=90.0, delivery_count=2)

    sent = harness.exchange(now=30.0)

    assert {P0: accepted(5)} == sent
    assert (0, 0, ACCEPT, "INVALID_RECORD_STATE") in harness.results


def test_late_acknowledgement_of_another_partition_is_sent():
    harness = BatcherHarness()
    harness.add_lease(0, deadline=30.0).acknowledge(0, ACCEPT)
    harness.add_lease(0, at=P1, deadline=60.0, delivery_count=2)

    assert {P0: accepted(0)} == harness.exchange(now=30.0)


def test_acknowledgement_is_not_sent_if_the_later_lease_came_after_its_deadline():
    """The response took longer than the lock; the broker's lock began later."""
    harness = BatcherHarness()
    harness.add_lease(0, deadline=30.0).acknowledge(0, ACCEPT)
    later = harness.add_lease(0, deadline=60.0, delivery_count=2)
    harness.batcher.forget_expired(60.0)
    sent = harness.exchange(now=60.0)

    assert {} == sent
    assert later.is_open(0)


# Records that are given back, as they were not delivered before their deadline.


def late_lease(harness: BatcherHarness, delivered: int) -> Lease:
    """Return a lease whose locks end between 30 and 50 s."""
    lease = harness.add_lease(0, 1, 2, 3)
    lease.locks = LockTimes(0.0, 20.0, 30.0)
    lease.cursor = delivered
    harness.now = 40.0
    return lease


def test_records_that_a_broker_can_still_hold_are_released():
    harness = BatcherHarness()
    lease = late_lease(harness, delivered=2)

    lease.give_back()

    assert {P0: dict.fromkeys((2, 3), RELEASE)} == harness.exchange(now=40.0)
    assert [(2, 3, RELEASE, None)] == harness.results


def test_failures_are_reported_of_delivered_records_only():
    harness = BatcherHarness()
    lease = late_lease(harness, delivered=2)

    lease.give_back()
    lease.acknowledge_open(0, 2, REJECT)
    harness.exchange(code=INVALID_STATE, now=40.0)

    assert [(0, 1, REJECT, "INVALID_RECORD_STATE")] == harness.results
    assert 2 == harness.result_log.overrun_count
    assert lease.is_settled


@pytest.mark.parametrize(
    ("delivered", "now"), [(2, 50.0), (4, 40.0)], ids=["too late", "nothing left"]
)
def test_nothing_is_given_back(delivered: int, now: float):
    harness = BatcherHarness()
    lease = late_lease(harness, delivered)
    harness.now = now

    lease.give_back()

    assert {} == harness.take_acks(now)
    assert lease.is_open(0)


def test_last_delivery_that_is_given_back_is_reported_as_lost_once():
    harness = BatcherHarness()
    harness.result_log.delivery_limit = 2
    harness.result_log.reports_lost = True
    lease = harness.add_lease(0, 1, delivery_count=2)
    lease.locks = LockTimes(0.0, 20.0, 30.0)
    harness.now = 40.0

    lease.give_back()
    harness.exchange(now=40.0)
    lose_session(harness)

    assert [(0, 1, True)] == [
        (each.first_offset, each.last_offset, each.is_lost)
        for each in harness.result_log.archived
    ]


def test_last_delivery_that_is_given_back_before_its_deadline_is_reported_as_released():
    """As of a former leader that is the leader again: the release archives it."""
    harness = BatcherHarness()
    harness.result_log.delivery_limit = 2
    lease = harness.add_lease(0, 1, delivery_count=2)
    lease.locks = LockTimes(0.0, 0.1, 30.0)

    lease.give_back()
    harness.exchange()

    assert [(0, 1, False)] == [
        (each.first_offset, each.last_offset, each.is_lost)
        for each in harness.result_log.archived
    ]
