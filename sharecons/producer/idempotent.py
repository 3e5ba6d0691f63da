"""Runs the machine of `protocol.produce.producer` on the connections of a broker pool.

Leaders have one request in flight each; records that
are added meanwhile go with the next one, so any number of tasks can send at the same
time.
"""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import anyio
from anyio.lowlevel import checkpoint

from sharecons._record import Headers, TopicPartition
from sharecons.errors import ClosedError, Error, fresh
from sharecons.instrumentation import SendObserver
from sharecons.net.broker_pool import BrokerPool, Deadline
from sharecons.net.io.event_loop import AutoResetEvent, running_clock
from sharecons.producer.records import RecordPosition
from sharecons.protocol.admin.requests import TopicMetadataRequest
from sharecons.protocol.produce.batches import PendingRecord
from sharecons.protocol.produce.messages import ProducerIdentity
from sharecons.protocol.produce.producer import (
    Delivered,
    NodeRequest,
    ProduceEvent,
    ProducerMachine,
)
from sharecons.records.compression import Codec
from sharecons.records.encoder import NewRecord

__all__ = ["IdempotentProducer", "OnOutcome", "OutgoingRecord"]

DELIVERY_TIMEOUT: Final = 30.0
REQUEST_TIMEOUT: Final = 10.0
REPLICA_SHARE: Final = 0.8
"""The part of the request timeout in which the replicas must have the records, so that
the leader's response still arrives in time."""

MAX_BUFFERED: Final = 32 << 20
"""Bytes of unconfirmed records above which `send` waits; buffer.memory of Kafka's."""

AT_A_TIME: Final = 100
"""Records whose outcomes are reported in one step before other tasks run."""


class OutgoingRecord(NamedTuple):
    """A record for a topic; a partition of None is chosen by the key."""

    topic: str
    record: NewRecord
    partition: int | None


OnOutcome = Callable[[RecordPosition | Error], None]
"""Called once, with the position of a record, or with the error that prevents or might
have prevented writing it."""


