"""`ShareGroupBroker`: taskiq's tasks on a Kafka topic, handed out by a share group."""

import asyncio
import itertools
import time
from collections.abc import AsyncGenerator
from typing import Any, Final, Unpack

import anyio
from anyio.abc import TaskGroup
from taskiq import AckableMessage, AsyncBroker, BrokerMessage

from sharecons._record import Headers
from sharecons.config.options import documented
from sharecons.config.validation import check_topic
from sharecons.errors import ConsumerStateError, RequestTimedOutError
from sharecons.log import get_logger
from sharecons.member.settings import TABLES, MemberSettings
from sharecons.net.background import Background
from sharecons.net.broker_pool import BrokerPool
from sharecons.net.io.event_loop import LoopGuard
from sharecons.producer.idempotent import IdempotentProducer
from sharecons.taskiq.messages import headers_of, key_of
from sharecons.taskiq.settings import (
    NO_OPTIONS,
    BrokerOptions,
    BrokerSettings,
    supervised_name,
)
from sharecons.taskiq.task_source import TaskSource

__all__ = ["ShareGroupBroker"]

MAX_SENDING: Final = 64
"""Tasks that are written at a time, and so in one batch: a broker returns a whole batch
for each of its records that is fetched alone."""

REASON_TIME: Final = 0.5
"""Seconds after `delivery_timeout` in which the producer raises its own error, with the
reason. A task that has waited for other tasks has no reason then."""

_log = get_logger(__name__)

_numbers = itertools.count()
"""Numbers the brokers of a process: two of them can have one topic and group."""


