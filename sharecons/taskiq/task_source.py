"""Takes records for taskiq's receiver, keeps their locks, and acknowledges them.

Records are fetched only when the receiver requests a message, and no more than it
can run. With several brokers, each can return some, so a fetch can bring more. The
source takes them from the member's buffer immediately, so that their locks are renewed.

Each record that is taken has one of these ends: accepted by its message's `ack`,
released, rejected since it has no value, or lost with its lock. It is released if the
receiver stops before it takes the record, if the source closes, if the receiver fails,
and if the message is dropped: then nothing could acknowledge the record any more.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from anyio.abc import TaskGroup
from taskiq import AckableMessage

from sharecons.errors import (
    ClosedError,
    ConsumerStateError,
    Error,
    LockLostError,
    RecordsError,
    RecordStateError,
)
from sharecons.log import get_logger
from sharecons.member.lock_keeper import LockKeeper
from sharecons.member.settings import MemberSettings
from sharecons.member.share_source import ShareSource
from sharecons.member.source_options import SourceOptions
from sharecons.member.stored_error import StoredError
from sharecons.net.background import Background
from sharecons.net.io.event_loop import FOREVER, AutoResetEvent, running_clock
from sharecons.protocol.acknowledge.renewals import RenewalSchedule
from sharecons.taskiq.acknowledgement import Acknowledgement, Message
from sharecons.taskiq.held_tasks import (
    HeldTask,
    HeldTasks,
    ReceiverCapacity,
    TaskLease,
    place_of,
)
from sharecons.taskiq.isolation import Isolation, deliveries_left
from sharecons.taskiq.messages import delay_left

__all__ = ["TaskSource"]

POLL_TIMEOUT: Final = 1.0
CLOSE_TIMEOUT: Final = 10.0

CONFIRM_TIMEOUT: Final = 5.0
"""Seconds for earlier acknowledgements before a suspect starts, which takes a delivery
from each record that is not acknowledged."""

ALONE: Final = (
    "a task was delivered several times without an acknowledgement, and perhaps ends "
    "its process: it runs alone"
)


class TaskSource:
    """The member of one worker process.

    Args:
        settings: how the member connects, joins its group and fetches.
        max_lock_time: seconds for which the lock of a record is renewed.
        max_delay: seconds for which a delayed task is held at most.
        write_again: writes a record to its topic once more; raises an `Error`.
    """

    def __init__(
        self,
        settings: MemberSettings,
        topic: str,
        *,
        max_lock_time: float,
        max_delay: float,
        write_again: Callable[[Any], Awaitable[None]],
    ) -> None:
        self._write_again = write_again
        self._writing = 0
        self._max_delay = max_delay
        self._lease = TaskLease(max_lock_time)
        self._min_fetch = settings.fetch.max_records
        self._tasks = HeldTasks()
        self._capacity = ReceiverCapacity()
        self._isolation = Isolation()
        self._renewals = RenewalSchedule[HeldTask]()
        self._taking = False
        self._wanted = AutoResetEvent()
        self._source = ShareSource(
            SourceOptions(
                settings=settings,
                topics=(topic,),
                on_locks_lost=lambda reason: self._locks.on_locks_lost(reason),
                on_changed=self._wanted.set,
            )
        )
        self._arrived = AutoResetEvent()
        self._is_requested = False
        self._fetched_at = 0.0  # when all leaders have responded
        self._failure: StoredError | None = None
        self._background: Background | None = None
        self._log = get_logger(__name__, group=settings.fetch.group_id)

    async def start(self) -> None:
        """Join the group; raises as `ShareSource.start`."""
        self._clock = running_clock()
        self._loop = asyncio.get_running_loop()
        self._locks = LockKeeper(
            self._tasks,
            self._renewals,
            self._clock,
            self._lose,
            self._end_lease,
            group_id=self._source.group_id,
        )
        await self._source.start()
        # Nothing is fetched before the receiver requests a task.
        self._source.demand.up_to(self._min_fetch)
        self._background = Background(
            f"sharecons.taskiq, group {self._source.group_id!r}",
            self._start_tasks,
            self._on_ended,
            _do_nothing,
        )

    async def assigned(self) -> None:
        """Wait for partitions; raises as `ShareSource.assigned`."""
        await self._source.assigned()

    async def aclose(self) -> None:
        """Release the records that are not acknowledged, and leave the group."""
        self.stop_taking()
        if self._background is not None:
            self._background.cancel()
        for item in self._tasks.held:
            self._end(item, item.record.release)
        await self._source.close(CLOSE_TIMEOUT)
        self._source.raise_unreported_crash()

    # Called by the receiver's loop.

    def start_taking(self) -> None:
        """Begin to take records.

        Raises:
            ConsumerStateError: another receiver takes them already.
        """
        if self._taking:
            raise ConsumerStateError(
                "another receiver listens to this broker; create a broker for each"
            )
        self._taking = True
        self._capacity.restart()

    def stop_taking(self) -> None:
        """Take no more records; release records that the receiver has not taken."""
        self._taking = False
        for item in self._tasks.not_given():
            self._end(item, item.record.release)

    async def next_message(self) -> AckableMessage:
        """Wait for the next task; raises the error that ended the consumer.

        Cancelling this loses nothing.
        """
        self._is_requested = True
        self._capacity.on_requested()
        try:
            while True:
                if self._failure is not None:
                    self._failure.throw()
                item = self._next_allowed(self._clock())
                if item is not None and item.is_suspect:
                    await self._settle()
                now = self._clock()
                if self._next_allowed(now) is not None:
                    return self._start_next(now)
                self._wanted.set()
                await self._arrived.wait_until(self._next_check(now))
        finally:
            self._is_requested = False

    async def _settle(self) -> None:
        """Wait for results of acknowledgements, and for responses to fetches."""
        with suppress(Error):
            await self._source.commit(CONFIRM_TIMEOUT)
        await asyncio.sleep(max(0.0, self._fetched_at - self._clock()))

    def _next_allowed(self, now: float) -> HeldTask | None:
        """Return the next task if it can start now, else None."""
        item, busy = self._tasks.peek(now), self._capacity.running + self._writing
        allows = item is not None and self._isolation.allows(item, now, busy=busy)
        return item if allows else None

    def _next_check(self, now: float) -> float:
        """Return when `_next_allowed` can return a task without another event."""
        due, next_task = self._tasks.next_due(), self._tasks.peek(now)
        return self._isolation.next_check(due, is_blocked=next_task is not None)

    def _start_next(self, now: float) -> AckableMessage:
        item = self._tasks.take_next(now)
        assert item is not None, "from _next_allowed"
        self._isolation.on_started(item, now)
        self._capacity.on_given()
        if item.is_suspect:
            limit = self._source.configs.delivery_limit
            self._log.warning(ALONE, **place_of(item.record), delivery_limit=limit)
        return Message(data=item.record.value, ack=Acknowledgement(self, item))

    def accept(self, item: HeldTask) -> None:
        """Accept a task's record; log it if its lock is lost."""
        if item.is_done:
            self._log.warning(
                "task not acknowledged: its lock is lost, so it can run again",
                **place_of(item.record),
            )
        else:
            self._end(item, item.record.accept)

    def call_soon(self, method: Callable[[HeldTask], None], item: HeldTask) -> None:
        """Call a method from the garbage collector, which runs in any thread."""
        # A closed event loop has no consumer any more.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(method, item)

    def on_task_ended(self, item: HeldTask, error: BaseException | None) -> None:
        """Handle the end of the receiver's work on a task; `error` is what it raised.

        A task that has returned can acknowledge later (ack type "manual"), until its
        lock ends: it is not renewed any more.
        """
        self._on_task_end(item)
        if item.is_done:
            return
        if error is None:
            self._renewals.remove(item)
            return
        self._log.error(
            "record released: taskiq's receiver failed",
            **place_of(item.record),
            exc_info=error,
        )
        self._end(item, item.record.release)

    def on_discarded(self, item: HeldTask) -> None:
        """Handle the end of a message that no task has handled."""
        self._on_task_end(item)
        self.drop(item)

    def drop(self, item: HeldTask) -> None:
        """Release a record whose message no longer exists."""
        if not item.is_done:
            self._log.warning(
                "record released: taskiq has dropped its message",
                **place_of(item.record),
            )
            self._end(item, item.record.release)

    def _on_task_end(self, item: HeldTask) -> None:
        self._capacity.on_ended()
        self._isolation.on_ended(item)
        self._arrived.set()  # a suspect waits for other tasks, and others for it

    # Records.

    def _start_tasks(self, tasks: TaskGroup) -> None:
        self._start_soon = tasks.start_soon
        tasks.start_soon(self._take_records)
        tasks.start_soon(self._locks.run)

    def _on_ended(self, error: BaseException | None) -> None:
        if error is not None and self._failure is None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self._failure = StoredError(error)
        self._arrived.set()

    async def _take_records(self) -> None:
        while self._failure is None:
            fetch = self._must_fetch()
            records: list[Any] = []
            try:
                if fetch:
                    wanted = max(self._min_fetch, self._capacity.free)
                    self._source.demand.up_to(min(wanted, self._isolation.max_taken))
                if count := self._source.buffered or int(fetch):
                    timeout = POLL_TIMEOUT if fetch else 0.0
                    records = await self._source.take(count, timeout=timeout)
                    if fetch:
                        self._fetched_at = self._clock() + self._source.response_timeout
            except RecordsError as error:
                self._log.warning("records not readable", reason=str(error))
            except Error as error:
                self._fail(error)
            self._isolation.on_taken([each for each in map(self._add, records) if each])
            if not records and not fetch:
                await self._wanted.wait_until(FOREVER)

    def _must_fetch(self) -> bool:
        if not self._taking or not self._is_requested or self._tasks.is_full:
            return False
        now = self._clock()
        return self._tasks.peek(now) is None and not self._isolation.is_running(now)

    def _add(self, record: Any) -> HeldTask | None:
        """Hold a record, and return its task; None if it cannot run."""
        if record.value is None:
            self._log.warning("record rejected: it has no value", **place_of(record))
            self._acknowledge(record, record.reject)
            return None
        if not self._taking:
            self._acknowledge(record, record.release)
            return None
        now, limit = self._clock(), self._source.configs.delivery_limit
        left = deliveries_left(record.delivery_count, limit)
        lease_end = now + self._lease.max_lock_time
        item = HeldTask(record, self._lease, lease_end, deliveries_left=left)
        delay = delay_left(
            record.headers,
            max_delay=self._max_delay,
            now_ms=time.time_ns() // 1_000_000,
        )
        self._tasks.add(item, now + delay, now)
        self._locks.add(item)
        self._arrived.set()
        if delay > 0 and item.is_suspect:
            self._start_soon(self._renew_deliveries, item)
        return item

    async def _renew_deliveries(self, item: HeldTask) -> None:
        """Write a delayed suspect again, as a new record, and accept the old one.

        Each task that ends the process takes a delivery from the delayed ones.
        """
        self._writing += 1
        try:
            await self._write_again(item.record)
        except Error as error:
            place = place_of(item.record)
            self._log.warning(
                "delayed task not written again", **place, error=str(error)
            )
        else:
            if not item.is_done:
                self._end(item, item.record.accept)
        finally:
            self._writing -= 1
            self._arrived.set()

    def _end(self, item: HeldTask, acknowledge: Callable[[], None]) -> None:
        self._forget(item)
        self._acknowledge(item.record, acknowledge)

    def _forget(self, item: HeldTask) -> None:
        self._tasks.remove(item)
        self._renewals.remove(item)
        self._wanted.set()  # no longer full
        self._arrived.set()  # a suspect whose lock is lost blocks no other task

    def _acknowledge(self, record: Any, acknowledge: Callable[[], None]) -> None:
        """Call a method of the record; log it if the record is no longer held."""
        try:
            acknowledge()
        except (LockLostError, RecordStateError, ClosedError) as error:
            self._log.warning(
                "acknowledgement failed", **place_of(record), error=str(error)
            )

    def _lose(self, items: Sequence[HeldTask], reason: str) -> None:
        """Forget tasks whose locks are lost: they can run elsewhere."""
        for item in items:
            if not item.is_done:
                self._log.warning(
                    "lock lost: the task can run again, except after its last delivery",
                    **place_of(item.record),
                    reason=reason,
                )
                self._forget(item)

    def _end_lease(self, item: HeldTask) -> None:
        """Release a task that is held for too long: it can run elsewhere."""
        if not item.is_done:
            self._log.warning(
                "task held for max_lock_time: it can run again",
                **place_of(item.record),
            )
            self._end(item, item.record.release)


async def _do_nothing() -> None:
    """Release nothing: the consumer is closed by `aclose`."""
