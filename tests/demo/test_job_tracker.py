"""The job tracker of the demo."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from sharecons.demo.job_tracker import (
    DELIVERY_LIMIT,
    EventKind,
    JobState,
    JobTracker,
    RedeliveryReason,
)
from sharecons.demo.messages import describe_event
from tests.demo.tracking import ACCEPT, REJECT, RELEASE, complete, new_tracker


def test_job_is_done_once_broker_confirms():
    tracker = new_tracker(1)
    tracker.on_delivered(1, "ada", 1, now=1.0)
    tracker.on_acknowledged(1, "ada", ACCEPT, now=2.0)

    assert not tracker.is_finished
    assert not tracker.is_confirmed("ada")
    assert ["neither accepted nor rejected: job 1"] == tracker.discrepancies()

    tracker.on_ack_confirmed(1, "ada", ACCEPT, now=3.0)

    assert tracker.is_finished
    assert tracker.is_confirmed("ada")
    assert [] == tracker.discrepancies()


def test_released_job_is_redelivered_with_reason():
    tracker = new_tracker(1)
    complete(tracker, 1, "bob", verdict=RELEASE)
    complete(tracker, 1, "ada", count=2)

    assert [] == tracker.discrepancies()
    assert 1 == tracker.totals().redelivered
    assert 1 == tracker.totals().reasons[RedeliveryReason.RELEASED]
    assert (1, 0) == (
        tracker.consumers["bob"].released,
        tracker.consumers["bob"].redelivered,
    )
    assert (0, 1) == (
        tracker.consumers["ada"].released,
        tracker.consumers["ada"].redelivered,
    )


def test_redelivery_without_reason_is_discrepancy():
    tracker = new_tracker(1)
    complete(tracker, 1, "bob", verdict=RELEASE)
    complete(tracker, 1, "ada", count=3)

    assert ["delivery count without matching reasons: job 1"] == tracker.discrepancies()


def test_release_without_redelivery_is_discrepancy():
    tracker = new_tracker(1)
    complete(tracker, 1, "bob", verdict=RELEASE)
    complete(tracker, 1, "ada", count=1)

    assert ["delivery count without matching reasons: job 1"] == tracker.discrepancies()


def test_job_accepted_twice_is_discrepancy():
    tracker = new_tracker(1)
    complete(tracker, 1, "ada")
    complete(tracker, 1, "bob")

    assert 1 == tracker.totals().accepted_twice
    assert "job 1 was delivered to bob after it was accepted" in tracker.discrepancies()
    assert "accepted more than once: job 1" in tracker.discrepancies()


def test_undelivered_jobs_are_listed_by_number():
    tracker = new_tracker(12)
    complete(tracker, 3, "ada")

    numbers = "1, 2, 4, 5, 6, 7, 8, 9, 10, 11"

    assert [
        f"neither accepted nor rejected: jobs {numbers} and 1 more"
    ] == tracker.discrepancies()


def test_jobs_never_produced_are_discrepancy():
    tracker = JobTracker(("ada",), expected=2)
    complete(tracker, 1, "ada")

    assert not tracker.is_finished
    assert ["jobs seen: 1 instead of 2"] == tracker.discrepancies()


def test_jobs_of_killed_consumer_are_redelivered_with_reason():
    tracker = new_tracker(2)
    tracker.on_delivered(1, "bob", 1, now=1.0)
    tracker.on_delivered(2, "bob", 1, now=1.0)
    tracker.on_killed("bob", now=2.0)

    assert [] == tracker.consumers["bob"].acquired
    assert 2 == tracker.count(JobState.WAITING)

    complete(tracker, 1, "ada", count=2)
    complete(tracker, 2, "ada", count=2)

    assert [] == tracker.discrepancies()
    assert 2 == tracker.totals().reasons[RedeliveryReason.KILLED]
    assert [
        "was killed with jobs 1 and 2 in progress",
        "received job 1, delivery 2: bob was killed",
        "received job 2, delivery 2: bob was killed",
    ] == [describe_event(event) for event in tracker.events]


def test_jobs_prefetched_by_killed_consumer_count_once():
    tracker = new_tracker(2)
    tracker.on_killed("bob", now=2.0)
    complete(tracker, 1, "ada", count=2)
    complete(tracker, 2, "ada", count=3)

    assert 2 == tracker.totals().reasons[RedeliveryReason.PREFETCHED]
    assert ["delivery count without matching reasons: job 2"] == tracker.discrepancies()


def test_unexplained_redelivery_without_killed_consumer_is_discrepancy():
    tracker = new_tracker(1)
    complete(tracker, 1, "ada", count=2)

    assert ["delivery count without matching reasons: job 1"] == tracker.discrepancies()


def test_consumer_killed_at_start_explains_redelivery():
    tracker = new_tracker(1)
    tracker.on_killed("bob", now=0.0)
    complete(tracker, 1, "ada", count=2)

    assert [] == tracker.discrepancies()


def test_acceptance_after_lock_expired_counts_for_next_consumer():
    tracker = new_tracker(1)
    tracker.on_delivered(1, "ada", 1, now=1.0)
    tracker.on_acknowledged(1, "ada", ACCEPT, now=9.0)
    tracker.on_ack_rejected(1, "ada", ACCEPT, now=9.1)
    complete(tracker, 1, "bob", count=2)

    assert [] == tracker.discrepancies()
    assert 1 == tracker.totals().reasons[RedeliveryReason.LOCK_EXPIRED]
    assert 0 == tracker.consumers["ada"].accepted


def test_job_delivered_to_other_consumer_had_expired_lock():
    tracker = new_tracker(1)
    tracker.on_delivered(1, "ada", 1, now=1.0)
    tracker.on_delivered(1, "bob", 2, now=9.0)
    tracker.on_lock_expired(1, "ada", now=9.5)
    tracker.on_acknowledged(1, "bob", ACCEPT, now=9.6)
    tracker.on_ack_confirmed(1, "bob", ACCEPT, now=9.7)

    assert [] == tracker.discrepancies()
    assert [EventKind.LOCK_EXPIRED, EventKind.REDELIVERED] == [
        event.kind for event in tracker.events
    ]


def test_late_release_counts_as_expired_lock():
    tracker = new_tracker(1)
    tracker.on_delivered(1, "ada", 1, now=1.0)
    tracker.on_acknowledged(1, "ada", RELEASE, now=9.0)
    tracker.on_delivered(1, "bob", 2, now=9.0)
    tracker.on_ack_rejected(1, "ada", RELEASE, now=9.1)
    tracker.on_acknowledged(1, "bob", ACCEPT, now=9.2)
    tracker.on_ack_confirmed(1, "bob", ACCEPT, now=9.3)

    assert [] == tracker.discrepancies()
    assert {RedeliveryReason.LOCK_EXPIRED: 1} == {
        reason: count for reason, count in tracker.totals().reasons.items() if count
    }


def test_job_at_delivery_limit_is_archived():
    tracker = new_tracker(2)
    for count in range(1, DELIVERY_LIMIT + 1):
        complete(tracker, 1, "bob", count, RELEASE)
    for count in range(1, DELIVERY_LIMIT):
        complete(tracker, 2, "bob", count, RELEASE)
    tracker.on_delivered(2, "bob", DELIVERY_LIMIT, now=4.0)
    tracker.on_killed("bob", now=5.0)

    assert tracker.is_finished
    assert [] == tracker.discrepancies()
    assert 2 == tracker.totals().archived
    assert 2 * (DELIVERY_LIMIT - 1) == tracker.totals().redelivered


def test_job_delivered_before_its_produce_response_is_no_discrepancy():
    tracker = JobTracker(("ada",), expected=1)
    complete(tracker, 1, "ada")
    tracker.on_produced([1])

    assert tracker.is_finished
    assert [] == tracker.discrepancies()


@given(st.integers(0, 1 << 30))
def test_any_history_of_correct_broker_has_no_discrepancies(seed):
    """Random deliveries, acknowledgements and killed consumers."""
    chance = Random(seed)
    tracker = new_tracker(5, "ada", "bob", "cleo")
    queue = [(job, 1) for job in range(1, 6)]
    alive, held = ["ada", "bob", "cleo"], []
    while queue or held:
        action = chance.choices(["deliver", "acknowledge", "kill"], [5, 5, 1])[0]
        if action == "deliver" and queue:
            job, count = queue.pop(chance.randrange(len(queue)))
            who = chance.choice(alive)
            tracker.on_delivered(job, who, count, now=1.0)
            held.append((job, count, who))
        elif action == "acknowledge" and held:
            job, count, who = held.pop(chance.randrange(len(held)))
            verdict = chance.choice([RELEASE, RELEASE, ACCEPT, REJECT])
            tracker.on_acknowledged(job, who, verdict, now=2.0)
            tracker.on_ack_confirmed(job, who, verdict, now=3.0)
            if verdict is RELEASE and count < DELIVERY_LIMIT:
                queue.append((job, count + 1))
        elif action == "kill" and len(alive) > 1:
            who = alive.pop(chance.randrange(len(alive)))
            tracker.on_killed(who, now=4.0)
            lost = [(job, count + 1) for job, count, whose in held if whose == who]
            queue += [(job, count) for job, count in lost if count <= DELIVERY_LIMIT]
            held = [each for each in held if each[2] != who]

    assert tracker.is_finished
    assert [] == tracker.discrepancies()
    sums = tracker.totals()
    assert sums.produced == sums.accepted + len(sums.rejected) + sums.archived
    assert sums.redelivered == sum(sums.reasons.values()) - sums.archived


def test_lag_at_broker_is_discrepancy():
    tracker = new_tracker(1)
    complete(tracker, 1, "ada")
    tracker.set_lag(0)

    assert [] == tracker.discrepancies()

    tracker.set_lag(3)

    assert ["lag at the broker: 3"] == tracker.discrepancies()
