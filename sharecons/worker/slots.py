"""Tasks that call handlers, one call after another.

A worker has at most as many slots as its concurrency. An idle slot waits for the next
call instead of ending, because starting a task takes several times as long as waking
one. But a slot whose task a handler has left references to ends: a timer with one of
them would cancel the handler of a later record.
"""

import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextvars import copy_context
from typing import Any, Final, final

import anyio
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint

from sharecons.guard import is_a
from sharecons.net.io.event_loop import FOREVER, AutoResetEvent, Clock
from sharecons.worker.blocked_loop import LONG_STEP
from sharecons.worker.machine.item import Call, WorkItem
from sharecons.worker.running_records import RunningRecords
from sharecons.worker.self_cancel import SlotTask, undo_self_cancel

__all__ = ["CallSlot", "CallSlots"]

SLICE: Final = 0.005
"""Seconds for which a slot calls handlers that never wait, before others run."""


@final
class CallSlot:
    """One task.

    Attributes:
        call: the present call, or None.
        entry: its entry in the running records; 0 without them.
        scope: cancels the call, and with it the slot.
        wakeup: set when the slot has a new call, or must end.
    """

    __slots__ = ("call", "entry", "scope", "wakeup")

    def __init__(self, entry: int) -> None:
        self.call: Call | None = None
        self.entry = entry
        self.scope = anyio.CancelScope()
        self.wakeup = AutoResetEvent()


@final
class CallSlots:
    """The slots of a worker.

    Args:
        limit: how many there are at most.
        next_call: returns the next call, or None if no call can start.
        make_call: makes a call.
        on_free: is called when a slot is free, or has ended.

    Attributes:
        on_long_step: is called with the records of a call that did not await for
            LONG_STEP seconds or more, and with these seconds.
        running_records: has the records of the calls, for a supervisor.
    """

    def __init__(
        self,
        limit: int,
        clock: Clock,
        next_call: Callable[[], Call | None],
        make_call: Callable[[Call], Awaitable[None]],
        on_free: Callable[[], None],
    ) -> None:
        self._limit = limit
        self._clock = clock
        self._next_call = next_call
        self._make_call = make_call
        self._on_free = on_free
        self.on_long_step: Callable[[Sequence[WorkItem], float], None] | None = None
        self.running_records: RunningRecords | None = None
        self._slots: set[CallSlot] = set()
        self._tasks: TaskGroup | None = None
        self._idle: list[CallSlot] = []
        self._ended = False

    @property
    def are_busy(self) -> bool:
        """True if no call can start before another one ends."""
        return not self._idle and len(self._slots) >= self._limit

    @property
    def running(self) -> list[Call]:
        """The calls that have not ended, even if they were cancelled."""
        calls = [slot.call for slot in self._slots]
        return [call for call in calls if call is not None and call.is_running]

    def start_calls(self, tasks: TaskGroup) -> None:
        """Start a call, if one can start; once it waits, the others start.

        Handlers that never wait run one after the other in one slot. Waking a slot for
        each would take longer than a short handler.
        """
        self._tasks = tasks
        self._start_call()

    def _start_call(self) -> bool:
        if self.are_busy:
            return False
        call = self._next_call()
        if call is None:
            return False
        slot = self._idle.pop() if self._idle else self._new_slot()
        _assign(slot, call)
        slot.wakeup.set()
        return True

    def _on_wait(self) -> None:
        """Start all calls that can start now: one that has begun is waiting."""
        while self._start_call():
            pass

    def cancel(self, call: Call, reason: str) -> None:
        """Cancel a call, and with it its slot."""
        slot: CallSlot = call.slot
        # A lock can be lost in the moment in which its handler returns: then the slot
        # has another call already, or waits for one.
        if slot.call is call:
            slot.scope.cancel(reason=reason)

    def end(self) -> None:
        """End the idle slots."""
        self._ended = True
        while self._idle:
            self._idle.pop().wakeup.set()

    def _new_slot(self) -> CallSlot:
        assert self._tasks is not None, "calls have been started"
        running = self.running_records
        slot = CallSlot(0 if running is None else running.new_entry())
        self._slots.add(slot)
        self._tasks.start_soon(self._run, slot)
        return slot

    async def _run(self, slot: CallSlot) -> None:
        try:
            with slot.scope:
                await self._make_all_calls(slot)
            await checkpoint()
        except BaseException as error:
            # A handler can cancel its task as it ends, or while its slot is cancelled:
            # then the scope does not catch the cancellation.
            if await undo_self_cancel(error) is None:
                if is_a(error, anyio.get_cancelled_exc_class()):
                    error.__traceback__ = None  # a frame of anyio will refer to it
                raise
        finally:
            slot.call = None
            if self.running_records is not None:
                self.running_records.end_entry(slot.entry)
            self._slots.discard(slot)
            if slot in self._idle:
                self._idle.remove(slot)
            self._on_free()

    async def _make_all_calls(self, slot: CallSlot) -> None:
        task = SlotTask()
        while True:
            await slot.wakeup.wait_until(FOREVER)
            can_go_on = await self._make_calls(slot, task)
            if self._ended or not can_go_on:
                return
            self._idle.append(slot)
            self._on_free()

    async def _make_calls(self, slot: CallSlot, task: SlotTask) -> bool:
        """Make calls while there are some; return whether the slot can make others."""
        pause_at = self._clock() + SLICE
        running = self.running_records
        while (call := slot.call) is not None:
            if running is not None:
                running.write(slot.entry, call.items)
            await _InOwnContext(
                self._make_call(call), self._on_wait, call, self.on_long_step
            )
            if slot.scope.cancel_called or not task.is_clean:
                return False  # the next call would be cancelled
            if self._clock() >= pause_at:
                if running is not None:
                    running.clear(slot.entry)
                await checkpoint()
                pause_at = self._clock() + SLICE
            _assign(slot, self._next_call())
        if running is not None:  # once for many calls: the next one replaces the last
            running.clear(slot.entry)
        return True


