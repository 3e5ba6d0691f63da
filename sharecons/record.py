"""One record of a share group, as the application meets it.

`Record` is the class of `untyped`, with the types of key and value for type checkers.
"""

from typing import TYPE_CHECKING, Generic

from typing_extensions import TypeVar

from sharecons import _record
from sharecons._record import (
    ACCEPT,
    DETACHED,
    REJECT,
    RELEASE,
    RENEW,
    AcknowledgeType,
    AckTarget,
    Headers,
    TimestampType,
    TopicPartition,
)

__all__ = [
    "ACCEPT",
    "DETACHED",
    "REJECT",
    "RELEASE",
    "RENEW",
    "AckTarget",
    "AcknowledgeType",
    "Headers",
    "KeyT",
    "Record",
    "TimestampType",
    "TopicPartition",
    "ValueT",
]

KeyT = TypeVar("KeyT", default=bytes)
ValueT = TypeVar("ValueT", default=bytes)

if TYPE_CHECKING:

    class Record(_record.Record, Generic[KeyT, ValueT]):
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

        key: KeyT | None
        value: ValueT | None

else:
    Record = _record.Record
