"""Processes the records of a consumer with many handlers at a time.

`scheduler`, `renewals`, `window` and `retry_policy` decide; this runs the handlers, and
carries their outcomes out. Each record that is taken has one of these ends: accepted,
rejected, released, written to the dead-letter queue and then accepted, or lost with its
lock. Cancelling the worker at any time releases the records that are not settled.
"""

import inspect
import random
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, Generic, cast

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from sharecons._record import TopicPartition
from sharecons.config.validation import check_count, check_number
from sharecons.consumer.share_consumer import ShareConsumer
from sharecons.errors import (
    ClosedError,
    ConfigurationError,
    DeserializationError,
    Error,
    LockLostError,
    RecordStateError,
    UnsupportedVersionError,
)
from sharecons.log import get_logger
from sharecons.net.broker_pool import BrokerPool
from sharecons.net.io.event_loop import FOREVER, AutoResetEvent, running_clock
from sharecons.net.producer import IdempotentProducer
from sharecons.record import KeyT, Record, ValueT
from sharecons.worker.dead_letters import DeadLetterQueue, write_dead_letter
from sharecons.worker.outcomes import (
    Accepted,
    DeadLettered,
    Outcome,
    Rejected,
    RetryAfter,
)
from sharecons.worker.renewals import RenewalSchedule
from sharecons.worker.retry_policy import DAY, RetryPolicy
from sharecons.worker.scheduler import Scheduler, WorkItem
from sharecons.worker.window import WindowTracker

__all__ = ["ShareWorker"]

MIB: Final = 1 << 20
POLL_TIMEOUT: Final = 1.0
WATCH_INTERVAL: Final = 0.5
"""Seconds between two looks for locks that were lost with their session."""

RETRY_WRITE_AFTER: Final = 1.0
"""Seconds until a dead letter that could not be written is written again."""

Handler = Callable[[Record[KeyT, ValueT]], Awaitable[object]]


