"""Compiled modules: they define no coroutines, and waits can be cancelled."""

import ast
import asyncio
import tomllib
from pathlib import Path

import anyio
import pytest

from sharecons.consumer.iterators import RecordIterator
from sharecons.consumer.receive import BatchIterator
from sharecons.net.io.event_loop import FOREVER, AutoResetEvent, new_waiter
from tests.consumer.test_delivery_queue import Bench
from tests.net.waits import wait_and_end

ROOT = Path(__file__).parent.parent
HOOKS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
MODULES = HOOKS["targets"]["wheel"]["hooks"]["custom"]["modules"]


def coroutines(tree):
    """Return the first line of each coroutine, or function that delegates to one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncFunctionDef | ast.YieldFrom):
            yield node.lineno


@pytest.mark.parametrize("module", MODULES)
def test_compiled_module_defines_no_coroutine(module):
    """Since Python 3.12, cancelling a compiled one raises a DeprecationWarning."""
    tree = ast.parse((ROOT / module).read_text())

    assert [] == list(coroutines(tree))


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (1, "async def f():\n  await g()"),
        (2, "class C:\n  async def f(self):\n    yield"),
        (2, "def f():\n  yield from g()"),
    ],
)
def test_coroutine_is_found(line, code):
    assert [line] == list(coroutines(ast.parse(code)))


# Warnings are errors in this project's tests.


async def next_record():
    bench = Bench(new_waiter=new_waiter)
    loop = RecordIterator(bench.deliveries, lambda: None)
    await anext(loop)


async def next_of_a_batch_loop():
    bench = Bench(new_waiter=new_waiter)
    loop = BatchIterator(bench.deliveries)
    await anext(loop)


async def poll():
    await Bench(new_waiter=new_waiter).poller.poll(FOREVER, None)


async def wait_for_event():
    await AutoResetEvent().wait_until(FOREVER)


async def wait_for_event_with_a_deadline():
    await AutoResetEvent().wait_until(anyio.current_time() + 3600)


async def wake():
    await wait_and_end(new_waiter(), FOREVER)


WAITS = (
    next_record,
    next_of_a_batch_loop,
    poll,
    wait_for_event,
    wait_for_event_with_a_deadline,
    wake,
)


@pytest.mark.anyio
@pytest.mark.parametrize("wait", WAITS)
async def test_cancelled_wait_ends_without_a_warning(wait):
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()

    assert tasks.cancel_scope.cancelled_caught


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("wait", WAITS)
async def test_cancelled_task_ends_without_a_warning(wait):
    task = asyncio.create_task(wait())
    await anyio.wait_all_tasks_blocked()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
