"""A killed worker of the demo, and what its outcomes become."""

import anyio
import pytest
from anyio.lowlevel import checkpoint

from sharecons.demo.clock import DemoClock
from sharecons.demo.environment import Environment
from sharecons.demo.job_tracker import JobState, RedeliveryReason
from sharecons.demo.plan import Plan
from sharecons.demo.worker import MAX_LOCK_TIME, RETRY, DemoWorker
from sharecons.testing import virtual_time
from sharecons.worker.middleware import Attempt
from sharecons.worker.outcome_events import OutcomeEvent
from sharecons.worker.outcomes import Accepted, LockLost, Rejected, Released
from tests.demo.tracking import new_tracker


class ScriptedJob:
    """A record for the worker's handler, middleware and callback."""

    value, offset, delivery_count = b"job 1", 0, 1


async def no_handler():
    """In place of the handler, which takes its time."""


def event(job, outcome):
    return OutcomeEvent(job, outcome, attempt=1, seconds=0.1, error=None)


def new_worker(tracker, plan):
    environment = Environment("localhost:1", "topic", "group", None)
    return DemoWorker("ada", plan, environment, tracker, DemoClock())


@pytest.mark.anyio
async def test_killed_worker_ignores_later_records():
    tracker = new_tracker(1)
    worker = new_worker(tracker, Plan(jobs=1, consumers=1, seconds=1))
    worker.kill()
    await worker.note_delivery(Attempt(ScriptedJob(), 1, "process"), no_handler)

    assert [] == tracker.consumers["ada"].acquired


@pytest.mark.anyio
@pytest.mark.parametrize(
    "anyio_backend", [virtual_time.backend(name) for name in virtual_time.BACKENDS]
)
async def test_killed_worker_does_not_settle_finished_job():
    tracker, job = new_tracker(1), ScriptedJob()
    worker = new_worker(tracker, Plan(jobs=1000, consumers=1, seconds=1))
    async with anyio.create_task_group() as tasks:
        await worker.note_delivery(Attempt(job, 1, "process"), no_handler)
        tasks.start_soon(worker.process, job)
        await checkpoint()
        worker.kill()
    worker.on_outcome(event(job, Accepted()))

    assert 0 == tracker.count(JobState.UNCONFIRMED)
    assert [(1, "ada")] == [(event.jobs[0], event.consumer) for event in tracker.events]
    assert 1 == tracker.totals().reasons[RedeliveryReason.KILLED]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (Accepted(), JobState.UNCONFIRMED),
        (Rejected("failed"), JobState.UNCONFIRMED),
        (Released("failed"), JobState.WAITING),
        (LockLost(), JobState.WAITING),
    ],
    ids=lambda each: type(each).__name__,
)
async def test_outcome_of_an_attempt_is_reported(outcome, state):
    tracker, job = new_tracker(1), ScriptedJob()
    worker = new_worker(tracker, Plan(jobs=1, consumers=1, seconds=1))
    await worker.note_delivery(Attempt(job, 1, "process"), no_handler)
    worker.on_outcome(event(job, outcome))

    assert state is tracker.jobs[1].state


def test_failed_job_is_not_held_for_its_next_attempt():
    delays = [RETRY.delay(attempt, chance=0.0) for attempt in range(1, 5)]

    assert min(delays) > MAX_LOCK_TIME
