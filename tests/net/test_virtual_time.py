"""The virtual clock of sharecons.testing."""

import time

import anyio
import pytest

pytestmark = pytest.mark.anyio


async def test_an_hour_takes_no_time():
    before, started = time.monotonic(), anyio.current_time()

    await anyio.sleep(3600)

    assert 3600 == pytest.approx(anyio.current_time() - started)
    assert time.monotonic() - before < 5


async def test_tasks_wake_in_the_order_of_their_deadlines():
    woken = []

    async def sleep(seconds):
        await anyio.sleep(seconds)
        woken.append(seconds)

    async with anyio.create_task_group() as tasks:
        for seconds in (3, 1, 2):
            tasks.start_soon(sleep, seconds)

    assert [1, 2, 3] == woken


async def test_the_clock_stands_still_while_there_is_something_to_do():
    started = anyio.current_time()

    for _ in range(100):
        await anyio.lowlevel.checkpoint()

    assert started == anyio.current_time()


async def test_sleep_ends_no_earlier_than_its_deadline():
    for number in range(1, 1000):
        deadline = anyio.current_time() + 0.1
        # Two deadlines that differ by the rounding of floating-point numbers.
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.sleep, 0.1 - 1e-10 * (number % 7))
            await anyio.sleep_until(deadline)
            assert anyio.current_time() >= deadline
