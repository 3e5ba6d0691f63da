"""Tasks on asyncio that run in the call that resumes them."""

import asyncio
import socket
from contextlib import closing
from contextvars import ContextVar, copy_context

import anyio
import pytest

from sharecons.net.io.pipeline import NextFrame
from sharecons.net.io.tcp import ProtocolTransport
from sharecons.net.io.wakeup import FOREVER, FutureWaiter
from tests.net.transports import framed
from tests.net.waits import other_tasks_have_run, wait_and_end

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request):
    return ("asyncio", {"use_uvloop": request.param})


@pytest.fixture
async def waiter():
    return FutureWaiter()


async def wait(waiter, got):
    got.append(await wait_and_end(waiter, FOREVER))


async def in_the_loop(call):
    """Run it as the loop's own call; gives what it gave."""
    given = []
    asyncio.get_running_loop().call_soon(lambda: given.append(call()))
    while not given:
        await asyncio.sleep(0)
    return given[0]


async def test_woken_task_is_not_resumed(waiter):
    got = []

    def wake_and_resume():
        waiter.wake()
        return waiter.resume()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait, waiter, got)
        await other_tasks_have_run()
        assert not await in_the_loop(wake_and_resume)

    assert [True] == got


async def test_cancelled_task_is_not_resumed(waiter):
    async def cancelled(scope):
        with scope:
            await wait_and_end(waiter, FOREVER)

    scope = anyio.CancelScope()

    def cancel_and_resume():
        scope.cancel()
        return waiter.resume()

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cancelled, scope)
            await other_tasks_have_run()
            await in_the_loop(cancel_and_resume)

    assert not waiter.is_waiting


async def test_resumed_task_has_its_own_context(waiter):
    name = ContextVar("name", default="unset")
    found = []

    async def work():
        name.set("its own")
        await wait_and_end(waiter, FOREVER)
        found.append((name.get(), asyncio.current_task().get_name()))

    task = asyncio.create_task(work(), name="work")
    await asyncio.sleep(0)
    assert await in_the_loop(waiter.resume)
    await task

    assert [("its own", "work")] == found


async def test_exception_of_a_resumed_task_stays_in_the_task(waiter):
    async def work():
        await wait_and_end(waiter, FOREVER)
        raise ValueError("its own")

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    await in_the_loop(waiter.resume)

    with pytest.raises(ValueError, match="its own"):
        await task


@pytest.mark.parametrize(
    ("use_uvloop", "ran"), [(False, ["before"]), (True, ["before", "after"])]
)
def test_exit_in_a_resumed_task_ends_the_loop(use_uvloop, ran):
    order = []

    async def work(waiter):
        await wait_and_end(waiter, FOREVER)
        raise SystemExit("enough")

    def resume(waiter):
        order.append("before")
        waiter.resume()
        order.append("after")

    async def main():
        waiter = FutureWaiter()
        task = asyncio.create_task(work(waiter))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(resume, waiter)
        await task

    with pytest.raises(SystemExit, match="enough"):
        anyio.run(main, backend_options={"use_uvloop": use_uvloop})

    assert ran == order


async def test_resume_in_the_context_of_the_task_wakes_it(waiter):
    """A task cannot be resumed in a context that is entered already."""
    got = []
    context = copy_context()
    task = asyncio.create_task(wait(waiter, got), context=context)
    await asyncio.sleep(0)
    ran = []
    loop = asyncio.get_running_loop()
    loop.call_soon(lambda: ran.append(waiter.resume()), context=context)
    async with asyncio.timeout(10):
        await task

    assert [False] == ran
    assert [True] == got


@pytest.fixture
def loop():
    with closing(asyncio.new_event_loop()) as loop:
        yield loop


@pytest.fixture
def ends(loop):
    """Return a transport and the socket at its other end."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connected = socket.create_connection(server.getsockname())
        theirs, _ = server.accept()
    connected.setblocking(False)
    wire = loop.run_until_complete(ProtocolTransport.from_socket(connected))
    with theirs:
        yield wire, theirs
    loop.run_until_complete(wire.aclose())
    loop.run_until_complete(asyncio.sleep(0))


def leave(*_):
    raise SystemExit("enough")


def test_exit_while_reading_a_response_ends_the_exchange_normally(loop, ends):
    """There may be much to be said yet, while the event loop ends."""
    wire, theirs = ends
    theirs.sendall(framed(b"answer"))
    asking = loop.create_task(wire.exchange(b"question", 10, leave))
    with pytest.raises(SystemExit, match="enough"):
        loop.run_until_complete(asking)

    assert loop.run_until_complete(asking) is None


def test_exit_after_a_cancelled_exchange_ends_the_loop(loop, ends):
    wire, theirs = ends

    def read(frame):
        asking.cancel()
        leave()

    theirs.sendall(framed(b"answer"))
    asking = loop.create_task(wire.exchange(b"question", 10, read))
    with pytest.raises(SystemExit, match="enough"):
        loop.run_until_complete(asking)

    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(asking)


def test_exit_leaves_further_responses_readable(loop, ends):
    wire, theirs = ends
    long = framed(b"x" * (1 << 20))
    onward = NextFrame(b"second", 10, on_partial=lambda: NextFrame(b"third", 10))
    reads = iter([lambda _: onward, leave, bytes])
    theirs.sendall(framed(b"no 1"))
    asking = loop.create_task(
        wire.exchange(b"first", 10, lambda frame: next(reads)(frame))
    )
    while wire.on_partial is None:
        loop.run_until_complete(asyncio.sleep(0.001))
    sending = loop.run_in_executor(None, theirs.sendall, long[: len(long) // 2])
    loop.run_until_complete(sending)
    while wire.expected < 2:
        loop.run_until_complete(asyncio.sleep(0.001))
    rest = long[len(long) // 2 :] + framed(b"no 3")
    sending = loop.run_in_executor(None, theirs.sendall, rest)
    with pytest.raises(SystemExit, match="enough"):
        loop.run_until_complete(asking)

    limited = asyncio.wait_for(asking, 5)
    assert b"no 3" == loop.run_until_complete(limited)
    loop.run_until_complete(sending)


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
    """As what is left of tasks is, when an interpreter ends."""
    waiting = wait_and_end(waiter, FOREVER)
    waiting.send(None)
    assert waiter.is_waiting

    waiting.close()

    assert not waiter.is_waiting
