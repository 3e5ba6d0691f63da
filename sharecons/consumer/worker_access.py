"""Access of a worker to its consumer, beyond what applications can do."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Final

import anyio

from sharecons.config import validation
from sharecons.consumer.deserializers import Deserializers
from sharecons.consumer.group_setup import GroupConfigs, OffsetReset
from sharecons.consumer.share_consumer import ShareConsumer
from sharecons.errors import ClosedError, ConfigurationError, Error
from sharecons.net.cluster import Cluster
from sharecons.net.group_configs import GroupConfigReader
from sharecons.protocol.acknowledge.batcher import CommitWaiter
from sharecons.record import TopicPartition

__all__ = ["HURRY", "WorkerAccess"]

SETTLE_TIMEOUT: Final = 3.0
"""Seconds to send the last acknowledgements. `sharecons run` exits a second later."""

HURRY: Final = 0.55
"""The same if nothing must be acknowledged, or if the worker must end immediately.
Longer than `max_wait`, as a fetch in flight delays what follows on its connection."""

LEAVE_TIMEOUT: Final = 0.4
"""Seconds to wait for the response to the leave, on which nothing depends."""

ADVICE: Final = (
    "raise share.record.lock.duration.ms, and do not block the event loop, in which "
    "the worker renews locks"
)
"""What helps if a handler takes longer than the lock of its record."""


class WorkerAccess:
    """Prepares a consumer for a worker, and drains it.

    The consumer then returns the raw bytes of records, in explicit mode: the worker
    deserializes and acknowledges them. It sets the group's offset reset to earliest,
    unless the application or the group has a value.

    Args:
        topics: the consumer also subscribes to these.

    Attributes:
        topics: the consumer's subscription, with these.
        group_id: the share group.
        request_timeout: seconds to wait for one response.
        sets_earliest: the consumer sets the group's offset reset unless it has one.
        cluster: opens connections with the consumer's settings.
        deserializers: the consumer's.

    Raises:
        ConfigurationError: the consumer is started or has a worker already, or has one
            of the topics.
    """

    def __init__(
        self, consumer: ShareConsumer[object, object], topics: Iterable[str]
    ) -> None:
        if consumer._state != "new" or consumer._has_worker:
            raise ConfigurationError(
                "the worker needs a ShareConsumer of its own that is not started; it "
                "starts and closes the consumer itself"
            )
        consumer._has_worker = True
        consumer._topics = validation.check_topics((*consumer._topics, *topics))
        consumer._implicit = consumer._handle_signals = False
        self.topics: tuple[str, ...] = consumer._topics
        self.group_id: str = consumer.group_id
        start = consumer._group_start
        self.request_timeout: float = start.request_timeout
        self.sets_earliest: bool = start.offset_reset.is_default
        if self.sets_earliest:
            start.offset_reset = OffsetReset("earliest", is_default=True)
        self._consumer = consumer
        self._max_records = consumer._settings.max_records
        self.cluster: Cluster = consumer._cluster
        self.deserializers = consumer._deserializers
        consumer._deserializers = Deserializers(None, None)
        self._starting: anyio.CancelScope | None = None
        self._start_or_end: anyio.Event | None = None
        self._has_ended = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[bool]:
        """Start the consumer, and close it at the end; yield whether it has started.

        It has not if `cancel_start` was called.

        Raises:
            Error: the consumer cannot start, or one of its tasks has failed.
        """
        consumer = self._consumer
        with anyio.CancelScope() as self._starting:
            await consumer._start()
        if consumer._state != "open":
            yield False
            return
        self._end_waits()
        consumer._member.leave_timeout = LEAVE_TIMEOUT
        consumer._member._result_log.advice = ADVICE
        try:
            yield True
        except anyio.get_cancelled_exc_class():
            self.hurry()
            raise
        finally:
            await self._close()
        consumer._raise_unreported_crash()

    async def wait_until_assigned(self) -> frozenset[TopicPartition]:
        """Wait until the consumer is started and has partitions.

        Raises:
            ClosedError: the worker has ended.
            Others as `ShareConsumer.assigned`.
        """
        while self._consumer._state in ("new", "starting") and not self._has_ended:
            if self._start_or_end is None:
                self._start_or_end = anyio.Event()
            await self._start_or_end.wait()
        if self._has_ended:
            raise ClosedError("the worker has ended; create another ShareWorker")
        return await self._consumer.assigned()

    def on_ended(self) -> None:
        """End calls that wait for the start: the worker has ended."""
        self._has_ended = True
        self._end_waits()

    def _end_waits(self) -> None:
        if self._start_or_end is not None:
            self._start_or_end.set()
            self._start_or_end = None

    def cancel_start(self) -> None:
        """Cancel the start of the consumer, if it has not started yet."""
        if self._starting is not None:
            self._starting.cancel()

    def hurry(self) -> None:
        """Close within a second, even if brokers do not respond."""
        if self._consumer._state in ("open", "closing"):
            self._limit_settling(HURRY)

    @property
    def settling_deadline(self) -> float:
        """When the member leaves the group, even if leaders do not respond."""
        deadline: float = self._consumer._member.settling.deadline
        return deadline

    async def _close(self) -> None:
        """Close the consumer; cancelling this calls `hurry`."""
        consumer = self._consumer
        if consumer._state == "open":
            self._limit_settling(SETTLE_TIMEOUT if self._flush() else HURRY)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._hurry_when_cancelled)
            await consumer._close(SETTLE_TIMEOUT + LEAVE_TIMEOUT)
            tasks.cancel_scope.cancel()

    def _limit_settling(self, timeout: float) -> None:
        """Leave the group after `timeout` seconds, even if leaders do not respond.

        This limits a close that follows, or is in progress.
        """
        settling = self._consumer._member.settling
        settling.deadline = min(settling.deadline, anyio.current_time() + timeout)

    def _flush(self) -> bool:
        """Send pending acknowledgements; return whether records are unsettled."""
        leaders, waiter = self._consumer._member._leaders, CommitWaiter()
        leaders.flush(waiter)
        return not waiter.is_done or leaders.has_unsettled_records

    async def _hurry_when_cancelled(self) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            self.hurry()

    def check_before_joining(
        self, check: Callable[[GroupConfigs], Awaitable[None]]
    ) -> None:
        """Let the consumer await `check` once it has connected, before it joins.

        What this raises ends the start of the consumer.
        """
        self._consumer._group_start.check = check

    @property
    def has_failed(self) -> bool:
        """True if an error has ended the consumer."""
        return self._consumer._queue._fatal_error is not None

    @property
    def fatal_error(self) -> Error | None:
        """The error that has ended the consumer, or None."""
        try:
            self._consumer._queue.raise_fatal_error()
        except Error as error:
            return error
        return None

    @property
    def buffered(self) -> int:
        """How many records the consumer has fetched and not returned."""
        consumer = self._consumer
        return consumer._queue.remaining() + consumer._member.prefetch.buffered

    @property
    def lock_duration(self) -> float:
        """For how many seconds records are locked; 0.0 if not known yet."""
        return self._consumer._member.prefetch.lock_duration

    def set_next_ack(self, next_ack: Callable[[], float]) -> None:
        """Let fetches wait at the broker until the worker must send something.

        Args:
            next_ack: returns the earliest time at which the worker acknowledges or
                renews a record that it holds.
        """
        self._consumer._member.prefetch.next_ack = next_ack

    def fetch_ahead(self) -> None:
        """Fetch records before they are requested, at the pace of `poll`."""
        prefetch = self._consumer._member.prefetch
        prefetch.set_max_records(self._max_records)
        self._set_suspended(False)

    def fetch_at_most(self, count: int) -> None:
        """Fetch up to `count` records once they are requested; none if it is 0."""
        if count:
            prefetch = self._consumer._member.prefetch
            prefetch.set_allowance(min(count, self._max_records))
        self._set_suspended(not count)

    def _set_suspended(self, suspended: bool) -> None:
        prefetch = self._consumer._member.prefetch
        if prefetch.suspended and not suspended:
            self._consumer._member.wake_leaders()
        prefetch.suspended = suspended

    @property
    def configs(self) -> GroupConfigReader:
        """The configs of the group."""
        return self._consumer._queue.configs

    async def drain(self) -> None:
        """Fetch no more; wait until all records are settled and acknowledged.

        Records that are already acquired can still be read meanwhile.
        """
        await self._consumer._member.drain()
