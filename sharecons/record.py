"""The public `Record`: the class of `_record`, with types of key and value.

Only type checkers see the type parameters.
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
            topic, partition, offset: the record's position in Kafka.
            timestamp: milliseconds since the epoch.
            timestamp_type: whether the producer or the broker set the timestamp.
            key, value: bytes or None, or the results of the deserializers. The value
                is a memoryview if the consumer has `values="memoryview"`.
            headers: pairs of a name and bytes or None, in the producer's order.
            delivery_count: 1 at the first delivery, then one more each time.

        Records can be pickled; the copy cannot be acknowledged.
        """

        key: KeyT | None
        value: ValueT | None

else:
    Record = _record.Record
