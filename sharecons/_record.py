"""A record of a share group as it is at run time; `record` says what types it has.

A record carries plain data, and verbs that mark what is to become of it. The
verbs are ordinary calls: they note a decision with the lease that the record
was acquired under, and the acknowledgement batcher carries it to the broker
(KIP-932, "Acknowledging delivery").
"""

import enum
from types import GenericAlias
from typing import Any, Final, NamedTuple, final

from mypy_extensions import mypyc_attr

from sharecons.errors import RecordStateError

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
    """What may be said of a delivered record; the numbers are the wire's (KIP-932)."""

    ACCEPT = 1
    """Processed: never delivered again to this group."""
    RELEASE = 2
    """Not processed: deliver it again, with a delivery count one higher."""
    REJECT = 3
    """Not processable: archive it, never deliver it again."""
    RENEW = 4
    """Still being processed: start the acquisition lock anew (KIP-1222)."""


ACCEPT: Final = AcknowledgeType.ACCEPT
RELEASE: Final = AcknowledgeType.RELEASE
REJECT: Final = AcknowledgeType.REJECT
RENEW: Final = AcknowledgeType.RENEW


class TopicPartition(NamedTuple):
    """A partition by its topic's name."""

    topic: str
    partition: int


class TimestampType(enum.IntEnum):
    """Who set the timestamp: the producer, or the broker that appended the record."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class AckTarget:
    """What a record was acquired under: `Lease`, in `protocol.acknowledge.leases`."""

    # A class of its own and no protocol: compiled, a record's verb then finds it at
    # once, where a protocol's method is looked up by name.
    __slots__ = ()

    def acknowledge(self, offset: int, kind: AcknowledgeType) -> None:
        raise NotImplementedError

    def deadline_of(self, offset: int) -> float:
        raise NotImplementedError

    def remaining_of(self, offset: int) -> float:
        raise NotImplementedError

    def holds(self, offset: int) -> bool:
        raise NotImplementedError


@final
class _Detached(AckTarget):
    """Holds the records that no consumer holds: unpickled ones, or hand-made ones."""

    __slots__ = ()

    def acknowledge(self, offset: int, kind: AcknowledgeType) -> None:
        raise RecordStateError(
            f"cannot {kind.name.lower()} offset {offset}: this record is a copy that "
            "no consumer holds (it was unpickled or made by hand); acknowledge the "
            "record that the consumer handed out"
        )

    def deadline_of(self, offset: int) -> float:
        return float("-inf")

    def remaining_of(self, offset: int) -> float:
        return 0.0

    def holds(self, offset: int) -> bool:
        return False


DETACHED: Final = _Detached()


# Compiled, a record is of no concern to the garbage collector, which would look at each
# one several times, and take longer than reading it from the wire. So no circle may go
# through one; what an application's deserializers make could close one, and goes into a
# `DeserializedRecord`. And so it is not Generic, which mypyc would not allow then.
@mypyc_attr(acyclic=True)
class Record:
    """A record that a share group delivered to this consumer.

    Attributes:
        topic, partition, offset: where the record lies in Kafka.
        timestamp: milliseconds since the epoch, as Kafka keeps it.
        timestamp_type: who set it.
        key, value: bytes, or None, or what the deserializers made of them.
        headers: pairs of name and bytes or None, in the producer's order.
        delivery_count: 1 at the first delivery, one more at each further one.

    A record pickles, but its copy cannot be acknowledged.
    """

    __slots__ = (
        "_holder",
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
        holder: AckTarget,
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
        self._holder = holder

    @property
    def lock_deadline(self) -> float:
        """When the acquisition lock ends, in seconds on `anyio.current_time()`'s clock.

        Never later than the broker's own idea of it. After it the record may be
        delivered to somebody else; `renew()` moves it. It is -inf once the lock was
        lost with its connection, or the consumer is closed.
        """
        return self._holder.deadline_of(self.offset)

    @property
    def lock_remaining(self) -> float:
        """Seconds until `lock_deadline`; 0.0 if it has passed or the lock is lost."""
        return self._holder.remaining_of(self.offset)

    @property
    def held(self) -> bool:
        """True while this consumer holds the record's acquisition lock.

        False once a verb settled the record, the lock's deadline has passed, the
        connection that the record came on has ended, or the consumer is closed.
        """
        return self._holder.holds(self.offset)

    def accept(self) -> None:
        """Mark the record as processed.

        The mark is sent by itself soon after, or with the next fetch; `commit()` waits
        for the broker's word. Saying the same again changes nothing; another verb
        replaces the mark as long as it was not sent.

        Raises:
            LockLostError: the lock was lost with its connection; the record will be
                delivered again.
            RecordStateError: the record was settled otherwise already, or is a copy.
            ClosedError: its consumer is closed; the record was released by that.
        """
        self._holder.acknowledge(self.offset, ACCEPT)

    def release(self) -> None:
        """Give the record back, to be delivered again; uses up a delivery.

        Raises: as `accept()`.
        """
        self._holder.acknowledge(self.offset, RELEASE)

    def reject(self) -> None:
        """Archive the record as one that cannot be processed.

        Raises: as `accept()`.
        """
        self._holder.acknowledge(self.offset, REJECT)

    def renew(self) -> None:
        """Ask for the acquisition lock to start anew; the record stays held (KIP-1222).

        Raises:
            UnsupportedVersionError: the broker is older than Kafka 4.2.
            Others as `accept()`.
        """
        self._holder.acknowledge(self.offset, RENEW)

    @classmethod
    def __class_getitem__(cls, types: Any) -> Any:
        return GenericAlias(cls, types)

    def __reduce__(self) -> tuple[object, ...]:
        fields = (
            self.topic,
            self.partition,
            self.offset,
            self.timestamp,
            self.timestamp_type,
            self.key,
            self.value,
            self.headers,
            self.delivery_count,
            DETACHED,
        )
        return (Record, fields)

    def deserialized(self, key: object, value: object) -> "DeserializedRecord":
        """Give the same record with other key and value."""
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
            self._holder,
        )

    def __repr__(self) -> str:
        return (
            f"<Record {self.topic}-{self.partition}@{self.offset} "
            f"delivery_count={self.delivery_count}>"
        )


@final
class DeserializedRecord(Record):
    """A record with values of the application's, which may refer back to it."""

    __slots__ = ()
