"""`Producer`: writes records to Kafka, one or many at a time."""

import random
import time
from collections.abc import Iterable, Sequence
from typing import Final, Unpack

from sharecons.config.not_given import NOT_GIVEN
from sharecons.config.options import documented, read_options
from sharecons.errors import ClosedError, ConfigurationError, Error, fresh
from sharecons.instrumentation import SendObserver
from sharecons.net.broker_pool import BrokerPool
from sharecons.net.settings import ConnectionSettings
from sharecons.producer.idempotent import IdempotentProducer, OutgoingRecord
from sharecons.producer.lifecycle import ProducerLifecycle
from sharecons.producer.records import ProducerRecord, RecordPosition, check_record
from sharecons.producer.settings import ProducerOptions, ProducerSettings
from sharecons.protocol.produce.batches import record_size
from sharecons.records.compression import Codec

__all__ = ["Producer"]

MANY: Final = 1 << 16
"""More partitions than topics have, so that each is equally likely to be the first."""


@documented(ConnectionSettings, ProducerSettings, types=ProducerOptions)
class Producer(ProducerLifecycle):
    """Writes records with acks=all and idempotence (KIP-98).

        async with Producer(bootstrap_servers="localhost:9092") as producer:
            await producer.send("orders", b"tea", key=b"customer-7")

    Entering connects. `send` returns once all in-sync replicas have the record. Any
    number of tasks can send at the same time: records that are added while a request is
    in flight go with the next one, in one batch for each partition.

    A record is sent again after errors that pass and lost responses, for
    `delivery_timeout` seconds. It is written at most once by each call; a call that
    fails says whether it might have been written. docs/producer.md explains all of it.

    Records with equal keys go to one partition, the partition that Kafka's Java
    producer chooses (murmur2). Records without a key go to one partition until a batch
    is sent, and then to the next.

    Args:
        options: see below; `ProducerOptions` has their types.

    Raises:
        ConfigurationError: an argument is invalid.
    """

    def __init__(self, **options: Unpack[ProducerOptions]) -> None:
        connection, own = read_options(
            "Producer",
            {"instrumentation": NOT_GIVEN, **options},
            ConnectionSettings,
            ProducerSettings,
        )
        self._settings = settings = ProducerSettings(**own)
        cluster = ConnectionSettings(**connection).new_cluster()
        super().__init__(cluster, settings.connect_timeout)
        self._observer: SendObserver | None = None
        if settings.instrumentation is not None:
            client = cluster.as_client()
            self._observer = settings.instrumentation.observe_producer(client)
        self._max_bytes = settings.max_buffered_bytes

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Iterable[tuple[str, bytes | None]] = (),
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> RecordPosition:
        """Write a record; return its position once all in-sync replicas have it.

        Records of one partition are written in the order of the calls.

        If this is cancelled while it waits for space (`max_buffered_bytes`), the record
        is not written. After that it is still sent, and can be written.

        Args:
            value: None deletes the key from a compacted topic.
            partition: None to choose it by the key.
            timestamp: milliseconds since the epoch; None for now.

        Raises:
            ConfigurationError: an argument is invalid, or the record is larger than
                `max_buffered_bytes`; nothing was sent.
            AuthorizationError: writing to the topic is not allowed.
            BrokerError: the brokers reject the record: its topic does not exist
                (UNKNOWN_TOPIC_OR_PARTITION, after `delivery_timeout`), the record is
                larger than the topic allows (MESSAGE_TOO_LARGE), or another code.
            RequestTimedOutError: it was not confirmed within `delivery_timeout`. The
                message says whether it might have been written, and the last error.
            AuthenticationError: either side rejected the credentials.
            ClosedError: the producer is closed. If it was closed while this waited, the
                record might have been written.
            ConsumerStateError, WrongThreadError: the producer is not started, or runs
                in another event loop.
            BackgroundTaskError: the producer has failed.
        """
        record = ProducerRecord(
            topic,
            value,
            key=key,
            headers=headers,
            partition=partition,
            timestamp=timestamp,
        )
        (outcome,) = await self._send([record])
        if isinstance(outcome, Error):
            raise fresh(outcome)
        return outcome

    async def send_many(
        self, records: Iterable[ProducerRecord]
    ) -> list[RecordPosition | Error]:
        """Write records; return the position or the error of each, in their order.

        Records of one partition are written in this order. A record that fails does not
        stop the others. Cancelling this leaves it unknown which records are written.

        Raises:
            ConfigurationError: a record is invalid; none was sent.
            ClosedError, ConsumerStateError, WrongThreadError, BackgroundTaskError: as
                `send`, before any record was sent.
        """
        if isinstance(records, ProducerRecord) or not isinstance(records, Iterable):
            raise ConfigurationError(
                f"records must be a sequence of ProducerRecord, not {records!r}"
            )
        return await self._send(list(records))

    async def _send(
        self, records: Sequence[ProducerRecord]
    ) -> list[RecordPosition | Error]:
        now = time.time_ns() // 1_000_000
        outgoing = [self._outgoing(record, now) for record in records]
        self._check_open()
        assert self._running is not None, "open"
        outcomes = await self._running.send_each(outgoing)
        if self._state == "open" and any(map(_is_closed, outcomes)):
            crash = await self._wait_for_crash()
            outcomes = [crash if _is_closed(each) else each for each in outcomes]
        return outcomes

    def _outgoing(self, record: ProducerRecord, now: int) -> OutgoingRecord:
        new = check_record(record, now)
        size = record_size(new)
        if size > self._max_bytes:
            raise ConfigurationError(
                f"a record for topic {record.topic!r} has {size} bytes, more than "
                f"max_buffered_bytes ({self._max_bytes})"
            )
        return OutgoingRecord(record.topic, new, record.partition)

    def _new_producer(self, brokers: BrokerPool) -> IdempotentProducer:
        settings = self._settings
        return IdempotentProducer(
            brokers,
            delivery_timeout=settings.delivery_timeout,
            max_buffered=settings.max_buffered_bytes,
            compression=Codec[settings.compression.upper()],
            request_timeout=min(settings.request_timeout, settings.delivery_timeout),
            first_partition=random.randrange(MANY),
            observer=self._observer,
        )

    def __repr__(self) -> str:
        servers = ", ".join(map(str, self._cluster.bootstrap))
        return f"<Producer {self._state}, brokers: {servers}>"


def _is_closed(outcome: RecordPosition | Error) -> bool:
    return isinstance(outcome, ClosedError)
