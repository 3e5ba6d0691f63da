"""Writes records: runs the machine of `protocol.produce.producer`.

Used for retries and dead letters. Leaders have one request in flight each; records that
are added meanwhile go with the next one, so many tasks may send at once.
"""

import time
from typing import Any, Final, NamedTuple

import anyio

from sharecons._record import Headers
from sharecons.errors import ClosedError, Error, fresh
from sharecons.net.broker_pool import BrokerPool, Deadline
from sharecons.net.io.event_loop import AutoResetEvent, running_clock
from sharecons.protocol.admin.requests import TopicMetadataRequest
from sharecons.protocol.produce.batches import ProducerRecord
from sharecons.protocol.produce.producer import (
    Delivered,
    Failed,
    NodeRequest,
    ProduceEvent,
    Producer,
)
from sharecons.records.compression import Codec
from sharecons.records.encoder import NewRecord

__all__ = ["IdempotentProducer", "RecordPosition"]

DELIVERY_TIMEOUT: Final = 30.0
REQUEST_TIMEOUT: Final = 10.0
MAX_BUFFERED: Final = 32 << 20
"""Bytes of unconfirmed records above which `send` waits; buffer.memory of Kafka's."""


class RecordPosition(NamedTuple):
    """Where a record was written; an offset of -1 is not known.

    It is unknown if a response was lost and the leader no longer knows the offset.
    """

    topic: str
    partition: int
    offset: int


class _Pending:
    """A record without an outcome, and the task that waits for it."""

    def __init__(self, record: ProducerRecord) -> None:
        self.record = record
        self.done = anyio.Event()
        self.outcome: ProduceEvent | None = None


class IdempotentProducer:
    """Writes records with acks=all and idempotence (KIP-98), each at most once.

    `run` must run in a task while `send` is called.

    Args:
        delivery_timeout: seconds for a record to be confirmed, with all retries.
        max_buffered: bytes of unconfirmed records above which `send` waits.
    """

    def __init__(
        self,
        brokers: BrokerPool,
        *,
        delivery_timeout: float = DELIVERY_TIMEOUT,
        max_buffered: int = MAX_BUFFERED,
        compression: Codec = Codec.NONE,
        spread: float = 1.0,
    ) -> None:
        self._brokers = brokers
        self._delivery_timeout = delivery_timeout
        self._max_buffered = max_buffered
        self._machine = Producer(spread, compression=compression)
        self._pending: dict[ProducerRecord, _Pending] = {}
        self._buffered = 0
        self._space = anyio.Event()
        self._wakeup = AutoResetEvent()
        self._closed = False

    @property
    def buffered(self) -> int:
        """The bytes of the records that are not confirmed."""
        return self._buffered

    async def run(self) -> None:
        """Send records until cancelled; then every waiting `send` raises ClosedError.

        Records in flight may be written nevertheless.
        """
        clock = running_clock()
        machine = self._machine
        try:
            async with anyio.create_task_group() as tasks:
                while True:
                    for request in machine.next_requests(clock()):
                        tasks.start_soon(self._exchange, request)
                    self._dispatch()
                    await self._wakeup.wait_until(machine.next_deadline(clock()))
        finally:
            self._closed = True
            self._space.set()
            for pending in self._pending.values():
                pending.done.set()

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> RecordPosition:
        """Write a record, and wait until all in-sync replicas have it.

        Records with one key go to one partition, in the order of the calls. Cancelling
        this leaves it unknown whether the record is written.

        Args:
            timestamp: milliseconds since the epoch; None for now.
            partition: None to choose it by the key, as Kafka's producer does.

        Raises:
            RequestTimedOutError: it was not confirmed in time.
            AuthorizationError, BrokerError: the broker does not take it.
            ClosedError: the producer was closed before the record was confirmed.
        """
        while self._buffered >= self._max_buffered and not self._closed:
            await self._space.wait()
        if self._closed:
            raise ClosedError("the record was not sent: the producer is closed")
        if timestamp is None:
            timestamp = time.time_ns() // 1_000_000
        new = NewRecord(key=key, value=value, headers=headers, timestamp=timestamp)
        deadline = anyio.current_time() + self._delivery_timeout
        record = ProducerRecord(topic, new, deadline, partition)
        pending = self._pending[record] = _Pending(record)
        self._buffered += record.size
        self._machine.add(record)
        self._wakeup.set()
        await pending.done.wait()
        match pending.outcome:
            case Delivered(partition=written_to, offset=offset):
                return RecordPosition(topic, written_to, offset)
            case Failed(error=error):
                raise fresh(error)
            case None:
                raise ClosedError(
                    f"the producer was closed before a record for topic {topic!r} was "
                    "confirmed; it may have been written"
                )

    async def _exchange(self, request: NodeRequest) -> None:
        clock = running_clock()
        try:
            response = await self._send(request)
        except Error as error:
            self._machine.on_error(request, error, clock())
        else:
            self._machine.on_response(request, response, clock())
        self._wakeup.set()

    async def _send(self, request: NodeRequest) -> Any:
        deadline = Deadline(REQUEST_TIMEOUT)
        if request.node_id is not None:
            return await self._brokers.send(request.node_id, request.request, deadline)
        if isinstance(request.request, TopicMetadataRequest):
            names = request.request.names
            return await self._brokers.request_topics(names, deadline)
        return await self._brokers.send_to_any(request.request, deadline)

    def _dispatch(self) -> None:
        """Wake the tasks whose records have an outcome."""
        events, self._machine.events = self._machine.events, []
        for event in events:
            pending = self._pending.pop(event.record)
            self._buffered -= event.record.size
            pending.outcome = event
            pending.done.set()
        if events:
            self._space.set()
            self._space = anyio.Event()