class IdempotentProducer:
    """Writes records with acks=all and idempotence (KIP-98), each at most once.

    `run` must run in a task while `send` is called.

    Args:
        delivery_timeout: seconds for a record to be confirmed, with all retries.
        max_buffered: bytes of unconfirmed records above which `send` waits.
        request_timeout: seconds to wait for one response.
        first_partition: see `protocol.produce.topics`.
        identity, sequences: a fixed producer id, see `protocol.produce.producer`.
        observer: observes `send` and `send_each`.
    """

    def __init__(
        self,
        brokers: BrokerPool,
        *,
        delivery_timeout: float = DELIVERY_TIMEOUT,
        max_buffered: int = MAX_BUFFERED,
        compression: Codec = Codec.NONE,
        request_timeout: float = REQUEST_TIMEOUT,
        spread: float = 1.0,
        first_partition: int = 0,
        identity: ProducerIdentity | None = None,
        sequences: Mapping[TopicPartition, int] | None = None,
        observer: SendObserver | None = None,
    ) -> None:
        self._brokers = brokers
        self._observer = observer
        self._delivery_timeout = delivery_timeout
        self._max_buffered = max_buffered
        self._request_timeout = request_timeout
        self._machine = ProducerMachine(
            spread,
            compression=compression,
            identity=identity,
            sequences=sequences,
            first_partition=first_partition,
            replica_timeout=REPLICA_SHARE * request_timeout,
        )
        self._pending: dict[PendingRecord, OnOutcome] = {}
        self._outcomes: deque[ProduceEvent] = deque()  # not reported yet
        self._buffered = 0
        self._waiting = 0  # calls of `submit` that wait for space
        self._space = anyio.Event()
        self._wakeup = AutoResetEvent()
        self._closed = False

    @property
    def buffered(self) -> int:
        """The bytes of the records that are not confirmed."""
        return self._buffered

    async def run(self) -> None:
        """Send records until cancelled; then every waiting `send` raises ClosedError.

        Records in flight might be written nevertheless.
        """
        clock = running_clock()
        machine = self._machine
        try:
            async with anyio.create_task_group() as tasks:
                while True:
                    for request in machine.next_requests(clock()):
                        tasks.start_soon(self._exchange, request)
                    await self._dispatch()
                    await self._wakeup.wait_until(machine.next_deadline(clock()))
        finally:
            self._closed = True
            self._space.set()
            while self._outcomes:
                self._report(self._outcomes.popleft())
            for record, on_outcome in self._pending.items():
                on_outcome(_closed_error(record))
            self._pending.clear()

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
        if timestamp is None:
            timestamp = time.time_ns() // 1_000_000
        new = NewRecord(key=key, value=value, headers=headers, timestamp=timestamp)
        (outcome,) = await self.send_each([OutgoingRecord(topic, new, partition)])
        if isinstance(outcome, Error):
            raise fresh(outcome)
        return outcome

    async def submit(
        self,
        topic: str,
        new: NewRecord,
        on_outcome: OnOutcome,
        *,
        partition: int | None = None,
    ) -> None:
        """Add a record, once there is space for it, and do not wait for its outcome.

        Records that one task submits are written in the order of the calls, to each
        partition. Cancelling this while it waits adds nothing.

        Args:
            on_outcome: must not raise. Errors as of `send`.

        Raises:
            ClosedError: the producer is closed; `on_outcome` is not called.
        """
        self._waiting += 1
        try:
            while self._buffered >= self._max_buffered and not self._closed:
                await self._space.wait()
        finally:
            self._waiting -= 1
        if self._closed:
            raise ClosedError("the record was not sent: the producer is closed")
        deadline = anyio.current_time() + self._delivery_timeout
        record = PendingRecord(topic, new, deadline, partition)
        self._pending[record] = on_outcome
        self._buffered += record.size
        self._machine.add(record)
        self._wakeup.set()

    async def send_each(
        self, records: Sequence[OutgoingRecord]
    ) -> list[RecordPosition | Error]:
        """Write records, and return the outcome of each in order.

        Records of one partition are written in this order. Cancelling this leaves it
        unknown which of them are written.
        """
        if self._observer is None:
            return await self._send_each(records)
        topics = [each.topic for each in records]
        with self._observer.sending(topics, [each.record for each in records]) as send:
            pairs = zip(records, send.records, strict=True)
            send.outcomes = outcomes = await self._send_each(
                [each._replace(record=record) for each, record in pairs]
            )
        return outcomes

    async def _send_each(
        self, records: Sequence[OutgoingRecord]
    ) -> list[RecordPosition | Error]:
        outcomes: dict[int, RecordPosition | Error] = {}
        done = anyio.Event()

        def on_outcome(number: int, outcome: RecordPosition | Error) -> None:
            outcomes[number] = outcome
            if len(outcomes) == len(records):
                done.set()

        for number, (topic, new, partition) in enumerate(records):
            try:
                await self.submit(
                    topic, new, partial(on_outcome, number), partition=partition
                )
            except ClosedError as error:
                on_outcome(number, error)
        if records:
            await done.wait()
        return [outcomes[number] for number in range(len(records))]

    async def flush(self) -> None:
        """Wait until every record has its outcome, including calls that wait now."""
        while (self._pending or self._waiting) and not self._closed:
            await self._space.wait()

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
        deadline = Deadline(self._request_timeout, self._request_timeout)
        if request.node_id is not None:
            return await self._brokers.send(request.node_id, request.request, deadline)
        if isinstance(request.request, TopicMetadataRequest):
            names = request.request.names
            return await self._brokers.request_topics(names, deadline)
        return await self._brokers.send_to_any(request.request, deadline)

    async def _dispatch(self) -> None:
        """Report the outcomes of records, a part of them in one step.

        A response can confirm thousands of records, and a task can wait for each.
        """
        events, self._machine.events = self._machine.events, []
        self._outcomes.extend(events)
        while self._outcomes:
            for _ in range(min(len(self._outcomes), AT_A_TIME)):
                self._report(self._outcomes.popleft())
            self._space.set()
            self._space = anyio.Event()
            if self._outcomes:
                await checkpoint()

    def _report(self, event: ProduceEvent) -> None:
        record = event.record
        on_outcome = self._pending.pop(record)
        self._buffered -= record.size
        if isinstance(event, Delivered):
            position = RecordPosition(record.topic, event.partition, event.offset)
            on_outcome(position)
        else:
            on_outcome(event.error)


def _closed_error(record: PendingRecord) -> ClosedError:
    return ClosedError(
        f"the producer was closed before a record for topic {record.topic!r} was "
        "confirmed; it might have been written"
    )
