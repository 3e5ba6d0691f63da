"""Carries out the actions of the worker's machine: the shell around it."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint

from sharecons.errors import ClosedError, Error, LockLostError, RecordStateError
from sharecons.net.io.event_loop import Clock
from sharecons.record import AcknowledgeType
from sharecons.worker.copy_writer import CopyWriter, is_too_large, topic_of
from sharecons.worker.failure_log import CopyLog, FailureLog
from sharecons.worker.machine.actions import (
    Acknowledge,
    Action,
    AttemptFailed,
    CancelCall,
    Copy,
    GivenUp,
    HandlersCancelled,
    LocksLost,
    OutcomeDecided,
    Stop,
    Warn,
)
from sharecons.worker.machine.item import Call, WorkItem
from sharecons.worker.machine.worker_machine import WorkerMachine
from sharecons.worker.outcomes import Moved

__all__ = ["Executor"]

AT_A_TIME: Final = 100
"""Records that are settled in one step before other tasks run."""

LAST_WRITES: Final = 5.0
"""Seconds at the end of a run to write dead letters of last deliveries."""


class Executor:
    """Carries out actions.

    Args:
        acknowledge: acknowledges a record.
        cancel_call: cancels a call, with a reason.
        stop: stops the worker because of an error.
        on_changed: is called after actions.
        on_outcome: is called for each `OutcomeDecided`.

    Attributes:
        tasks: where copies are written; set this before the first event. None once
            these tasks end: further copies are not started, and `finish` writes them.
    """

    tasks: TaskGroup | None

    def __init__(
        self,
        machine: WorkerMachine,
        writer: CopyWriter,
        failures: FailureLog,
        copy_log: CopyLog,
        clock: Clock,
        *,
        acknowledge: Callable[[Any, AcknowledgeType], None],
        cancel_call: Callable[[Call, str], None],
        stop: Callable[[Exception], None],
        on_changed: Callable[[], None],
        on_outcome: Callable[[OutcomeDecided], None],
    ) -> None:
        self._machine = machine
        self._writer = writer
        self._failures = failures
        self._copy_log = copy_log
        self._clock = clock
        self._acknowledge_record = acknowledge
        self._cancel_call = cancel_call
        self._stop = stop
        self._on_changed = on_changed
        self._on_outcome = on_outcome
        self._finish_by: float | None = None

    def execute(self, actions: Sequence[Action]) -> None:
        """Carry out the actions of an event, in order."""
        for action in actions:
            match action:
                case Acknowledge(item, kind):
                    self._acknowledge(item, kind)
                case Copy():
                    if self.tasks is not None:
                        self.tasks.start_soon(self._copy, action)
                case CancelCall(call, reason):
                    self._cancel_call(call, reason)
                case Stop(error):
                    self._stop(error)
                case _:
                    self._report(action)
        self._on_changed()

    async def move_waiting(self) -> None:
        """Move the records that cannot go on waiting."""
        await self._in_steps(
            lambda items: self._machine.on_time(items, self._clock()),
            self._machine.scheduler.waiting,
        )

    async def finish(self) -> None:
        """Release all records; write the dead letters of last deliveries.

        Cancelling this has no effect. It takes up to LAST_WRITES seconds, in all calls.
        """
        if self._finish_by is None:
            self._finish_by = self._clock() + LAST_WRITES
        with anyio.CancelScope(shield=True, deadline=self._finish_by):
            async with anyio.create_task_group() as tasks:
                self.tasks = tasks
                try:
                    self.execute(self._machine.end())
                    held = self._machine.scheduler.held
                    await self._in_steps(self._machine.release_held, held)
                finally:
                    self.tasks = None

    async def _in_steps(
        self,
        event: Callable[[Sequence[WorkItem]], Sequence[Action]],
        items: Sequence[WorkItem],
    ) -> None:
        """Carry out an event for many records; other tasks run in between."""
        for start in range(0, len(items), AT_A_TIME):
            self.execute(event(items[start : start + AT_A_TIME]))
            await checkpoint()

    def _report(self, action: Action) -> None:
        match action:
            case OutcomeDecided():
                self._on_outcome(action)
            case AttemptFailed():
                self._failures.on_failed_attempt(action)
            case GivenUp():
                self._failures.on_given_up(action)
            case LocksLost():
                self._failures.on_locks_lost(action)
            case HandlersCancelled(items):
                self._failures.on_handlers_cancelled(items)
            case Warn(event, fields):
                self._failures.warn(event, fields)

    def _acknowledge(self, item: WorkItem, kind: AcknowledgeType) -> None:
        try:
            self._acknowledge_record(item.record, kind)
        except (LockLostError, RecordStateError, ClosedError) as error:
            # The lock ended before its event arrived; the record is delivered again.
            self._failures.on_not_acknowledged(item, error)

    async def _copy(self, copy: Copy) -> None:
        if copy.after:
            await anyio.sleep(copy.after)
        # Its lock can be lost meanwhile: the next delivery has a copy of its own.
        if not self._machine.is_current(copy):
            return
        try:
            written = await self._writer.write(copy)
        except ClosedError:
            return
        except Error as error:
            self._on_copy_failed(copy, error)
        else:
            self._copy_log.on_written(topic_of(copy), copy.item)
            if isinstance(copy.outcome, Moved):
                self._copy_log.on_moved(copy.item, written)
            self.execute(self._machine.on_copied(copy, written))

    def _on_copy_failed(self, copy: Copy, error: Error) -> None:
        actions = self._machine.on_copy_failed(
            copy, self._clock(), is_too_large=is_too_large(error)
        )
        for action in actions:
            if isinstance(action, Copy) and action.after:
                self._copy_log.on_failure(topic_of(copy), error, copy.item)
        self.execute(actions)
