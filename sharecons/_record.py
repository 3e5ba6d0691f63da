"""`Record` as it exists at run time; `record` adds the types of key and value.

A record holds plain data, and has methods that acknowledge it. They do no I/O: they
pass the acknowledgement to the lease that the record was acquired under, and the
acknowledgement batcher sends it to the broker (KIP-932, "Acknowledging delivery").
"""

import enum
from math import inf
from types import GenericAlias
from typing import Any, Final, NamedTuple, final, overload

from mypy_extensions import mypyc_attr

from sharecons._errors import RecordStateError

__all__ = [
    "AckTarget",
    "AcknowledgeType",
    "DeserializedRecord",
    "Headers",
    "Record",
    "TimestampType",
    "TopicPartition",
]

Headers = tuple[tuple[str, bytes | None], ...]


class AcknowledgeType(enum.IntEnum):
    """The acknowledgement types of KIP-932, with their numbers on the wire."""

    ACCEPT = 1
    """Processed: not delivered to this group again."""
    RELEASE = 2
    """Not processed: deliver it again, with a delivery count one higher."""
    REJECT = 3
    """Cannot be processed: archive it, do not deliver it again."""
    RENEW = 4
    """Still being processed: restart the acquisition lock (KIP-1222)."""


ACCEPT: Final = AcknowledgeType.ACCEPT
RELEASE: Final = AcknowledgeType.RELEASE
REJECT: Final = AcknowledgeType.REJECT
RENEW: Final = AcknowledgeType.RENEW


class TopicPartition(NamedTuple):
    """A partition, identified by the name of its topic."""

    topic: str
    partition: int


