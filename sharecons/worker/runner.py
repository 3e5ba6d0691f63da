"""One run of a worker: takes records, calls handlers, and stops.

Each record that is taken has one of these ends: accepted, rejected, released, written
to a retry topic or the dead-letter queue and then accepted, or lost with its lock.
Cancelling a run at any time releases the records that are not settled.
"""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup

from sharecons.consumer.share_consumer import ShareConsumer
from sharecons.consumer.worker_access import WorkerAccess
from sharecons.errors import DeserializationError, Error
from sharecons.log import get_logger
from sharecons.net.io.event_loop import FOREVER, AutoResetEvent, running_clock
from sharecons.net.producer import IdempotentProducer
from sharecons.worker.dead_letters import DeadLetterQueue
from sharecons.worker.handlers import HandlerCall
from sharecons.worker.hooks import HookRunner
from sharecons.worker.intake import new_item
from sharecons.worker.locks import LockKeeper
from sharecons.worker.outcomes import (
    Accepted,
    HandlerDecision,
    LockLost,
    Outcome,
    Released,
    RetryAfter,
)
from sharecons.worker.patrol import Patrol
from sharecons.worker.placement import (
    BatchGate,
    Undeserializable,
    place_retry,
    undeserializable_outcome,
)
from sharecons.worker.renewals import RenewalSchedule
from sharecons.worker.retry_policy import RetryPolicy
from sharecons.worker.retry_topics import RetryTopics
from sharecons.worker.scheduler import Scheduler, WorkItem
from sharecons.worker.settlement import Settlement, partition_of
from sharecons.worker.slots import CallSlots
from sharecons.worker.stats import Counts, WorkerStats
from sharecons.worker.taking import Taker
from sharecons.worker.window import WindowTracker

__all__ = ["Runner", "WorkerOptions"]

