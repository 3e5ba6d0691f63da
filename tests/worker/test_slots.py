"""The tasks that call handlers."""

import asyncio
from collections.abc import Awaitable, Callable

import anyio
import pytest

from sharecons.net.io.event_loop import running_clock
from sharecons.worker.machine.item import Call, WorkItem
from sharecons.worker.slots import CallSlots
from tests.waiting import until
from tests.worker.working import on_asyncio

pytestmark = pytest.mark.anyio


class Calls:
    """Slots, the records they take next, and the records whose calls have ended."""

    def __init__(self, limit: int = 1) -> None:
        self.items: list[WorkItem] = []
        self.ended: list[int] = []
        self.slots = CallSlots(
            limit, running_clock(), self._next, self._call, lambda: None
        )

    def _next(self) -> Call | None:
        return next_call(self.items)

    async def _call(self, call: Call) -> None:
        (item,) = call.items
        await anyio.lowlevel.checkpoint()  # shorter than a slot's slice
        if item.size == LOST_AT_ITS_END:
            self.lose(item)
        self.ended.append(item.size)

    def lose(self, item: WorkItem) -> None:
        assert item.call is not None
        self.slots.cancel(item.call, "LockLost")


def next_call(items: list[WorkItem]) -> Call | None:
    """Return a call of the first item, which is removed."""
    if not items:
        return None
    item = items.pop(0)
    item.call = Call([item])
    return item.call


LOST_AT_ITS_END = 99


async def test_idle_slot_survives_the_lost_lock_of_its_last_record() -> None:
    calls = Calls()
    waiting, other = WorkItem("waiting", 1), WorkItem("other", 2)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            calls.items.append(waiting)
            calls.slots.start_calls(tasks)
            await until(lambda: calls.ended == [1])
            calls.lose(waiting)  # it waits for its next attempt
            await anyio.wait_all_tasks_blocked()
            calls.items.append(other)
            calls.slots.start_calls(tasks)
            await until(lambda: calls.ended == [1, 2])
            calls.slots.end()


async def test_lock_lost_as_the_call_ends_does_not_cancel_the_next_call() -> None:
    calls = Calls()
    calls.items += [WorkItem("lost", LOST_AT_ITS_END), WorkItem("next", 2)]
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            while 2 not in calls.ended:
                calls.slots.start_calls(tasks)
                await anyio.sleep(0.01)
            calls.slots.end()

    assert [LOST_AT_ITS_END, 2] == calls.ended


async def test_slot_of_a_lost_call_is_replaced() -> None:
    calls = Calls()
    lost, other = WorkItem("lost", 1), WorkItem("other", 2)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            calls.items.append(lost)
            calls.slots.start_calls(tasks)
            calls.lose(lost)
            calls.items.append(other)
            while 2 not in calls.ended:
                calls.slots.start_calls(tasks)
                await anyio.sleep(0.01)
            calls.slots.end()

    assert [2] == calls.ended


@on_asyncio
async def test_call_that_cancels_its_task_as_it_ends_does_not_cancel_the_next() -> None:
    numbers = iter(range(10))

    async def handle() -> None:
        if next(numbers) % 2:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
        else:
            await anyio.sleep(0.01)

    assert 5 == await started_slots(handle, limit=1)


@on_asyncio
@pytest.mark.parametrize("catches", [False, True])
async def test_call_that_cancels_its_task_as_it_is_cancelled_ends_only_its_slot(
    catches: bool,
) -> None:
    """A time limit of the handler passes in the moment in which its lock is lost."""
    items = [WorkItem("lost", 1), WorkItem("next", 2)]
    ended: list[int] = []

    async def make_call(call: Call) -> None:
        (item,) = call.items
        if item.size == 1:
            await be_cancelled_twice(slots, call, catches=catches)
        ended.append(item.size)

    slots = CallSlots(
        1, running_clock(), lambda: next_call(items), make_call, lambda: None
    )
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            while 2 not in ended:
                slots.start_calls(tasks)
                await anyio.sleep(0.01)
            slots.end()

    assert 2 in ended


async def be_cancelled_twice(slots: CallSlots, call: Call, *, catches: bool) -> None:
    task = asyncio.current_task()
    assert task is not None
    slots.cancel(call, "LockLost")
    if not catches:
        task.cancel()
    try:
        await anyio.sleep_forever()
    except asyncio.CancelledError:
        if not catches:
            raise
        task.cancel()  # and it returns without another await


async def started_slots(handle: Callable[[], Awaitable[object]], limit: int) -> int:
    """Call `handle` for ten records; return the number of slots that were started."""
    items = [WorkItem(number, 1) for number in range(10)]
    used: set[object] = set()
    ended = 0

    async def make_call(call: Call) -> None:
        nonlocal ended
        used.add(call.slot)
        await handle()
        ended += 1

    slots = CallSlots(
        limit,
        running_clock(),
        lambda: next_call(items),
        make_call,
        lambda: None,
    )
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            while ended < 10:
                slots.start_calls(tasks)
                await anyio.sleep(0.01)
            slots.end()
    return len(used)


async def test_handlers_that_never_wait_share_a_slot() -> None:
    async def handle() -> None:
        pass

    assert 1 == await started_slots(handle, limit=4)


async def test_call_that_waits_starts_calls_up_to_the_limit() -> None:
    running = max_running = 0

    async def handle() -> None:
        nonlocal running, max_running
        running += 1
        max_running = max(max_running, running)
        await anyio.sleep(0.05)
        running -= 1

    assert 4 == await started_slots(handle, limit=4)
    assert 4 == max_running


async def test_only_the_call_that_waits_lets_others_start() -> None:
    """The second handler waits; the first does not."""
    calls = 0

    async def handle() -> None:
        nonlocal calls
        calls += 1
        if calls > 1:
            await anyio.sleep(0.02)

    assert 3 == await started_slots(handle, limit=3)
