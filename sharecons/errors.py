"""All exceptions of sharecons.

    Error
    ├── ConfigurationError (also ValueError)   an argument is invalid
    ├── ConsumerStateError                     called at the wrong time
    │   ├── ClosedError                        the consumer is closed
    │   ├── NotSubscribedError                 no topic to consume
    │   └── WrongThreadError                   called outside of its event loop
    ├── RecordStateError                       the record is already acknowledged
    │   └── LockLostError                      its lock was lost with the connection
    ├── RecordsError                           records that cannot be delivered
    │   ├── CorruptRecordsError                a batch whose bytes are damaged
    │   └── DeserializationError               a deserializer raised
    ├── CallbackError                          on_acknowledged raised
    ├── ConnectionFailedError                  no broker, or a broken connection
    │   ├── RequestTimedOutError (also TimeoutError) no response in time
    │   └── ProtocolError                      an invalid response
    ├── AuthenticationError                    either side rejected the other
    ├── BrokerError                            the broker returned an error code
    │   ├── AuthorizationError                 not allowed
    │   └── GroupError                         the group rejected this member
    ├── UnsupportedVersionError                the broker is too old
    ├── BackgroundTaskError                    a task of the consumer failed
    ├── OutdatedPlanError                      the group changed after planning
    └── CommitTimeoutError (also TimeoutError) results still pending

A class exists only where a caller would act differently; other details are
attributes. A test compares this tree with the classes.
"""

from typing import TYPE_CHECKING, Final, TypeVar

from sharecons._errors import Error, RecordStateError
from sharecons.guard import text_by
from sharecons.plain_copy import plain_copy

if TYPE_CHECKING:
    from sharecons.record import Record

__all__ = [
    "AuthenticationError",
    "AuthorizationError",
    "BackgroundTaskError",
    "BrokerError",
    "CallbackError",
    "ClosedError",
    "CommitTimeoutError",
    "ConfigurationError",
    "ConnectionFailedError",
    "ConsumerStateError",
    "CorruptRecordsError",
    "DeserializationError",
    "Error",
    "GroupError",
    "LockLostError",
    "NotSubscribedError",
    "OutdatedPlanError",
    "ProtocolError",
    "RecordStateError",
    "RecordsError",
    "RequestTimedOutError",
    "UnsupportedVersionError",
    "WrongThreadError",
]
__dir__ = __all__.copy

ErrorT = TypeVar("ErrorT", bound=BaseException)

RETRIABLE_CODES: Final = frozenset(
    [
        *(2, 3, 5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 41, 51, 56, 70, 71, 72, 74, 75),
        *(78, 80, 83, 84, 88, 89, 100, 103, 106, 122, 123, 133),
    ]
)
"""Kafka's error codes whose exception is a RetriableException in Kafka 4.4."""


class ConfigurationError(Error, ValueError):
    """An argument is invalid; nothing was started."""


class ConsumerStateError(Error):
    """The consumer is in a state that does not allow this call."""


class ClosedError(ConsumerStateError):
    """The consumer is closed: its records were released and cannot be acknowledged."""


class NotSubscribedError(ConsumerStateError):
    """There is no topic to consume; call `subscribe()` first."""


class WrongThreadError(ConsumerStateError):
    """Called from a thread or an event loop other than the consumer's.

    The call changed nothing. Send it to the consumer's event loop:
    `loop.call_soon_threadsafe(record.accept)`,
    `anyio.from_thread.run_sync(record.accept)`, `trio.from_thread.run_sync(...)`.
    """


class LockLostError(RecordStateError):
    """The record's acquisition lock was lost: the record will be delivered again.

    The broker releases all locks of a connection that ends, so the record can be
    processed by another consumer now. The call changed nothing.
    """


class RecordsError(Error):
    """Acquired records cannot be delivered to the application; they stay unaccepted."""


