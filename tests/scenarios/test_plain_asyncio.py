"""Programs that use asyncio only: its cancellation, timeouts and tasks."""

import asyncio

import pytest

from tests.kafka_plugin import Admin
from tests.scenarios.queue import Queue, offsets, remaining_records
from tests.scenarios.versions import COUNT_AFTER_CLOSE

pytestmark = pytest.mark.asyncio


async def test_asyncio_timeouts_lose_no_record(admin: Admin) -> None:
    queue = Queue(admin)
    async with queue.consumer() as consumer:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(aiter(consumer)), 0.3)
        queue.produce([b"x"])
        async with asyncio.timeout(20):
            record = await anext(aiter(consumer))
        record.accept()

    assert await remaining_records(queue) == []


async def test_cancelled_task_releases_current_record(
    admin: Admin,
) -> None:
    queue = Queue(admin)
    queue.produce([b"x"])
    working = asyncio.Event()

    async def work() -> None:
        async with queue.consumer() as consumer:
            async for _ in consumer:
                working.set()
                await asyncio.Event().wait()

    task = asyncio.create_task(work())
    async with asyncio.timeout(20):
        await working.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert [r.delivery_count for r in await remaining_records(queue)] == [
        COUNT_AFTER_CLOSE
    ]


async def test_close_in_other_task_ends_loop(admin: Admin) -> None:
    queue = Queue(admin)
    queue.produce([b"%d" % i for i in range(5)])
    consumed = []
    fifth = asyncio.Event()
    async with queue.consumer() as consumer:

        async def close_after_fifth() -> None:
            await fifth.wait()
            await consumer.aclose()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(close_after_fifth())
            async for record in consumer:
                consumed.append(record)
                if len(consumed) == 5:
                    fifth.set()

    # Requesting the next record accepted the last one.
    assert offsets(consumed) == [0, 1, 2, 3, 4]
    assert await remaining_records(queue) == []