class ShareWorker(Generic[KeyT, ValueT]):
    """Calls a handler for each record of a share group.

    A record is accepted when its handler returns. If it raises, the retry policy
    decides: the record waits, still locked, for its next attempt, or it is given up: it
    is written to the dead-letter queue, or rejected without one.

    Args:
        consumer: a consumer that is not started; the worker starts and closes it, and
            acknowledges its records.
        handler: a function with a record as its argument: a coroutine function, or a
            plain function, which runs in a thread and cannot be cancelled.
        concurrency: how many handlers run at a time.
        max_bytes: no more records are taken while those held have as many bytes.
        retry: how often, and after which delays, a failed record is tried again.
        dead_letter: where records are written that are given up. The consumer must
            not have deserializers then, as a dead letter has the original bytes.
        key_order: process records with one key one after the other. This holds in this
            worker only: other members of the group may process records with the same
            key at the same time.
        max_lease: seconds for which the lock of a record is renewed.
        shutdown_grace: seconds for handlers to finish when the worker stops.

    Raises:
        ConfigurationError: an argument is invalid.
    """

    def __init__(
        self,
        consumer: ShareConsumer[KeyT, ValueT],
        handler: Handler[KeyT, ValueT] | Callable[[Record[KeyT, ValueT]], object],
        *,
        concurrency: int = 10,
        max_bytes: int = 64 * MIB,
        retry: RetryPolicy | None = None,
        dead_letter: DeadLetterQueue | None = None,
        key_order: bool = False,
        max_lease: float = DAY,
        shutdown_grace: float = 30.0,
    ) -> None:
        check_count("concurrency", concurrency, 1)
        check_count("max_bytes", max_bytes, 1)
        check_number("max_lease", max_lease, 0.0, 365 * DAY)
        check_number("shutdown_grace", shutdown_grace, 0.0, DAY)
        if not callable(handler):
            raise ConfigurationError(f"handler must be callable, not {handler!r}")
        if dead_letter is not None and consumer._deserializers:
            raise ConfigurationError(
                "dead_letter needs keys and values as bytes: deserialize in the "
                "handler instead of by the consumer's deserializers"
            )
        self.consumer = consumer
        self._handler = _as_coroutine_function(handler, concurrency)
        self._retry = retry if retry is not None else RetryPolicy()
        self._dead_letter = dead_letter
        self._key_order = key_order
        self._grace = shutdown_grace
        self._scheduler = Scheduler(concurrency=concurrency, max_bytes=max_bytes)
        self._renewals = RenewalSchedule(max_lease)
        self._window = WindowTracker()
        self._scopes: dict[WorkItem, anyio.CancelScope] = {}
        self._wakeup = AutoResetEvent()
        self._lock_check = AutoResetEvent()
        self._room = AutoResetEvent()
        self._stopping = False
        self._failure: Error | None = None
        self._log = get_logger(__name__, group=consumer.group_id)

    async def run(self) -> None:
        """Process records until `stop` is called, or this is cancelled."""
        self._clock = running_clock()
        self.consumer._implicit = False
        async with self.consumer, BrokerPool(self.consumer._cluster) as brokers:
            self._producer = IdempotentProducer(brokers)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._producer.run)
                tasks.start_soon(self._keep_locks)
                tasks.start_soon(self._take_records)
                async with anyio.create_task_group() as handlers:
                    await self._start_handlers(handlers)
                    self._release(self._scheduler.stop())
                    handlers.cancel_scope.deadline = self._clock() + self._grace
                self._release(self._scheduler.held)
                tasks.cancel_scope.cancel()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Take no more records; `run` returns when the handlers have finished."""
        self._stopping = True
        self._wakeup.set()

    async def _start_handlers(self, handlers: TaskGroup) -> None:
        scheduler = self._scheduler
        while not self._stopping:
            while (item := scheduler.start_next(self._clock())) is not None:
                handlers.start_soon(self._handle, item)
            self._room.set()
            await self._wakeup.wait_until(scheduler.next_due())

    async def _take_records(self) -> None:
        while not self._stopping:
            count = self._scheduler.capacity(self._clock())
            if not count:
                await self._room.wait_until(FOREVER)
                continue
            try:
                for record in await self.consumer.poll(
                    timeout=POLL_TIMEOUT, max_records=count
                ):
                    self._add(record)
            except DeserializationError as error:
                self._log.warning("record rejected", reason=str(error))
                self._acknowledge(error.record, error.record.reject)
            except Error as error:
                self._failure = error
                self.stop()

    def _add(self, record: Any) -> None:
        now = self._clock()
        lane = record.key if self._key_order and record.key is not None else None
        item = WorkItem(
            record, _size_of(record), lane=lane, attempt=record.delivery_count
        )
        self._scheduler.add(item)
        deadline = record.lock_deadline
        self._renewals.add(item, deadline=deadline, duration=deadline - now, now=now)
        self._window.on_delivered(_partition_of(record), record.offset, now)
        self._lock_check.set()
        self._wakeup.set()

    # Handlers.

    async def _handle(self, item: WorkItem) -> None:
        outcome: Outcome | None = None
        with anyio.CancelScope() as scope:
            self._scopes[item] = scope
            try:
                await self._handler(item.record)
                outcome = Accepted()
            except Exception as error:  # noqa: BLE001 (the policy decides about it)
                outcome = self._retry.decide(
                    error,
                    attempt=item.attempt,
                    chance=random.random(),
                    has_dead_letter_queue=self._dead_letter is not None,
                )
            finally:
                del self._scopes[item]
        if outcome is not None and not item.is_done:
            await self._settle(item, outcome)
        self._wakeup.set()

    async def _settle(self, item: WorkItem, outcome: Outcome) -> None:
        record = item.record
        match outcome:
            case Accepted():
                self._end(item, record.accept)
            case Rejected(reason, _):
                self._log.warning("record rejected", **_place(record), reason=reason)
                self._end(item, record.reject)
            case RetryAfter(seconds, _):
                self._wait(item, seconds)
            case DeadLettered():
                self._scheduler.close(item)
                await self._write_dead_letter(item, outcome)

    def _wait(self, item: WorkItem, seconds: float) -> None:
        record, now = item.record, self._clock()
        where = _partition_of(record)
        if self._window.can_wait(where, record.offset, seconds, now):
            self._scheduler.retry(item, now + seconds)
        else:
            self._log.warning(
                "record released: waiting would stall its partition", **_place(record)
            )
            self._end(item, record.release)

    async def _write_dead_letter(self, item: WorkItem, outcome: DeadLettered) -> None:
        assert self._dead_letter is not None, "decided by the policy"
        record = item.record
        while not item.is_done:
            try:
                await write_dead_letter(
                    self._producer,
                    self._dead_letter,
                    record,
                    outcome,
                    group=self.consumer.group_id,
                    attempts=item.attempt,
                )
            except ClosedError:
                return
            except Error as error:
                self._log.warning(
                    "dead letter not written", **_place(record), error=str(error)
                )
                await anyio.sleep(RETRY_WRITE_AFTER)
            else:
                self._log.warning(
                    "record dead-lettered", **_place(record), reason=outcome.reason
                )
                self._end(item, record.accept)
                return

    def _end(self, item: WorkItem, acknowledge: Callable[[], None]) -> None:
        """Acknowledge a record and forget it."""
        self._forget(item)
        self._acknowledge(item.record, acknowledge)

    def _acknowledge(self, record: Any, acknowledge: Callable[[], None]) -> None:
        """Call a verb of the record; log it if the lock is lost or the worker closes.

        The record is then delivered again.
        """
        try:
            acknowledge()
        except (LockLostError, RecordStateError, ClosedError) as error:
            self._log.warning(
                "acknowledgement failed", **_place(record), error=str(error)
            )

    def _forget(self, item: WorkItem) -> None:
        self._scheduler.remove(item)
        self._renewals.remove(item)
        self._window.on_done(_partition_of(item.record), item.record.offset)
        self._wakeup.set()

    def _release(self, items: Iterable[WorkItem]) -> None:
        for item in items:
            self._end(item, item.record.release)

    # Locks.

    async def _keep_locks(self) -> None:
        """Renew locks, and cancel the handlers of those that are lost."""
        watch_at = self._clock() + WATCH_INTERVAL
        while True:
            await self._lock_check.wait_until(
                min(self._renewals.next_check(), watch_at)
            )
            now = self._clock()
            due = self._renewals.take_due(now, _deadline_of)
            for item in due.renew:
                self._renew(item)
            for item in due.lost:
                self._lose(item)
            if now >= watch_at:
                watch_at = now + WATCH_INTERVAL
                for item in self._scheduler.held:
                    if not item.record.held:
                        self._lose(item)

    def _renew(self, item: WorkItem) -> None:
        record = item.record
        try:
            record.renew()
        except UnsupportedVersionError as error:
            if self._renewals.stop_renewing():
                self._log.warning("locks are not renewed", reason=str(error))
        except (LockLostError, RecordStateError, ClosedError):
            self._lose(item)

    def _lose(self, item: WorkItem) -> None:
        """Cancel the handler of a record whose lock is lost; acknowledge nothing."""
        if item.is_done:
            return
        self._log.warning("lock lost", **_place(item.record))
        self._forget(item)
        scope = self._scopes.get(item)
        if scope is not None:
            scope.cancel()


def _deadline_of(item: WorkItem) -> float:
    deadline: float = item.record.lock_deadline
    return deadline


def _partition_of(record: Any) -> TopicPartition:
    return TopicPartition(record.topic, record.partition)


def _place(record: Any) -> dict[str, Any]:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "delivery_count": record.delivery_count,
    }


def _size_of(record: Any) -> int:
    size = sum(len(part) for part in (record.key, record.value) if _is_bytes(part))
    return size + sum(len(name) + len(value or b"") for name, value in record.headers)


def _is_bytes(value: object) -> bool:
    return isinstance(value, bytes)


def _as_coroutine_function(
    handler: Callable[[Any], object], concurrency: int
) -> Handler[Any, Any]:
    """Return the handler, or a coroutine function that calls it in a thread."""
    call = getattr(handler, "__call__", None)  # noqa: B004 (of an object)
    if inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(call):
        return cast("Handler[Any, Any]", handler)
    limiter = anyio.CapacityLimiter(concurrency)

    async def call_in_thread(record: Record[Any, Any]) -> object:
        return await to_thread.run_sync(handler, record, limiter=limiter)

    return call_in_thread
