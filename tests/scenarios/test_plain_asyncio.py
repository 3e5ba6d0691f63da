"""In programs that know asyncio only: its own cancellation, time limits and tasks."""

import asyncio

import pytest

from sharecons.net.io.tcp import ProtocolTransport
from tests.kafka_plugin import Admin
from tests.scenarios.queue import Queue, left_over, offsets
from tests.scenarios.versions import LET_GO

pytestmark = pytest.mark.asyncio


async def test_time_limit_of_asyncio_loses_nothing(admin: Admin) -> None:
    queue = Queue(admin)
    async with queue.consumer() as consumer:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(aiter(consumer)), 0.3)
        queue.produce([b"x"])
        async with asyncio.timeout(20):
            record = await anext(aiter(consumer))
        record.accept()

    assert await left_over(queue) == []


async def test_cancelled_task_closes_and_releases_what_it_worked_on(
    admin: Admin,
) -> None:
    queue = Queue(admin)
    queue.produce([b"x"])
    working = asyncio.Event()

    async def work() -> None:
        async with queue.consumer() as consumer:
            async for _ in consumer:
                working.set()
                await asyncio.sleep(60)

    task = asyncio.create_task(work())
    async with asyncio.timeout(20):
        await working.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert [r.delivery_count for r in await left_over(queue)] == [LET_GO]


async def test_closing_from_another_task_ends_the_loop(admin: Admin) -> None:
    queue = Queue(admin)
    queue.produce([b"%d" % i for i in range(5)])
    seen = []
    async with queue.consumer() as consumer:

        async def close_soon() -> None:
            while len(seen) < 5:
                await asyncio.sleep(0.01)
            await consumer.aclose()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(close_soon())
            async for record in consumer:
                seen.append(record)  # noqa: PERF401 (the other task looks at it)

    # The last was passed: asking for the next accepted it.
    assert offsets(seen) == [0, 1, 2, 3, 4]
    assert await left_over(queue) == []


async def test_a_record_that_comes_alone_is_here_in_the_call_that_brought_it(
    admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = Queue(admin)
    in_call = False
    updated = ProtocolTransport.buffer_updated

    def buffer_updated(wire: ProtocolTransport, nbytes: int) -> None:
        nonlocal in_call
        in_call = True
        updated(wire, nbytes)
        in_call = False

    monkeypatch.setattr(ProtocolTransport, "buffer_updated", buffer_updated)
    here = []
    async with queue.consumer() as consumer, asyncio.timeout(30):
        records = aiter(consumer)
        for _ in range(30):
            queue.produce([b"x"])
            await anext(records)
            here.append(in_call)

    # The first ones find out that nothing lies ready; and a fetch may begin anew.
    assert here[10:].count(True) > 10
