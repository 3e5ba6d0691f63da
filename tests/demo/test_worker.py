"""A killed worker of the demo."""

import anyio
import pytest
from anyio.lowlevel import checkpoint

from sharecons.demo.clock import DemoClock
from sharecons.demo.environment import Environment
from sharecons.demo.job_tracker import (
    RedeliveryReason,
)
from sharecons.demo.plan import Plan
from sharecons.demo.worker import Worker
from sharecons.testing import virtual_time
from tests.demo.tracking import new_tracker


class ScriptedTask:
    """A record for a worker that records its acknowledgements."""

    value, offset, delivery_count = b"job 1", 0, 1

    def __init__(self):
        self.acknowledgements = []

    def accept(self):
        self.acknowledgements.append("accept")


def new_worker(tracker, plan):
    place = Environment("localhost:1", "topic", "group", None)
    return Worker("ada", plan, place, tracker, DemoClock())


@pytest.mark.anyio
async def test_killed_worker_ignores_later_records():
    tracker, task = new_tracker(1), ScriptedTask()
    worker = new_worker(tracker, Plan(jobs=1, consumers=1, seconds=1))
    worker.kill()
    await worker.process(task)

    assert [] == tracker.consumers["ada"].acquired
    assert [] == task.acknowledgements


@pytest.mark.anyio
@pytest.mark.parametrize(
    "anyio_backend", [virtual_time.backend(name) for name in virtual_time.BACKENDS]
)
async def test_killed_worker_does_not_acknowledge_finished_job():
    tracker, task = new_tracker(1), ScriptedTask()
    worker = new_worker(tracker, Plan(jobs=1000, consumers=1, seconds=1))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.process, task)
        while not tracker.consumers["ada"].acquired:
            await checkpoint()  # time stands still
        worker.kill()

    assert [] == task.acknowledgements
    assert [(1, "ada")] == [(event.jobs[0], event.consumer) for event in tracker.events]
    assert 1 == tracker.totals().reasons[RedeliveryReason.KILLED]
