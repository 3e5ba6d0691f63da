"""One run of a worker: takes records, calls handlers, and stops.

`sharecons.worker.machine` decides; this passes the events to it, and its actions to the
executor. Cancelling a run at any time releases the records that are not settled.
"""

import random
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint_if_cancelled

from sharecons.errors import DeserializationError, Error
from sharecons.log import get_logger
from sharecons.member.lock_keeper import LockKeeper
from sharecons.member.record_source import RecordSource
from sharecons.net.io.event_loop import FOREVER, AutoResetEvent, running_clock
from sharecons.producer.idempotent import IdempotentProducer
from sharecons.worker.blocked_loop import BlockedLoopLog
from sharecons.worker.conditions import WorkerConditions
from sharecons.worker.copy_writer import CopyWriter
from sharecons.worker.demand import demand_of
from sharecons.worker.executor import Executor
from sharecons.worker.failure_log import CopyLog, FailureLog
from sharecons.worker.failure_texts import FailureTexts, have_failed
from sharecons.worker.group_settings import GroupSettings
from sharecons.worker.handlers import Errors
from sharecons.worker.life_log import LifeLog
from sharecons.worker.machine.actions import OutcomeDecided
from sharecons.worker.machine.item import Call, WorkItem
from sharecons.worker.machine.meters import Meters
from sharecons.worker.machine.settings import HandlerSettings
from sharecons.worker.machine.worker_machine import WorkerMachine
from sharecons.worker.middleware_chain import MiddlewareChain
from sharecons.worker.outcome_events import OutcomeCallback
from sharecons.worker.routes import Routes
from sharecons.worker.running_records import RunningRecords
from sharecons.worker.settings import WorkerSettings
from sharecons.worker.shutdown import Shutdown
from sharecons.worker.slots import CallSlots
from sharecons.worker.standstills import FullQueues, LongCalls
from sharecons.worker.stats import WorkerStats
from sharecons.worker.take_loop import TakeLoop
from sharecons.worker.threads import thread_logs
from sharecons.worker.undelivered import UndeliveredRecords

__all__ = ["Runner"]

INTERVAL: Final = 1.0
"""Seconds between two looks at the records that wait."""

CONFIRM_TIMEOUT: Final = 5.0
"""Half of the time for which a record runs alone."""