class TimestampType(enum.IntEnum):
    """Origin of the timestamp: the producer, or the broker that appended the record."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


@mypyc_attr(allow_interpreted_subclasses=True)  # by `testing.made_records`
class AckTarget:
    """A lease as records and batches call it (see `protocol.acknowledge.leases`)."""

    # A base class instead of a Protocol: compiled code calls its methods directly, but
    # looks the methods of a Protocol up by name.
    __slots__ = ()

    def acknowledge(self, offset: int, kind: AcknowledgeType) -> None:
        raise NotImplementedError

    def release_later(self, offset: int, after: object) -> None:
        raise NotImplementedError

    def deadline_of(self, offset: int) -> float:
        raise NotImplementedError

    def remaining_of(self, offset: int) -> float:
        raise NotImplementedError

    def holds(self, offset: int) -> bool:
        raise NotImplementedError

    def is_open(self, offset: int) -> bool:
        raise NotImplementedError

    def acknowledge_open(self, start: int, stop: int, kind: AcknowledgeType) -> None:
        raise NotImplementedError

    def release_open_later(self, start: int, stop: int, after: object) -> None:
        raise NotImplementedError


@final
class _Detached(AckTarget):
    """The target of records without a consumer: unpickled ones, or made by hand."""

    __slots__ = ()

    def acknowledge(self, offset: int, kind: AcknowledgeType) -> None:
        raise RecordStateError(
            f"cannot {kind.name.lower()} offset {offset}: this record is a copy that "
            "does not belong to a consumer (it was unpickled or made by hand); "
            "acknowledge the record that the consumer returned"
        )

    def release_later(self, offset: int, after: object) -> None:
        self.acknowledge(offset, RELEASE)

    def deadline_of(self, offset: int) -> float:
        return -inf

    def remaining_of(self, offset: int) -> float:
        return 0.0

    def holds(self, offset: int) -> bool:
        return False


DETACHED: Final = _Detached()


# Compiled, a record is not tracked by the garbage collector, which would visit each one
# several times and take longer than decoding it. So no reference cycle must contain
# one. Objects made by deserializers could form a cycle, so they go into a
# `DeserializedRecord`. mypyc does not allow an acyclic class to be Generic.
@mypyc_attr(acyclic=True, allow_interpreted_subclasses=True)
class Record:
    """A record that a share group delivered to this consumer.

    Attributes:
        topic, partition, offset: the record's position in Kafka.
        timestamp: milliseconds since the epoch.
        timestamp_type: whether the producer or the broker set the timestamp.
        key, value: bytes or None, or the results of the deserializers. The value
            is a memoryview if the consumer has `values="memoryview"`.
        headers: pairs of a name and bytes or None, in the producer's order.
        delivery_count: 1 at the first delivery, then one more each time.

    Records can be pickled; the copy cannot be acknowledged.
    """

    __slots__ = (
        "_ack_target",
        "delivery_count",
        "headers",
        "key",
        "offset",
        "partition",
        "timestamp",
        "timestamp_type",
        "topic",
        "value",
    )

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        timestamp: int,
        timestamp_type: TimestampType,
        key: Any,
        value: Any,
        headers: Headers,
        delivery_count: int,
        ack_target: AckTarget,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestamp = timestamp
        self.timestamp_type = timestamp_type
        self.key = key
        self.value = value
        self.headers = headers
        self.delivery_count = delivery_count
        self._ack_target = ack_target

    @property
    def lock_deadline(self) -> float:
        """When the acquisition lock ends, in seconds on `anyio.current_time()`'s clock.

        The broker's deadline is never earlier. After it, the record can be delivered to
        another consumer; `renew()` extends it. It is -inf after the connection that
        held the lock has ended, or the consumer is closed.
        """
        return self._ack_target.deadline_of(self.offset)

    @property
    def lock_remaining(self) -> float:
        """Seconds until `lock_deadline`; 0.0 if it has passed or the lock is lost."""
        return self._ack_target.remaining_of(self.offset)

    @property
    def held(self) -> bool:
        """True while this consumer holds the record's acquisition lock.

        False after the record was accepted, released or rejected, its lock's deadline
        has passed, the connection that it arrived on has ended, or the consumer is
        closed.
        """
        return self._ack_target.holds(self.offset)

    def accept(self) -> None:
        """Mark the record as processed.

        The acknowledgement is sent shortly after, or with the next fetch; `commit()`
        waits for the broker's response. Calling `accept()` again changes nothing;
        `release()` or `reject()` replaces the acknowledgement while it is not yet sent.
        A release with a delay is not sent before the delay has passed.

        Raises:
            LockLostError: the lock was lost with its connection; the record will be
                delivered again.
            RecordStateError: the record is already acknowledged in another way, is a
                copy, or belongs to a worker, which acknowledges it.
            ClosedError: the consumer is closed; closing it released the record.
        """
        self._ack_target.acknowledge(self.offset, ACCEPT)

    @overload
    def release(self) -> None: ...

    @overload
    def release(self, *, after: float | None) -> None: ...

    def release(self, *, after: Any = None) -> None:
        """Return the record to the broker, to be delivered again.

        This uses up one of its deliveries.

        Args:
            after: seconds until the release, at most 3600; None releases now. Brokers
                have no delays: until then the consumer keeps the record's lock, and
                renews it (Kafka 4.2). The record uses up a place in the partition's
                window of records in flight. Meanwhile `held` is False, and another
                call replaces the delayed release. `commit()` does not wait for it;
                closing the consumer releases the record. Where locks cannot be
                renewed, it is released when its lock ends, if that is earlier.

        Raises:
            ConfigurationError: `after` is no number from 0 to 3600.
            RecordStateError: with `after`, a release was sent.
            Error: others, as `accept()`.
        """
        if after is None:
            self._ack_target.acknowledge(self.offset, RELEASE)
        else:
            self._ack_target.release_later(self.offset, after)

    def reject(self) -> None:
        """Archive the record, because it cannot be processed.

        Raises the same errors as `accept()`.
        """
        self._ack_target.acknowledge(self.offset, REJECT)

    def renew(self) -> None:
        """Restart the acquisition lock; the record stays held (KIP-1222).

        Raises:
            UnsupportedVersionError: the broker is older than Kafka 4.2.
            Error: others, as `accept()`.
        """
        self._ack_target.acknowledge(self.offset, RENEW)

    @classmethod
    def __class_getitem__(cls, types: Any) -> Any:
        return GenericAlias(cls, types)

    def __reduce__(self) -> tuple[object, ...]:
        value = self.value
        if isinstance(value, memoryview):
            value = value.tobytes()  # views cannot be pickled
        first = (self.topic, self.partition, self.offset, self.timestamp)
        last = (self.headers, self.delivery_count, DETACHED)
        return (Record, (*first, self.timestamp_type, self.key, value, *last))

    def with_values(self, key: object, value: object) -> "DeserializedRecord":
        """Return the same record with another key and value."""
        return DeserializedRecord(
            self.topic,
            self.partition,
            self.offset,
            self.timestamp,
            self.timestamp_type,
            key,
            value,
            self.headers,
            self.delivery_count,
            self._ack_target,
        )

    def __repr__(self) -> str:
        return (
            f"<Record {self.topic}-{self.partition}@{self.offset} "
            f"delivery_count={self.delivery_count}>"
        )


@final
class DeserializedRecord(Record):
    """A record whose key and value come from deserializers, and can refer to it."""

    __slots__ = ()
