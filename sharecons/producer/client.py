"""`Producer`: writes records to Kafka, one or many at a time."""

import random
import time
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from sharecons.config import validation
from sharecons.config.not_given import NOT_GIVEN, NotGiven
from sharecons.config.security import Security
from sharecons.errors import ClosedError, ConfigurationError, Error, fresh
from sharecons.instrumentation import (
    Instrumentation,
    SendObserver,
    choose_instrumentation,
)
from sharecons.net.broker_pool import BrokerPool
from sharecons.net.cluster import Cluster
from sharecons.net.io.transport import Network
from sharecons.producer.idempotent import IdempotentProducer, OutgoingRecord
from sharecons.producer.lifecycle import ProducerLifecycle
from sharecons.producer.records import ProducerRecord, RecordPosition, check_record
from sharecons.protocol.produce.batches import record_size
from sharecons.records.compression import Codec
from sharecons.version import VERSION

__all__ = ["Producer"]

CODECS: Final = tuple(codec.name.lower() for codec in Codec)
MAX_BUFFERED: Final = 1 << 30
"""The maximum of `max_buffered_bytes`; a request has a length of 31 bits."""

MANY: Final = 1 << 16
"""More partitions than topics have, so that each is equally likely to be the first."""


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
        bootstrap_servers: `host:port`, several with commas or as a sequence.
        security: TLS and SASL; plain TCP by default.
        client_id: for brokers' logs and quotas.
        compression: of batches: "none", "gzip", "snappy", "lz4" or "zstd".
        delivery_timeout: seconds for a record to be confirmed, with all retries, after
            it was added. A request in flight then ends within `request_timeout`.
        max_buffered_bytes: bytes of unconfirmed records above which `send` waits before
            it adds another; also the maximum size of a record.
        connect_timeout: seconds to connect to a first broker, when entering. Addresses
            that fail are tried again until then.
        request_timeout: seconds to wait for one response; no longer than
            `delivery_timeout`.
        network: opens connections, for tests.
        instrumentation: a `sharecons.otel.OpenTelemetry`, or None. If it is not given,
            what `sharecons.otel.instrument` has set.

    Raises:
        ConfigurationError: an argument is invalid.
    """

    def __init__(
        self,
        *,
        bootstrap_servers: str | Sequence[str] = "localhost:9092",
        security: Security | None = None,
        client_id: str = "sharecons",
        compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "none",
        delivery_timeout: float = 30.0,
        max_buffered_bytes: int = 32 << 20,
        connect_timeout: float = 10.0,
        request_timeout: float = 10.0,
        network: Network | None = None,
        instrumentation: Instrumentation | None | NotGiven = NOT_GIVEN,
    ) -> None:
        hour = validation.HOUR
        validation.check_choice("compression", compression, CODECS)
        validation.check_number("delivery_timeout", delivery_timeout, 0.001, hour)
        validation.check_number("connect_timeout", connect_timeout, 0.001, hour)
        validation.check_number("request_timeout", request_timeout, 0.001, hour)
        validation.check_count(
            "max_buffered_bytes", max_buffered_bytes, 1, MAX_BUFFERED
        )
        super().__init__(
            Cluster(
                validation.parse_bootstrap(bootstrap_servers),
                network,
                client_id=validation.check_string("client_id", client_id),
                software_version=VERSION,
                security=security,
            ),
            connect_timeout,
        )
        instrumentation = choose_instrumentation(instrumentation)
        self._observer: SendObserver | None = None
        if instrumentation is not None:
            self._observer = instrumentation.observe_producer(self._cluster.as_client())
        self._codec = Codec[compression.upper()]
        self._delivery_timeout = delivery_timeout
        self._request_timeout = min(request_timeout, delivery_timeout)
        self._max_bytes = max_buffered_bytes

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
        return IdempotentProducer(
            brokers,
            delivery_timeout=self._delivery_timeout,
            max_buffered=self._max_bytes,
            compression=self._codec,
            request_timeout=self._request_timeout,
            first_partition=random.randrange(MANY),
            observer=self._observer,
        )

    def __repr__(self) -> str:
        servers = ", ".join(map(str, self._cluster.bootstrap))
        return f"<Producer {self._state}, brokers: {servers}>"


def _is_closed(outcome: RecordPosition | Error) -> bool:
    return isinstance(outcome, ClosedError)