RENEWALS: Final = "share.renew.acknowledge.enable"
WINDOW: Final = "share.partition.max.record.locks"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """The options of `ShareWorker`."""

    concurrency: int
    max_bytes: int
    retry: RetryPolicy
    retry_topics: RetryTopics
    dead_letter: DeadLetterQueue | None
    undeserializable: Undeserializable
    key_order: bool
    max_lease: float
    shutdown_grace: float
    stop_on_error: bool


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
        self._locks = LockKeeper(self._scheduler, renewals, self._clock, self._lose)
        self._settlement = Settlement(
            producer,
            options.dead_letter,
            group=consumer.group_id,
            clock=self._clock,
            scheduler=self._scheduler,
            renewals=renewals,
            window=self._window,
            counts=self._counts,
            on_changed=self._wake,
        )
        self._patrol = Patrol(
            self._scheduler,
            self._window,
            self._clock,
            lambda: consumer.assignment,
            lambda: self._locks.renews,
            self._replace,
        )
        self._taker = Taker(
            consumer,
            access,
            self._scheduler,
            self._clock,
            add=self._add_all,
            renews=lambda: self._locks.renews,
            on_fatal_error=self._on_fatal_error,
        )
        self._slots = CallSlots(
            options.concurrency,
            self._clock,
            self._next_items,
            self._call,
            self._wake,
        )
        self._stop_requested = anyio.Event()
        self._drained = False
        self._handlers: TaskGroup | None = None
        self._failure: Exception | None = None
        self.handler_failed = False
        self._log = get_logger(__name__, group=consumer.group_id)

    @property
    def stats(self) -> WorkerStats:
        """The present counts."""
        return WorkerStats(
            held=self._scheduler.held_count,
            running=self._scheduler.running,
            waiting=self._scheduler.waiting_count,
            **self._counts.as_dict(),
        )

    async def run(self) -> Exception | None:
        """Process records until `stop` is called.

        Return the error that ended the consumer, or what a handler raised with the
        option `stop_on_error`.
        """
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._locks.run)
            tasks.start_soon(self._taker.run)
            tasks.start_soon(self._patrol.run)
            tasks.start_soon(self._wait_for_stop)
            tasks.start_soon(self._read_group_configs)
            async with anyio.create_task_group() as handlers:
                self._handlers = handlers
                await self._start_calls(handlers)
            for item in self._scheduler.held:
                self._settlement.release(item)
            tasks.cancel_scope.cancel()
        return self._failure

    def stop(self) -> None:
        """Fetch no more; process what was fetched, within the grace period."""
        self._stop_requested.set()

    def stop_now(self) -> None:
        """Cancel the handlers, and stop."""
        self._stop_requested.set()
        if self._handlers is not None:
            self._handlers.cancel_scope.cancel()

    # Stopping.

    @property
    def _is_stopping(self) -> bool:
        return self._stop_requested.is_set()

    async def _wait_for_stop(self) -> None:
        await self._stop_requested.wait()
        assert self._handlers is not None, "started before"
        scope = self._handlers.cancel_scope
        scope.deadline = min(
            scope.deadline, self._clock() + self._options.shutdown_grace
        )
        self._replace_waiting()
        self._wake()
        await self._access.drain()
        self._drained = True
        self._wake()

    async def _read_group_configs(self) -> None:
        if await self._access.read_group_config(RENEWALS) == "false":
            self._locks.stop_renewing(f"the group has {RENEWALS}=false")
        window = await self._access.read_group_config(WINDOW)
        if window is not None and window.isdigit():
            self._window.window = max(1, int(window))

    # Records.

    def _on_fatal_error(self, error: Error) -> None:
        self._failure = error
        self.stop_now()

    def _add_all(self, records: Sequence[Any]) -> None:
        if any(record.delivery_count > 1 for record in records):
            # An earlier delivery could still be held: its handler is cancelled first.
            self._locks.find_lost()
        now, wall_clock = self._clock(), time.time()
        for record in records:
            item = new_item(
                record,
                self._options.retry_topics,
                key_order=self._options.key_order,
                now=now,
                wall_clock=wall_clock,
            )
            self._scheduler.add(item)
            self._locks.add(item)
            self._window.on_delivered(partition_of(record), record.offset, now)
        if self._is_stopping:
            self._replace_waiting()
        self._wake()

    # Calling handlers.

    async def _start_calls(self, handlers: TaskGroup) -> None:
        while not (self._is_stopping and self._drained):
            self._slots.start_calls(handlers)
            self._taker.room.set()
            due = min(self._scheduler.next_due(), self._gate.next_due())
            # A slot that ends a call takes what is due by itself.
            await self._wakeup.wait_until(FOREVER if self._slots.are_busy else due)
        self._slots.end()

    def _next_items(self) -> list[WorkItem]:
        """Return the records of the next call; an empty list if none can start."""
        now = self._clock()
        scheduler = self._scheduler
        ready = scheduler.ready_count(now)
        if not (self._gate.is_open(ready, now) or (ready and self._is_stopping)):
            return []
        self._gate.on_started()
        items: list[WorkItem] = []
        while len(items) < self._handler.max_records:
            item = scheduler.start_next(now)
            if item is None:
                break
            items.append(item)
        return items

    async def _call(self, items: Sequence[WorkItem]) -> None:
        if self._access.deserializers:
            items = [item for item in items if self._deserialize(item)]
        if not items:
            return
        for item in items if self._hooks else ():
            self._hooks.before(item.argument, item.attempt)
        started = self._clock()
        errors = await self._handler([item.argument for item in items])
        seconds = self._clock() - started
        self._taker.pace.on_call_ended(seconds)
        for item, error in zip(items, errors, strict=True):
            if not item.is_done:  # it is if its lock was lost
                self._on_result(item, error, seconds)

    def _deserialize(self, item: WorkItem) -> bool:
        """Deserialize a record before its first call; settle it if that fails."""
        if item.argument is not item.record:
            return True
        try:
            item.argument = self._access.deserializers.apply(item.record)
        except DeserializationError as error:
            outcome = undeserializable_outcome(
                self._options.undeserializable,
                error,
                has_dead_letter_queue=self._options.dead_letter is not None,
            )
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
        item.error = error
        outcome = self._outcome_of(item, error)
        if not isinstance(error, HandlerDecision):
            self._counts.failed += 1
            self._hooks.on_failure(item.argument, error, outcome)
            if self._options.stop_on_error and self._failure is None:
                self._failure = error
                self.handler_failed = True
                self.stop()
        self._finish(item, outcome, seconds)

    def _outcome_of(self, item: WorkItem, error: Exception) -> Outcome:
        if self._options.stop_on_error and not isinstance(error, HandlerDecision):
            return Released("its handler raised", error)
        outcome = self._options.retry.decide(
            error,
            attempt=item.attempt,
            chance=random.random(),
            has_dead_letter_queue=self._options.dead_letter is not None,
        )
        if isinstance(outcome, RetryAfter):
            return self._place(item, outcome)
        return outcome

    def _place(self, item: WorkItem, outcome: RetryAfter) -> Outcome:
        record, delay = item.record, outcome.seconds
        keeps_lock = self._locks.renews or delay < record.lock_remaining
        return place_retry(
            outcome,
            can_wait=keeps_lock
            and self._window.can_wait(
                partition_of(record), record.offset, delay, self._clock()
            ),
            topics=self._options.retry_topics,
            key_order=item.lane is not None,
            stopping=self._is_stopping,
        )

    def _finish(self, item: WorkItem, outcome: Outcome, seconds: float) -> None:
        """Carry out an outcome; a copy is written in a task of its own."""
        if self._hooks:
            self._hooks.after(item.argument, outcome, seconds)
        if not self._settlement.settle(item, outcome):
            assert self._handlers is not None, "running"
            self._handlers.start_soon(self._settlement.copy, item, outcome)

    def _lose(self, item: WorkItem) -> None:
        """Cancel the handler of a record whose lock is lost; acknowledge nothing.

        The handler of a batch goes on while it has other records.
        """
        if item.is_done:
            return
        if item.slot is not None:
            self._hooks.after(item.argument, LockLost(), 0.0)
        self._settlement.settle(item, LockLost())
        if item.slot is not None:
            item.slot.on_lost(f"LockLost: {item.record!r}")

    def _replace_waiting(self) -> None:
        """Hold no records any longer: they would delay the end."""
        for item in self._scheduler.waiting:
            self._replace(item)

    def _replace(self, item: WorkItem) -> None:
        """Find another place for a record that waits and cannot go on waiting."""
        wait = max(0.0, item.due - self._clock())
        outcome = self._place(item, RetryAfter(wait, item.attempt, item.error))
        if not isinstance(outcome, RetryAfter):
            self._finish(item, outcome, 0.0)
