"""Waiters: futures and anyio's events behave alike."""

import anyio
import pytest

from sharecons.net.io.event_loop import FOREVER, EventWaiter, FutureWaiter, new_waiter
from sharecons.testing import virtual_time
from tests.net.waits import other_tasks_have_run, wait_and_end

ASYNCIO = virtual_time.backend("asyncio")
UVLOOP = ("asyncio", {"use_uvloop": True})
TRIO = virtual_time.backend("trio")

KINDS = {
    "future": (FutureWaiter, ASYNCIO),
    "future, uvloop": (FutureWaiter, UVLOOP),
    "event": (EventWaiter, ASYNCIO),
    "event, trio": (EventWaiter, TRIO),
}

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys()),
]


@pytest.fixture
def anyio_backend(kind):
    return kind[1]


@pytest.fixture
async def waiter(kind):
    return kind[0]()


async def wait(waiter, deadline, got):
    got.append(await wait_and_end(waiter, deadline))


async def test_new_waiter_depends_on_the_library(kind):
    made = new_waiter()

    assert isinstance(made, EventWaiter) is (kind[1] is TRIO)


async def test_wake_ends_the_wait(waiter):
    got = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait, waiter, FOREVER, got)
        await other_tasks_have_run()
        assert waiter.is_waiting
        waiter.wake()
        waiter.wake()

    assert [True] == got
    assert not waiter.is_waiting


async def test_wake_before_the_deadline_returns_true(waiter):
    got = []
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait, waiter, anyio.current_time() + 3600, got)
            await other_tasks_have_run()
            waiter.wake()

    assert [True] == got


async def test_wait_without_a_wake_ends_at_the_deadline(waiter):
    deadline = anyio.current_time() + 0.01
    with anyio.fail_after(10):
        assert not await wait_and_end(waiter, deadline)

    # uvloop's timers have milliseconds.
    assert anyio.current_time() >= deadline - 0.001
    assert not waiter.is_waiting


async def test_past_deadline_lets_other_tasks_run(waiter):
    ran = []

    async def other():
        ran.append("other")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other)
        with anyio.fail_after(10):
            assert not await wait_and_end(waiter, anyio.current_time() - 1)

    assert ["other"] == ran


async def test_wake_before_the_wait_has_no_effect(waiter):
    waiter.wake()

    with anyio.fail_after(10):
        assert not await wait_and_end(waiter, anyio.current_time() + 0.001)


async def test_waiter_works_after_a_cancelled_wait(waiter):
    with anyio.move_on_after(0.001) as scope:
        await wait_and_end(waiter, anyio.current_time() + 3600)
    assert scope.cancelled_caught
    assert not waiter.is_waiting

    await test_wake_ends_the_wait(waiter)


async def test_deadline_of_an_earlier_wait_does_not_end_a_later_one(waiter):
    got = []
    async with anyio.create_task_group() as tasks:
        deadline = anyio.current_time() + 0.2
        tasks.start_soon(wait, waiter, deadline, got)
        await other_tasks_have_run()
        waiter.wake()
        await other_tasks_have_run()
        tasks.start_soon(wait, waiter, FOREVER, got)
        await anyio.sleep_until(deadline + 0.01)
        assert [True] == got
        waiter.wake()

    assert [True, True] == got
