"""The formulas of docs/sizing.md, measured with handlers that sleep."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from sharecons import Record, ShareWorker
from tests.scenarios.embedded_admin import ON_BOTH, AnyAdmin
from tests.scenarios.queue import Queue
from tests.waiting import until

pytestmark = [pytest.mark.anyio, ON_BOTH]

WINDOW = 100
"""The smallest `share.partition.max.record.locks` that brokers accept."""


@pytest.fixture
def admin(any_admin: AnyAdmin) -> AnyAdmin:
    return any_admin


BATCH = 10


class Sleeping:
    """A handler that sleeps, and counts its calls."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.running = self.highest = self.done = 0
        self.began = self.ended = 0.0

    async def __call__(self, record: Record[Any, Any]) -> None:
        self.began = self.began or anyio.current_time()
        self.running += 1
        self.highest = max(self.highest, self.running)
        await anyio.sleep(self.seconds)  # real time: its length is measured
        self.running -= 1
        self.done += 1
        self.ended = anyio.current_time()

    @property
    def rate(self) -> float:
        """Records per second from the first call."""
        return self.done / (self.ended - self.began)


def fetches(worker: ShareWorker[Any, Any]) -> float:
    return worker.consumer_metrics()["fetch-total"]


@asynccontextmanager
async def processed(
    queue: Queue, handler: Sleeping, count: int, workers: int = 1, **options: Any
) -> AsyncIterator[list[ShareWorker[Any, Any]]]:
    """Let workers process all records; they still run in the block."""
    async with anyio.create_task_group() as tasks:
        started = [queue.worker(handler, **options) for _ in range(workers)]
        for worker in started:
            tasks.start_soon(worker.run)
        for worker in started:
            await worker.assigned()
        for number in range(count // BATCH):
            queue.produce([b"x"] * BATCH, partition=number % queue.partitions)
        await until(lambda: handler.done == count, within=60)
        yield started
        for worker in started:
            worker.stop()


async def test_rate_of_a_group_is_its_calls_per_handler_time(admin: AnyAdmin) -> None:
    queue, handler = Queue(admin, partitions=4), Sleeping(0.5)
    async with processed(queue, handler, 400, workers=2, concurrency=40):
        pass

    assert 80 == handler.highest
    assert 0.6 * 2 * 40 / 0.5 < handler.rate <= 2 * 40 / 0.5 * 1.01


async def test_rate_of_a_partition_is_its_window_per_handler_time(
    admin: AnyAdmin,
) -> None:
    locks = {"share.partition.max.record.locks": str(WINDOW)}
    queue, handler = Queue(admin, **locks), Sleeping(0.5)
    async with processed(queue, handler, 800, concurrency=400):
        pass

    assert WINDOW * 0.8 <= handler.highest <= WINDOW + BATCH, "a batch can exceed it"
    assert 0.5 * WINDOW / 0.5 < handler.rate <= (WINDOW + BATCH) / 0.5


async def test_long_call_renews_its_lock_once_for_each_half_of_it(
    admin: AnyAdmin,
) -> None:
    locks = {"share.record.lock.duration.ms": "1000"}
    queue, handler = Queue(admin, **locks), Sleeping(2.75)
    async with processed(queue, handler, 10) as (worker,):
        renewals = worker.consumer_metrics()["sharecons-renewals-total"]

    assert 10 == handler.done, "no record was delivered again"
    assert 10 * 4 <= renewals <= 10 * 7


async def test_idle_member_sends_two_fetches_a_second_and_a_heartbeat_in_five(
    admin: AnyAdmin,
) -> None:
    queue, handler = Queue(admin, partitions=4), Sleeping(0.0)
    async with processed(queue, handler, 10) as (worker,):
        before, began = worker.consumer_metrics(), anyio.current_time()
        await until(lambda: fetches(worker) >= before["fetch-total"] + 12)
        seconds = anyio.current_time() - began
        sent = worker.consumer_metrics()["heartbeat-total"] - before["heartbeat-total"]

    assert seconds > 12 / 2 * 0.8
    assert 1 <= sent <= 2 + seconds / 5


@pytest.mark.parametrize(("members", "partitions"), [(6, 2), (2, 4)])
async def test_each_member_has_partitions_and_each_partition_has_members(
    admin: AnyAdmin, members: int, partitions: int
) -> None:
    each = max(1, partitions // members)
    queue, handler = Queue(admin, partitions=partitions), Sleeping(0.0)
    async with processed(queue, handler, 20, workers=members) as workers:
        await until(lambda: all(len(one.assignment) == each for one in workers))
        held = Counter(place for worker in workers for place in worker.assignment)

    assert partitions == len(held)
    assert {max(1, members // partitions)} == set(held.values())