@documented(BrokerSettings, *TABLES, types=BrokerOptions, without=NO_OPTIONS)
class ShareGroupBroker(AsyncBroker):
    """A taskiq broker: a Kafka topic as the queue, a share group as its workers.

        broker = ShareGroupBroker("tasks", group_id="workers")

        @broker.task
        async def send_mail(address: str) -> None: ...

    Clients write tasks with acks=all; `kiq` returns when all in-sync replicas have the
    task. `taskiq worker module:broker` runs workers: each process is a member of the
    group, and accepts a task's record when taskiq acknowledges it. A task whose worker
    stops or dies before that is delivered again, with a higher delivery count.

    Create result backends, middlewares and event handlers as with any taskiq broker:
    `with_result_backend`, `with_middlewares`, `on_event`.

    Args:
        topic: the tasks' topic, which must exist.
        group_id: the share group of the workers.
        options: see below; `BrokerOptions` has their types.

    Raises:
        ConfigurationError: an argument is invalid or unknown.
    """

    def __init__(
        self, topic: str, *, group_id: str, **options: Unpack[BrokerOptions]
    ) -> None:
        super().__init__()
        self._number = next(_numbers)
        self.topic = check_topic("topic", topic)
        self.group_id = group_id
        self._settings = BrokerSettings.of(options)
        self._connect_timeout = self._new_member().connect_timeout
        self._producer: IdempotentProducer | None = None
        self._producing: Background | None = None
        self._source: TaskSource | None = None
        self._guard: LoopGuard | None = None
        self._sending = asyncio.Semaphore(MAX_SENDING)

    async def startup(self) -> None:
        """Start the producer, in a worker process also the consumer, then the rest.

        Event handlers and middlewares start last, and can send tasks: unless the group
        starts at the beginning of the topic, a worker waits up to `connect_timeout`
        seconds for its partitions. The producer connects when the first task is sent.

        Raises:
            Error: as `ShareConsumer.start` and `ShareConsumer.assigned`.
        """
        try:
            self._start_producing()
            if self.is_worker_process:
                await self._start_consuming()
                await self._wait_until_assigned()
            await super().startup()
        except BaseException:
            await self._stop()
            raise

    async def shutdown(self) -> None:
        """Stop event handlers and middlewares, then the consumer, then the producer.

        Records of tasks that were not acknowledged are released.
        """
        try:
            await super().shutdown()
        finally:
            await self._stop()

    async def kick(self, message: BrokerMessage) -> None:
        """Write a task to the topic, and wait until all in-sync replicas have it.

        The label `sharecons_key` is the record's key, the label `delay` the seconds
        before which the task does not run. Cancelling this leaves it unknown whether
        the task is written.

        Raises:
            ConsumerStateError: the broker is not started.
            ConfigurationError: the delay is invalid.
            Error: as `IdempotentProducer.send`.
        """
        if self._guard is not None:
            self._guard.check()
        headers = headers_of(
            message.task_id,
            message.task_name,
            message.labels,
            max_delay=self._settings.max_delay,
            now_ms=time.time_ns() // 1_000_000,
        )
        timeout = self._settings.delivery_timeout
        with anyio.move_on_after(timeout + REASON_TIME):
            await self._write(message.message, key_of(message.labels), headers)
            return
        raise RequestTimedOutError(
            f"task {message.task_name!r} was not written to topic {self.topic!r} "
            f"within {timeout:g} s; it might be written nevertheless"
        )

    async def listen(self) -> AsyncGenerator[AckableMessage, None]:
        """Yield tasks for taskiq's receiver; each is accepted by its `ack`.

        Leaving it releases the tasks that it has not yielded.

        Raises:
            Error: the error that ended the consumer.
        """
        source = await self._start_consuming()
        source.start_taking()
        try:
            while True:
                yield await source.next_message()
        finally:
            source.stop_taking()

    # The parts.

    async def _write(self, value: bytes, key: bytes | None, headers: Headers) -> None:
        producer = self._producer
        if producer is None:
            raise ConsumerStateError(
                "the broker is not started: call `await broker.startup()` first"
            )
        async with self._sending:
            await producer.send(self.topic, value, key=key, headers=headers)

    async def _write_again(self, record: Any) -> None:
        await self._write(record.value, record.key, record.headers)

    def _start_producing(self) -> None:
        if self._producing is not None and not self._producing.has_ended:
            return
        brokers = BrokerPool(self._new_member().cluster)
        self._guard = LoopGuard("broker")
        self._sending = asyncio.Semaphore(MAX_SENDING)
        producer = self._producer = IdempotentProducer(
            brokers, delivery_timeout=self._settings.delivery_timeout
        )

        def start_producer(tasks: TaskGroup) -> None:
            tasks.start_soon(producer.run)

        self._producing = Background(
            f"sharecons.taskiq, topic {self.topic!r}",
            start_producer,
            _on_producer_ended,
            brokers.aclose,
        )

    async def _start_consuming(self) -> TaskSource:
        if self._source is None:
            source = TaskSource(
                self._settings.new_member(self.group_id, self._member_id()),
                self.topic,
                max_lock_time=self._settings.max_lock_time,
                max_delay=self._settings.max_delay,
                write_again=self._write_again,
            )
            await source.start()
            self._source = source
        return self._source

    async def _wait_until_assigned(self) -> None:
        """Wait until a new group that starts at the end receives what is sent now."""
        if self._source is None or self._settings.auto_offset_reset == "earliest":
            return
        with anyio.move_on_after(self._connect_timeout) as limit:
            await self._source.assigned()
        if limit.cancelled_caught:
            _log.warning(
                "the worker has no partitions yet; if its group is new and starts at "
                "the end, it does not receive tasks that are sent before it has some",
                topic=self.topic,
                group=self.group_id,
                waited=f"{self._connect_timeout:g} s",
            )

    def _member_id(self) -> str | None:
        """Return an id that a worker process keeps when taskiq starts it again.

        The coordinator then replaces the former member, which would keep its partitions
        until its session ends.
        """
        name = supervised_name()
        return None if name is None else f"{name}-{self.topic}-{self._number}"

    def _new_member(self) -> MemberSettings:
        return self._settings.new_member(self.group_id)

    async def _stop(self) -> None:
        source, self._source = self._source, None
        producing, self._producing = self._producing, None
        self._producer = None
        try:
            if source is not None:
                await source.aclose()
        finally:
            if producing is not None:
                producing.cancel()
                await producing.wait()


def _on_producer_ended(error: BaseException | None) -> None:
    if isinstance(error, Exception):
        _log.error("the producer failed; start the broker again", exc_info=error)
