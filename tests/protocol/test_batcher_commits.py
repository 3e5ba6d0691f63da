"""Commits, which wait for the results of acknowledgements."""

from sharecons.protocol.codes import Code
from sharecons.record import ACCEPT, REJECT, RELEASE, RENEW
from tests.protocol.batcher_harness import (
    BatcherHarness,
    lose_session,
)
from tests.protocol.message_factories import (
    P0,
    partition_response,
)


def test_commit_without_acknowledgements_is_done_immediately():
    assert BatcherHarness().commit().is_done


def test_commit_waits_for_pending_and_sent_acknowledgements():
    harness = BatcherHarness()
    lease = harness.add_lease(*range(10))
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


def test_commit_waits_for_retries_and_resent_requests():
    harness = BatcherHarness()
    harness.add_lease(0).acknowledge(0, ACCEPT)
    waiter = harness.commit()

    harness.exchange(Code.REQUEST_TIMED_OUT)
    harness.take_acks()
    harness.batcher.resend()
    done_before = waiter.is_done
    harness.exchange()

    assert (False, True, 1) == (done_before, waiter.is_done, len(waiter.results))


def test_commit_waits_for_an_acknowledgement_made_during_a_renewal():
    harness = BatcherHarness()
    lease = harness.add_lease(0, 1)
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
    harness = BatcherHarness()
    lease = harness.add_lease(*range(10))
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