def _assign(slot: CallSlot, call: Call | None) -> None:
    slot.call = call
    if call is not None:
        call.slot = slot


@final
class _InOwnContext:
    """Awaits a coroutine in a context of its own, as a task of its own would.

    Context variables that a handler sets do not reach the next call.

    Args:
        on_wait: is called when the coroutine waits for the first time.
        call: the call that it makes.
        on_long_step: see `CallSlots`.
    """

    def __init__(
        self,
        awaitable: Awaitable[None],
        on_wait: Callable[[], None],
        call: Call,
        on_long_step: Callable[[Sequence[WorkItem], float], None] | None,
    ) -> None:
        self._steps = awaitable.__await__()
        self._on_wait = on_wait
        self._call = call
        # A step can settle records, which the call has no longer afterwards.
        self._items = call.items
        self._on_long_step = on_long_step

    def __await__(self) -> Generator[Any, Any, None]:
        context = copy_context()
        send, throw = self._steps.send, self._steps.throw
        step: Callable[..., Any] = send
        argument: Any = None
        has_waited = False
        # uvloop's clock stands still during a step.
        clock = time.monotonic
        try:
            while True:
                began = clock()
                try:
                    yielded = context.run(step, argument)
                except StopIteration:
                    return
                finally:
                    argument = None  # as an exception, it refers to this frame
                    seconds = clock() - began
                    if seconds >= LONG_STEP and self._on_long_step is not None:
                        self._on_long_step(self._items, seconds)
                if not has_waited:
                    has_waited = True
                    self._on_wait()
                try:
                    step, argument = send, (yield yielded)
                except BaseException as error:  # noqa: BLE001 (thrown into the coroutine)
                    step, argument = throw, error
                    self._call.was_interrupted = True
                else:
                    # trio sends exceptions, as `outcome.Error`; asyncio sends None.
                    if argument is not None and hasattr(argument, "error"):
                        self._call.was_interrupted = True
        finally:
            self._items = []  # a traceback can refer to this frame
