"""Wakeups on asyncio: cancelled tasks and closed loops."""

import asyncio
from contextlib import closing

import pytest

from sharecons.net.io.event_loop import FOREVER, AutoResetEvent, FutureWaiter
from tests.net.waits import wait_and_end

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request):
    return ("asyncio", {"use_uvloop": request.param})


@pytest.fixture
async def waiter():
    return FutureWaiter()


async def wait(waiter, got):
    got.append(await wait_and_end(waiter, FOREVER))


async def test_cancel_message_reaches_the_task(waiter):
    messages = []

    async def work():
        try:
            await wait_and_end(waiter, FOREVER)
        except asyncio.CancelledError as error:
            messages.append(error.args)
            raise

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel("enough of it")
    with pytest.raises(asyncio.CancelledError):
        await task

    assert [("enough of it",)] == messages
    assert not waiter.is_waiting


async def test_woken_and_cancelled_task_is_cancelled(waiter):
    got = []
    task = asyncio.create_task(wait(waiter, got))
    await asyncio.sleep(0)
    waiter.wake()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert [] == got
    assert not waiter.is_waiting


async def test_closed_coroutine_stops_waiting(waiter):
    """The interpreter closes the coroutines that are left when it exits."""
    waiting = wait_and_end(waiter, FOREVER)
    waiting.send(None)
    assert waiter.is_waiting

    waiting.close()

    assert not waiter.is_waiting


def test_waking_after_the_loop_was_closed_raises_each_time():
    event = AutoResetEvent()
    with closing(asyncio.new_event_loop()) as loop:
        waiting = loop.create_task(event.wait_until(FOREVER))
        loop.run_until_complete(asyncio.sleep(0))

    for _ in range(2):
        with pytest.raises(RuntimeError, match="Event loop is closed"):
            event.set()
    waiting.get_coro().close()