class CorruptRecordsError(RecordsError):
    """A record batch is damaged; reading continues.

    Its offsets were released for another delivery. If they are damaged again, they are
    rejected, so that they do not delay the records behind them.

    Attributes:
        topic, partition: where the batch comes from.
        first_offset, last_offset: the damaged range, both inclusive.
        rejected: the offsets were rejected, not released.
    """

    def __init__(
        self,
        reason: str,
        *,
        topic: str,
        partition: int,
        first_offset: int,
        last_offset: int,
        rejected: bool = False,
    ) -> None:
        super().__init__(
            f"{topic}-{partition}, offsets {first_offset} to {last_offset}: {reason}; "
            + (
                "they were rejected, as they are damaged at each delivery"
                if rejected
                else "they were released for another delivery"
            )
        )
        self.topic = topic
        self.partition = partition
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.rejected = rejected


class DeserializationError(RecordsError):
    """A deserializer raised an exception, which is the `__cause__`.

    Attributes:
        record: the record with its raw bytes; call `record.reject()` to archive it.
            An unacknowledged one is released when the next record is requested.
        part: "key" or "value".
    """

    def __init__(self, record: "Record[bytes, bytes]", part: str, where: str) -> None:
        super().__init__(
            f"{where}: the {part}_deserializer raised; the record was not accepted "
            "(to archive it, call reject() on the error's `record`)"
        )
        self.record: Record[bytes, bytes] = record
        self.part = part


class CallbackError(Error):
    """A callback of the application raised an exception, which is the `__cause__`.

    The consumer continues: read from it again. Each exception is raised once.

    Attributes:
        callback: the callback's name, "on_acknowledged".
    """

    def __init__(self, callback: str, error: BaseException) -> None:
        text = text_by(repr, plain_copy(error))
        super().__init__(f"{callback} raised {text}; the consumer continues")
        self.callback = callback


class ConnectionFailedError(Error):
    """A broker is unreachable, or the connection to it broke."""

    retriable = True


class RequestTimedOutError(ConnectionFailedError, TimeoutError):
    """A broker did not respond in time; the request might have had its effect."""


class ProtocolError(ConnectionFailedError):
    """A response is not valid Kafka protocol; the connection was dropped."""

    retriable = False


class AuthenticationError(Error):
    """The broker rejected this client's credentials, or its certificate is invalid.

    A retry would not help. A client that a broker has accepted before retries for 10 s
    with another token, or until the certificate is valid, before it raises this.
    """


class BrokerError(Error):
    """The broker returned an error code that the client cannot handle.

    Attributes:
        code: Kafka's error code.
        name: Kafka's name of the error.
        retriable: whether Kafka calls this code retriable.
    """

    def __init__(self, message: str, *, code: int, name: str) -> None:
        super().__init__(message)
        self.code = code
        self.name = name
        self.retriable = code in RETRIABLE_CODES


class AuthorizationError(BrokerError):
    """This principal is not allowed to use the group, a topic or the cluster."""


class GroupError(BrokerError):
    """The group rejected this member: invalid id, id in use, or the group is full."""


class UnsupportedVersionError(Error):
    """The broker does not support an API version that is needed."""


class BackgroundTaskError(Error):
    """A background task of the consumer failed; its exception is the `__cause__`.

    The consumer has closed its connections, so the broker delivers its records again,
    and a new consumer can continue. Please report the cause as a bug of sharecons,
    unless the program cancelled tasks that it did not start.
    """


class OutdatedPlanError(Error):
    """A group changed after its migration was planned: plan again."""


class CommitTimeoutError(Error, TimeoutError):
    """`commit()` timed out; requests continue, and the callback gets the results."""

    retriable = True


def fresh(error: ErrorT) -> ErrorT:
    """Return a new exception like a stored one, with the stored one as its cause.

    Raising the stored exception itself would extend its traceback each time, and tasks
    would share it. The new `BackgroundTaskError` has the cause of the first one. An
    exception that is not from sharecons (an exit) is returned unchanged.
    """
    if not isinstance(error, Error):
        return error
    again = type(error).__new__(type(error), *error.args)
    vars(again).update(vars(error))
    is_wrapper = isinstance(error, BackgroundTaskError)
    again.__cause__ = error.__cause__ if is_wrapper else error
    return again
