"""One run of a worker: takes records, calls handlers, and stops.

Each record that is taken has one of these ends: accepted, rejected, released, written
to a retry topic or the dead-letter queue and then accepted, or lost with its lock.
Cancelling a run at any time releases the records that are not settled.
"""

import random
import time
from collections.abc import Sequence
from typing import Any

import anyio
from anyio.abc import TaskGroup

from sharecons.consumer.share_consumer import ShareConsumer
from sharecons.consumer.worker_access import WorkerAccess
from sharecons.errors import DeserializationError, Error
from sharecons.log import get_logger
from sharecons.net.io.event_loop import FOREVER, AutoResetEvent, running_clock
from sharecons.net.producer import IdempotentProducer
from sharecons.worker.blocked_loop import BlockedLoopLog
from sharecons.worker.decisions import Decisions
from sharecons.worker.ending_calls import PAUSE, EndingCalls
from sharecons.worker.failure_log import FailureLog
from sharecons.worker.group_settings import GroupSettings
from sharecons.worker.handlers import HandlerCall
from sharecons.worker.hooks import HookRunner
from sharecons.worker.intake import new_item
from sharecons.worker.locks import LockKeeper
from sharecons.worker.machine.item import WorkItem
from sharecons.worker.machine.renewals import RenewalSchedule
from sharecons.worker.machine.scheduler import Scheduler
from sharecons.worker.machine.window import WindowTracker
from sharecons.worker.options import WorkerOptions
from sharecons.worker.outcomes import (
    Accepted,
    LockLost,
    RecordOutcome,
    Released,
    RetryAfter,
    decision_of,
)
from sharecons.worker.patrol import Patrol
from sharecons.worker.placement import STOPS, BatchGate
from sharecons.worker.positions import position
from sharecons.worker.settlement import Settlement
from sharecons.worker.shutdown import Shutdown
from sharecons.worker.slots import CallSlots
from sharecons.worker.stats import Counts, WorkerStats
from sharecons.worker.taking import Taker
from sharecons.worker.threads import ThreadLog

__all__ = ["Runner"]


