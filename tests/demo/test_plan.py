"""The plan of the demo: which job takes how long, and fails how often."""

import pytest

from sharecons.demo.plan import MAX_DELIVERIES, Plan
from tests.demo.tracking import ACCEPT, REJECT, RELEASE


def test_same_seed_gives_same_durations():
    one, same, other = (Plan(seed=seed) for seed in (7, 7, 8))

    def durations(plan):
        return [plan.duration("ada", job, 1) for job in range(1, 9)]

    assert durations(one) == durations(same)
    assert durations(one) != durations(other)


@pytest.mark.parametrize("consumers", [1, 2, 3, 4, 12])
def test_consumer_names_are_unique_and_failing_consumer_is_not_killed(consumers):
    plan = Plan(consumers=consumers)

    assert consumers == len(set(plan.names))
    assert plan.failing_consumer in plan.names
    assert plan.killed_consumer != plan.failing_consumer
    assert (plan.killed_consumer in plan.names) == (consumers > 1)


@pytest.mark.parametrize("jobs", [1, 2, 10, 240])
def test_poison_job_is_rejected_at_last_delivery(jobs):
    plan = Plan(jobs=jobs)
    decisions = [
        plan.decide("ada", plan.poison_job, n) for n in range(1, MAX_DELIVERIES + 1)
    ]

    assert 1 <= plan.poison_job <= jobs
    assert [RELEASE] * (MAX_DELIVERIES - 1) + [REJECT] == decisions


def test_only_failing_consumer_fails_and_never_at_last_delivery():
    plan = Plan()
    jobs = [job for job in range(1, 241) if job != plan.poison_job]
    failing = {
        who: sum(plan.decide(who, job, 1) is RELEASE for job in jobs)
        for who in plan.names
    }

    assert 30 < failing.pop(plan.failing_consumer) < 90
    assert {0} == set(failing.values())
    assert {ACCEPT} == {
        plan.decide(plan.failing_consumer, job, MAX_DELIVERIES) for job in jobs
    }
