"""Starting and stopping a worker: `run`, `async with`, `stop`, and signals."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    nullcontext,
    suppress,
)
from types import TracebackType
from typing import Any, Self

import anyio

from sharecons.errors import ConsumerStateError, WrongThreadError
from sharecons.guard import raise_error
from sharecons.member.record_source import RecordSource
from sharecons.member.settings import MemberSettings
from sharecons.net.broker_pool import BrokerPool
from sharecons.net.io.event_loop import LoopGuard, call_soon_function, running_clock
from sharecons.producer.idempotent import IdempotentProducer
from sharecons.stop_signals import stop_on_signals
from sharecons.worker.health import WorkerHealth
from sharecons.worker.health_policy import HealthPolicy
from sharecons.worker.life_log import LifeLog
from sharecons.worker.machine.meters import Meters
from sharecons.worker.metrics import (
    WORKER_METRICS,
    MetricValues,
    Observed,
    WorkerMetricName,
    values_of,
)
from sharecons.worker.runner import Runner
from sharecons.worker.running_records import RunningRecords
from sharecons.worker.stats import WorkerStats

__all__ = ["WorkerLifecycle"]


class WorkerLifecycle(WorkerHealth, ABC):
    """Runs a worker once: in the caller's task, or beside an `async with` block.

    Args:
        settings: how copies are written, and topics checked, before and beside the
            source.

    Attributes:
        handle_signals: stop on SIGTERM and SIGINT. Can be set until the worker starts.
        running_records: has the records in calls, for a supervisor that outlives this
            process; or None. Can be set until the worker starts.
    """

    _brokers: BrokerPool

    def __init__(
        self,
        source: RecordSource,
        settings: MemberSettings,
        policy: HealthPolicy,
        *,
        handle_signals: bool,
        meters: Meters | None,
    ) -> None:
        super().__init__(source, policy)
        self._settings = settings
        self._meters = meters
        self.handle_signals = handle_signals
        self.running_records: RunningRecords | None = None
        self._runner: Runner | None = None
        self._is_started = False
        self._stop_requested = False
        self._loop_guard: LoopGuard | None = None
        self._call_soon: Callable[[Callable[[], object]], object] | None = None
        self._failure: Exception | None = None
        self._block: AbstractAsyncContextManager[None] | None = None

    # Implemented by the worker.

    @abstractmethod
    def _prepare(self) -> None:
        """Check what can be checked without I/O, before the worker starts."""

    @abstractmethod
    def _log_start(self, log: LifeLog) -> None:
        """Log that the worker starts."""

    @abstractmethod
    def _new_runner(self, producer: IdempotentProducer, log: LifeLog) -> Runner:
        """Return what processes the records, once the member has started."""

    # Starting.

    async def run(self) -> None:
        """Process records until `stop` is called or a signal arrives; call it once.

        Cancelling this releases the records that are not settled.

        Raises:
            ConfigurationError: the worker has no handler, or a config of the group or
                of a topic would lose records.
            Error: why the worker cannot start, or the error that ended it.
            ConsumerStateError: it was started before.
            Exception: a handler's exception, with `stop_on_error`.
        """
        self._begin()
        raise_error(await self._run(_do_nothing))

    async def __aenter__(self) -> Self:
        """Start the worker; it then runs beside the block, as with `run`.

        It has connected and checked its topics, and begins to join the group: its first
        partitions come about a second later (`assigned`). If it fails while the block
        runs, the block is cancelled, and `async with` raises the error. If it is
        stopped, by `stop` or by a signal, the block continues (`wait_stopped`).

        Leaving the block stops the worker, as `stop`, and waits for its end. Cancelling
        the block releases the records that are not settled.

        Raises as `run`.
        """
        self._begin()
        self._block = self._running()
        await self._block.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        assert self._block is not None, "entered"
        return await self._block.__aexit__(kind, error, traceback)

    @asynccontextmanager
    async def _running(self) -> AsyncIterator[None]:
        raised: BaseException | None = None
        try:
            async with anyio.create_task_group() as tasks:
                has_started = anyio.Event()
                tasks.start_soon(self._run_beside, has_started, tasks.cancel_scope)
                await has_started.wait()
                if self._failure is None:
                    try:
                        yield
                    except anyio.get_cancelled_exc_class():
                        raise
                    except BaseException as error:  # noqa: BLE001 (raised below)
                        # The task group would wrap it in a group.
                        raised = error
                if raised is None or isinstance(raised, Exception):
                    self.stop()
                else:
                    self.stop_now()
            if raised is not None:
                raise raised
            if self._failure is not None:
                raise self._failure
        finally:
            # These refer to this frame by their tracebacks.
            raised = self._failure = None

    async def _run_beside(
        self, has_started: anyio.Event, block: anyio.CancelScope
    ) -> None:
        """Run beside a block; cancel the block if the worker fails."""
        try:
            self._failure = await self._run(has_started.set)
            if self._failure is not None and has_started.is_set():
                block.cancel()
        finally:
            has_started.set()

    def _begin(self) -> None:
        if self._is_started:
            raise ConsumerStateError(
                "the worker was started before, and a worker runs once; create another "
                "ShareWorker"
            )
        self._prepare()
        self._is_started = True

    # One run.

    async def _run(self, on_started: Callable[[], None]) -> Exception | None:
        """Return what ended the run, so that task groups do not wrap it in a group."""
        signals = (
            stop_on_signals(self.group_id, self.stop, self.stop_now)
            if self.handle_signals
            else nullcontext()
        )
        self._loop_guard = LoopGuard("worker")
        self._call_soon = call_soon_function()
        failure: Exception | None = None
        log = LifeLog(self.group_id, running_clock())
        self._log_start(log)
        with signals:
            try:
                failure = await self._connect_and_run(on_started, log)
            except Exception as error:  # noqa: BLE001 (raised by the caller)
                failure = error
            finally:
                log.on_end(self.stats, failure)
                self._conditions.has_ended = True
                self._source_run.on_ended()
        try:
            return failure
        finally:
            failure = None  # its traceback refers to this frame

    async def _connect_and_run(
        self, on_started: Callable[[], None], log: LifeLog
    ) -> Exception | None:
        if self._stop_requested:
            return None
        async with BrokerPool(self._settings.cluster) as self._brokers:
            async with self._source_run.running() as has_started:
                if self._stop_requested or not has_started:
                    return None
                return await self._run_started(on_started, log)

    async def _run_started(
        self, on_started: Callable[[], None], log: LifeLog
    ) -> Exception | None:
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            producer = self._new_producer()
            self._runner = self._new_runner(producer, log)
            # Dead letters are written even if the run is cancelled.
            producing = anyio.CancelScope(shield=True)
            tasks.start_soon(_run_in, producing, producer)
            on_started()
            try:
                failure = await self._runner.run()
            finally:
                producing.cancel()
        return failure

    def _new_producer(self) -> IdempotentProducer:
        """Return what writes copies."""
        observer = self._settings.observe_copies()
        return IdempotentProducer(self._brokers, observer=observer)

    # Called by the source.

    def _on_locks_lost(self, reason: str) -> bool:
        return self._runner is not None and self._runner.on_locks_lost(reason)

    def _on_undelivered(self, records: Sequence[Any]) -> None:
        if self._runner is not None:
            self._runner.on_undelivered(records)

    # Stopping.

    def stop(self) -> None:
        """Fetch no more; `run` returns once the records fetched until now are settled.

        Before the worker has started, it takes no records, and `run` returns. Handlers
        have `shutdown_grace` seconds, then they are cancelled, and their records are
        released.

        Any code can call this: a handler, a signal handler, a callback of the event
        loop, or another thread.
        """
        self._in_event_loop(self._stop)

    def stop_now(self) -> None:
        """Cancel all handlers and release their records; `run` returns.

        It returns within a second, even if brokers do not respond. Any code can call
        this, as `stop`.
        """
        self._in_event_loop(self._stop_now)

    def _in_event_loop(self, stop: Callable[[], None]) -> None:
        if self._loop_guard is None or self._call_soon is None:
            stop()  # it does not run yet
            return
        try:
            self._loop_guard.check()
        except WrongThreadError:
            call = stop
        else:
            stop()
            call = _do_nothing  # in a signal handler, the loop can be waiting for I/O
        with suppress(RuntimeError):  # the event loop has ended
            self._call_soon(call)

    def _stop(self) -> None:
        self._stop_requested = self._conditions.is_stopping = True
        self._source_run.cancel_start()
        if self._runner is not None:
            self._runner.stop()

    def _stop_now(self) -> None:
        self._stop_requested = self._conditions.is_stopping = True
        self._source_run.cancel_start()
        self._source.shorten_close()
        if self._runner is not None:
            self._runner.stop_now()

    async def wait_stopped(self) -> None:
        """Wait until the worker has stopped and left its group, or has failed.

        Several tasks can wait, even before the worker starts. Cancelling this does not
        stop the worker.
        """
        await self._source_run.wait_until_ended()

    # Counts.

    @property
    def stats(self) -> WorkerStats:
        """The counts of what the worker has done, and of what it does now."""
        return WorkerStats() if self._runner is None else self._runner.stats

    def metrics(self) -> Mapping[WorkerMetricName, MetricValues]:
        """Return the current values of all metrics of the worker.

        By name, and then by the values of the labels: docs/metrics.md has the names,
        and `WORKER_METRICS` of `sharecons.worker.metrics` describes them. Any thread
        can call this, even before the start and after the end. With
        `collect_metrics=False` all are empty. `consumer_metrics` returns what a
        consumer counts.
        """
        if self._meters is None:
            return {name: {} for name in WORKER_METRICS}
        observed = Observed(
            self._meters,
            self._source.recorder,
            None if self._runner is None else self._runner.machine,
            self.stats.abandoned_threads,
        )
        return values_of(observed)

    @property
    def handler_failed(self) -> bool:
        """True if `run` raises what a handler raised (`stop_on_error`)."""
        return self._runner is not None and self._runner.handler_failed


async def _run_in(scope: anyio.CancelScope, producer: IdempotentProducer) -> None:
    with scope:
        await producer.run()


def _do_nothing() -> None:
    """Do nothing, where `run` waits for the end anyway, or to wake the event loop."""