class Runner:
    """The state of a running worker.

    Args:
        consumer: is started, and closed by the caller after `run`.
        producer: writes retries and dead letters; the caller runs it.

    Attributes:
        handler_failed: True if `run` returns what a handler raised.
    """

    def __init__(
        self,
        consumer: ShareConsumer[Any, Any],
        access: WorkerAccess,
        producer: IdempotentProducer,
        handler: HandlerCall,
        hooks: HookRunner,
        options: WorkerOptions,
    ) -> None:
        self._consumer = consumer
        self._access = access
        self._handler = handler
        self._hooks = hooks
        self._options = options
        self._clock = running_clock()
        self._counts = Counts()
        self._scheduler = Scheduler(
            concurrency=options.concurrency * handler.max_records,
            max_bytes=options.max_bytes,
        )
        self._gate = BatchGate(handler.max_records, handler.max_wait)
        self._window = WindowTracker()
        renewals = RenewalSchedule(options.max_lease)
        self._wakeup = AutoResetEvent()
        self._wake = self._wakeup.set
        self._locks = LockKeeper(
            self._scheduler, renewals, self._clock, self._lose, self._end_lease
        )
        self._decisions = Decisions(options, self._window, lambda: self._locks.renews)
        self._log = get_logger(__name__, group=consumer.group_id)
        self._failures = FailureLog(self._log, self._clock)
        self._settlement = Settlement(
            producer,
            options.dead_letter,
            self._decisions,
            group=consumer.group_id,
            clock=self._clock,
            scheduler=self._scheduler,
            renewals=renewals,
            window=self._window,
            counts=self._counts,
            failures=self._failures,
            on_changed=self._wake,
        )
        self._patrol = Patrol(
            self._scheduler,
            self._window,
            self._clock,
            lambda: consumer.assignment,
            lambda: self._locks.renews,
            self._replace,
            self._on_second,
        )
        self._taker = Taker(
            consumer,
            access,
            self._scheduler,
            self._clock,
            add=self._add_all,
            locks=self._locks,
            on_fatal_error=self._on_fatal_error,
        )
        self._slots = CallSlots(
            options.concurrency,
            self._clock,
            self._next_items,
            self._call,
            self._wake,
        )
        self._ending_calls = EndingCalls()
        self._blocked_loop = BlockedLoopLog(self._log, self._clock, handler.name)
        self._slots.on_long_step = self._blocked_loop.on_long_step
        self._settings = GroupSettings(
            access.configs, self._locks, self._window, self._decisions
        )
        self._shutdown = Shutdown(
            access,
            options,
            self._scheduler,
            self._decisions,
            self._settlement,
            self._settings,
            self._taker,
            self._clock,
            replace=self._replace,
            wake=self._wake,
        )
        self._failure: Exception | None = None
        self.handler_failed = False
        self._threads = ThreadLog(
            handler.threads, self._log, self._clock, self._on_threads
        )

    @property
    def stats(self) -> WorkerStats:
        """The present counts."""
        return WorkerStats(
            held=self._scheduler.held_count,
            running=self._scheduler.running,
            waiting=self._scheduler.waiting_count,
            abandoned_threads=self._threads.count,
            **self._counts.as_dict(),
        )

    async def run(self) -> Exception | None:
        """Process records until `stop` is called.

        Return the error that ended the consumer, or what a handler raised with the
        option `stop_on_error`.
        """
        try:
            async with anyio.create_task_group() as tasks:
                self._start_tasks(tasks)
                try:
                    async with anyio.create_task_group() as handlers:
                        self._shutdown.handlers = handlers.cancel_scope
                        self._settlement.tasks = handlers
                        try:
                            await self._start_calls(handlers)
                        finally:
                            self._settlement.tasks = None
                finally:
                    await self._shutdown.finish()
                tasks.cancel_scope.cancel()
        except anyio.get_cancelled_exc_class():
            self._access.hurry()
            raise
        finally:
            await self._settlement.finish()  # records that were taken meanwhile
            await self._shutdown.take_rest()
            self._settlement.report_unwritten()
            self._flush_logs(at_end=True)
        return self._failure

    def _start_tasks(self, tasks: TaskGroup) -> None:
        for run in (
            self._locks.run,
            self._patrol.run,
            self._blocked_loop.run,
            self._shutdown.run,
        ):
            tasks.start_soon(run)
        tasks.start_soon(
            self._settings.follow, lambda: tasks.start_soon(self._taker.run)
        )

    def stop(self) -> None:
        self._shutdown.stop()

    def stop_now(self) -> None:
        """Cancel the handlers, and stop."""
        self._shutdown.stop_now()

    # Records.

    def _on_fatal_error(self, error: Error) -> None:
        if self._failure is None:
            self._failure = error
            self._log.error(
                "the consumer has failed; the worker ends", error=str(error)
            )
            self.stop_now()

    def _on_second(self) -> None:
        """Called once a second."""
        self._flush_logs()
        self._ending_calls.forget_ended()
        if (error := self._access.fatal_error) is not None:
            self._on_fatal_error(error)

    def _flush_logs(self, *, at_end: bool = False) -> None:
        self._failures.flush(at_end=at_end)
        self._hooks.flush(FOREVER if at_end else self._clock())
        self._threads.flush(at_end=at_end)

    def _on_threads(self, count: int) -> None:
        """Use fewer slots while threads of cancelled calls run."""
        self._scheduler.unusable = count * self._handler.max_records
        self._wake()

    def _add_all(self, records: Sequence[Any]) -> None:
        if again := {position(each) for each in records if each.delivery_count > 1}:
            # An earlier delivery could still be held: its handler is cancelled first.
            held = self._scheduler.held
            self._lose([each for each in held if position(each.record) in again])
        now, wall_clock = self._clock(), time.time()
        for record in records:
            item = new_item(
                record,
                self._options.retry_topics,
                key_order=self._options.key_order,
                now=now,
                wall_clock=wall_clock,
                max_lease=self._options.max_lease,
            )
            self._scheduler.add(item)
            self._locks.add(item)
            self._window.add(item, now)
            if self._shutdown.has_ended:
                self._settlement.release(item, Released(STOPS))
            elif item.is_waiting and self._shutdown.is_requested:
                self._replace(item)
        self._wake()

    # Calling handlers.

    async def _start_calls(self, handlers: TaskGroup) -> None:
        while not (self._shutdown.is_requested and self._shutdown.has_drained):
            self._slots.start_calls(handlers)
            self._taker.room.set()
            due = min(self._scheduler.next_due(), self._gate.next_due())
            # A slot that ends a call takes what is due by itself.
            await self._wakeup.wait_until(FOREVER if self._slots.are_busy else due)
        self._slots.end()

    def _next_items(self) -> list[WorkItem]:
        """Return the records of the next call; an empty list if none can start."""
        now = self._clock()
        ready = self._scheduler.ready_count(now)
        if not (
            self._gate.is_open(ready, now) or (ready and self._shutdown.is_requested)
        ):
            return []
        self._gate.on_started()
        items: list[WorkItem] = []
        while len(items) < self._handler.max_records:
            item = self._scheduler.start_next(now)
            if item is None:
                break
            items.append(item)
        return items

    async def _call(self, items: Sequence[WorkItem]) -> None:
        # The lock of a record can be lost before its call begins.
        items = [item for item in items if item.is_running and self._is_processed(item)]
        if not items:
            return
        for item in items if self._hooks else ():
            self._hooks.before(item.argument, item.attempt)
        started = self._clock()
        errors = await self._handler([item.argument for item in items])
        seconds = self._clock() - started
        self._taker.pace.on_call_ended(seconds)
        for item, error in zip(items, errors, strict=True):
            if item.is_running:  # unless its lock was lost, or its lease has ended
                self._on_result(item, error, seconds)

    def _is_processed(self, item: WorkItem) -> bool:
        """Deserialize a record before its first call; settle one that has no call."""
        if self._ending_calls.has(item.record):
            self._scheduler.postpone(item, self._clock() + PAUSE)
            return False
        outcome = self._decisions.before_call(item)
        if outcome is not None:
            self._finish(item, outcome, 0.0)
            return False
        if item.argument is not item.record or not self._access.deserializers:
            return True
        try:
            item.argument = self._access.deserializers.apply(item.record)
        except DeserializationError as error:
            outcome = self._decisions.on_undeserializable(error)
            self._hooks.on_failure(item.argument, error, outcome)
            self._finish(item, outcome, 0.0)
            return False
        return True

    def _on_result(
        self, item: WorkItem, error: Exception | None, seconds: float
    ) -> None:
        if error is None:
            self._finish(item, Accepted(), seconds)
            return
        outcome = self._decisions.on_error(item, error, self._clock(), random.random())
        self._on_failure(item, error, outcome, seconds)

    def _on_failure(
        self, item: WorkItem, error: Exception, outcome: RecordOutcome, seconds: float
    ) -> None:
        item.error = error
        if decision_of(error) is None:
            self._counts.failed += 1
            self._failures.on_failed_attempt(item, error, outcome, seconds)
            self._hooks.on_failure(item.argument, error, outcome)
            if self._options.stop_on_error and self._failure is None:
                self._failure = error
                self.handler_failed = True
                self.stop()
        self._finish(item, outcome, seconds)

    def _finish(self, item: WorkItem, outcome: RecordOutcome, seconds: float) -> None:
        if self._hooks:
            self._hooks.after(item.argument, outcome, seconds)
        self._settlement.settle(item, outcome)

    def _lose(self, items: Sequence[WorkItem]) -> None:
        """Cancel the handlers of records whose locks are lost; acknowledge nothing.

        The handler of a batch goes on while it has other records.
        """
        lost = [item for item in items if not item.is_done]
        self._failures.on_locks_lost(lost)
        for item in lost:
            if self._hooks and item.slot is not None:
                self._hooks.after(item.argument, LockLost(), 0.0)
            self._settlement.settle(item, LockLost())
            self._cancel_call(item, "LockLost")

    def _end_lease(self, item: WorkItem) -> None:
        """End the work on a record that is held too long, while its lock is held."""
        if item.has_outcome:
            return
        now = self._clock()
        item.lease_end = now  # records that arrived together have the first one's end
        if item.is_running:
            error = self._decisions.held_too_long()
            outcome = self._decisions.on_error(item, error, now, random.random())
            self._on_failure(item, error, outcome, self._options.max_lease)
            self._cancel_call(item, "max_lease has ended")
        else:
            self._finish(item, self._decisions.continue_wait(item, now), 0.0)

    def _cancel_call(self, item: WorkItem, reason: str) -> None:
        if item.slot is not None and item.is_in_call:
            self._ending_calls.add(item)
            item.slot.on_outcome(f"{reason}: {item.record!r}")

    def _replace(self, item: WorkItem) -> None:
        """Find another place for a record that waits and cannot go on waiting."""
        if item.is_waiting:
            outcome = self._decisions.continue_wait(item, self._clock())
            if not isinstance(outcome, RetryAfter):
                self._finish(item, outcome, 0.0)
