"""One record of a share group, as the application meets it.

`Record` is the class of `untyped`, with the types of key and value for type checkers.
"""

from typing import TYPE_CHECKING, Generic

from typing_extensions import TypeVar

from sharecons import untyped
from sharecons.untyped import (
    ACCEPT,
    DETACHED,
    REJECT,
    RELEASE,
    RENEW,
    AcknowledgeType,
    Headers,
    Holder,
    TimestampType,
    TopicPartition,
)

__all__ = [
    "ACCEPT",
    "DETACHED",
    "REJECT",
    "RELEASE",
    "RENEW",
    "AcknowledgeType",
    "Headers",
    "Holder",
    "KeyT",
    "Record",
    "TimestampType",
    "TopicPartition",
    "ValueT",
]

KeyT = TypeVar("KeyT", default=bytes)
ValueT = TypeVar("ValueT", default=bytes)

if TYPE_CHECKING:

    class Record(untyped.Record, Generic[KeyT, ValueT]):
        """See `untyped.Record`."""

        key: KeyT | None
        value: ValueT | None

else:
    Record = untyped.Record