class Runner:
    """The state of a running worker.

    Args:
        source: is started, and closed by the caller after `run`.
        producer: writes retries and dead letters; the caller runs it.

    Attributes:
        handler_failed: True if `run` returns what a handler raised.
        on_locks_lost, on_undelivered: the source calls these, see `SourceOptions`.
    """

    def __init__(
        self,
        source: RecordSource,
        producer: IdempotentProducer,
        options: WorkerSettings,
        routes: Routes,
        *,
        meters: Meters | None,
        running_records: RunningRecords | None,
        life_log: LifeLog,
        conditions: WorkerConditions,
    ) -> None:
        self._source = source
        outer = () if (observer := source.observer) is None else (observer.process,)
        middleware = (*outer, *options.middleware)
        self._life_log = life_log
        self._conditions = conditions
        self._routes = routes
        self._on_outcome = OutcomeCallback.of(options.on_outcome, source.group_id)
        self._meters = meters
        self._clock = clock = running_clock()
        self._log = get_logger(__name__, group=source.group_id)
        self._failures = FailureLog(self._log, clock)
        self._copy_log = CopyLog(self._log, clock)
        self._wakeup = AutoResetEvent()
        self._wake = self._wakeup.set
        self._machine = machine = WorkerMachine(
            routes.settings,
            concurrency=options.concurrency,
            max_bytes=options.max_held_bytes,
            chance=random.random,
            reports_outcomes=bool(middleware) or options.on_outcome is not None,
            meters=meters,
        )
        self._isolation = machine.scheduler.isolation
        self._texts = FailureTexts()
        self._middleware: MiddlewareChain | None = None
        if middleware:
            self._middleware = MiddlewareChain(
                middleware, machine.decisions, self._texts, clock
            )
        self._slots = CallSlots(
            options.concurrency, clock, self._next_call, self._call, self._wake
        )
        self._full = FullQueues(self._log, clock, routes.name_of)
        self._long_calls = LongCalls(
            self._log,
            clock,
            routes,
            machine.scheduler,
            stuck_after=conditions.policy.stuck_after,
            lock_duration=lambda: source.lock_duration,
            concurrency=options.concurrency,
        )
        self._blocked_loop = BlockedLoopLog(
            self._log, clock, routes.name_of, conditions.loop
        )
        self._slots.on_long_step = self._blocked_loop.on_long_step
        self._slots.running_records = running_records
        self._executor = Executor(
            machine,
            CopyWriter(producer, source.group_id, machine.decisions, observer),
            self._failures,
            self._copy_log,
            clock,
            acknowledge=source.acknowledge,
            cancel_call=self._slots.cancel,
            stop=self._on_handler_failed,
            on_changed=self._wake,
            on_outcome=self._on_outcome_decided,
        )
        self._execute = self._executor.execute
        self.on_undelivered = UndeliveredRecords(machine, self._execute, clock).add
        self._locks = LockKeeper(
            machine.scheduler,
            machine.renewals,
            clock,
            lambda items, reason: self._execute(machine.on_locks_lost(items, reason)),
            lambda item: self._execute(machine.on_held_too_long(item, clock())),
            group_id=source.group_id,
        )
        self.on_locks_lost = self._locks.on_locks_lost
        self._demand = demand_of(
            source, machine.scheduler, routes.settings, clock, self._locks.next_renewal
        )
        self._take_loop = TakeLoop(
            source,
            self._demand,
            add=self._on_taken,
            locks=self._locks,
            on_fatal_error=self._on_fatal_error,
        )
        self._settings = GroupSettings(
            source.configs, self._locks, machine.window, machine.decisions
        )
        self._shutdown = Shutdown(
            source,
            routes,
            machine,
            self._executor,
            self._settings,
            self._take_loop,
            clock,
            grace=options.shutdown_grace,
            wake=self._wake,
        )
        self._threads = thread_logs(routes.routes, self._log, clock, self._on_threads)
        self._failure: Exception | None = None
        self.handler_failed = False
        conditions.threads = lambda: (self._abandoned_threads, options.concurrency)

    @property
    def stats(self) -> WorkerStats:
        """The present counts."""
        scheduler = self._machine.scheduler
        return WorkerStats(
            held=scheduler.held_count,
            running=scheduler.running,
            waiting=scheduler.waiting_count,
            abandoned_threads=self._abandoned_threads,
            **self._machine.counts.as_dict(),
        )

    @property
    def machine(self) -> WorkerMachine:
        """The machine, for metrics."""
        return self._machine

    @property
    def _abandoned_threads(self) -> int:
        return sum(each.count for each in self._threads)

    async def run(self) -> Exception | None:
        """Process records until `stop` is called.

        Return the error that ended the consumer, or what a handler raised with the
        option `stop_on_error`.
        """
        try:
            async with anyio.create_task_group() as tasks:
                self._start_tasks(tasks)
                try:
                    await self._run_handlers()
                finally:
                    await self._shutdown.finish()
                tasks.cancel_scope.cancel()
        except anyio.get_cancelled_exc_class():
            self._source.shorten_close()
            raise
        finally:
            await self._executor.finish()  # records that were taken meanwhile
            await self._shutdown.take_rest()
            self._copy_log.on_unwritten(list(self._machine.copies))
            self._flush_logs(at_end=True)
        failure, self._failure = self._failure, None
        return failure

    async def _run_handlers(self) -> None:
        async with anyio.create_task_group() as handlers:
            self._shutdown.handlers = handlers.cancel_scope
            self._executor.tasks = handlers
            try:
                await self._start_calls(handlers)
            finally:
                self._executor.tasks = None

    def _start_tasks(self, tasks: TaskGroup) -> None:
        for run in (
            self._locks.run,
            self._run_checks,
            self._blocked_loop.run,
            self._shutdown.run,
        ):
            tasks.start_soon(run)
        # Nothing is taken before the delivery limit is known: it decides about records.
        tasks.start_soon(
            self._settings.follow, lambda: tasks.start_soon(self._take_loop.run)
        )

    def stop(self) -> None:
        """Fetch no more; process what was fetched, within the grace period."""
        self._conditions.is_stopping = True
        self._life_log.on_stop(self.stats, self._shutdown.grace)
        self._shutdown.stop()

    def stop_now(self) -> None:
        """Cancel the handlers, and stop."""
        self._conditions.is_stopping = True
        self._life_log.on_stop(self.stats, 0.0)
        self._shutdown.stop_now()

    # Errors and time.

    def _on_fatal_error(self, error: Error) -> None:
        if self._failure is None:
            self._failure = error
            self._log.error("the member has failed; the worker ends", error=str(error))
            self.stop_now()

    def _on_handler_failed(self, error: Exception) -> None:
        if self._failure is None:
            self._failure = error
            self.handler_failed = True
            self.stop()

    async def _run_checks(self) -> None:
        """Look at the records that wait, once a second."""
        while True:
            await anyio.sleep(INTERVAL)
            self._flush_logs()
            if (error := self._source.fatal_error) is not None:
                self._on_fatal_error(error)
            await self._executor.move_waiting()
            self._source.drop_lost()
            now = self._clock()
            self._execute(self._machine.on_assignment(self._source.assignment, now))
            held_up = self._machine.window.held_up(now)
            full = self._full.look(self._machine.scheduler.queues)
            long_calls = self._long_calls.look(self._slots.running)
            self._conditions.look(now, held_up, {**long_calls, **full})

    def _flush_logs(self, *, at_end: bool = False) -> None:
        self._failures.flush(at_end=at_end)
        self._copy_log.flush()
        if self._on_outcome is not None:
            self._on_outcome.flush(FOREVER if at_end else self._clock())
        for threads in self._threads:
            threads.flush(at_end=at_end)

    def _on_threads(self, settings: HandlerSettings, count: int) -> None:
        """Use fewer slots while threads of a handler's cancelled calls run."""
        self._machine.scheduler.queue_of(settings).unusable = count
        if (running := self._slots.running_records) is not None:
            threads = [route.call.threads for route in self._routes.routes]
            running.set_threads(
                call.argument for each in threads if each for call in each.abandoned
            )
        self._wake()

    # Records and their locks.

    def _on_taken(self, records: Sequence[Any]) -> None:
        now = self._clock()
        self._life_log.on_records(records)
        items = self._machine.new_items(records, now, time.time())
        for item in items:
            self._locks.add(item)
        if self._meters is not None:
            self._meters.on_taken(items, self._machine.decisions.delivery_limit)
        self._execute(self._machine.on_taken(items, now))

    # Calling handlers.

    async def _start_calls(self, handlers: TaskGroup) -> None:
        while not (self._shutdown.is_requested and self._shutdown.has_drained):
            self._slots.start_calls(handlers)
            self._take_loop.wake()
            # A slot that ends a call takes what is due by itself.
            due = FOREVER if self._slots.are_busy else self._machine.next_due()
            await self._wakeup.wait_until(due)
        self._slots.end()

    def _next_call(self) -> Call | None:
        return self._machine.next_call(self._clock())

    async def _call(self, call: Call) -> None:
        errors: Errors = ()
        chances: Mapping[WorkItem, float] | None = None
        try:
            if call is self._isolation.running:
                with suppress(Error):
                    await self._source.commit(CONFIRM_TIMEOUT)
            route = self._routes.of_settings(call.queue.settings)
            began = self._begin(call)
            if route.deserializers:
                if failed := route.deserialize(call.items):
                    await self._on_not_deserialized(call, failed)
                began = self._clock()
            if not call.items:
                return
            if self._middleware is None:
                errors = await route.call([item.argument for item in call.items])
            else:
                call.middleware = self._middleware.begin(route.call, call)
                errors = await call.middleware()
                chances = call.middleware.chances
            if call.was_interrupted and any(error is None for error in errors):
                # A handler that catches its cancellation has perhaps processed nothing.
                await checkpoint_if_cancelled()
            now = self._clock()
            seconds = now - began
            self._demand.on_call_ended(call, seconds)
            if have_failed(errors):
                await self._texts.make(call, errors)
                now = self._clock()
            self._execute(self._machine.on_results(call, errors, now, seconds, chances))
        finally:
            if call.middleware is not None:
                call.middleware.end()
            self._machine.on_call_ended(call)
            # Since Python 3.12, a frame of a traceback refers to the frames around it.
            errors, chances = (), None

    def _begin(self, call: Call) -> float:
        """Prepare the records of a call; return when it begins."""
        now = self._clock()
        if actions := self._machine.on_call_begins(call, now):
            self._execute(actions)
        return now

    async def _on_not_deserialized(
        self, call: Call, failed: list[tuple[WorkItem, DeserializationError]]
    ) -> None:
        """Settle the records that the handler is not called with."""
        try:
            await self._texts.make(call, [error for _, error in failed])
            now = self._clock()
            self._execute(self._machine.on_not_deserialized(call, failed, now))
        finally:
            failed.clear()  # tracebacks refer to frames that have it

    def _on_outcome_decided(self, decided: OutcomeDecided) -> None:
        call = decided.item.call
        if call is not None and call.is_running and call.middleware is not None:
            call.middleware.set_outcome(decided.item, decided.outcome)
        if self._on_outcome is not None:
            self._on_outcome.report(decided)
