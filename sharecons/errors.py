"""Everything that sharecons raises.

    Error
    ├── ConfigurationError (also ValueError)   an argument makes no sense
    ├── ConsumerStateError                     called at the wrong time
    │   ├── ClosedError                        the consumer is closed
    │   ├── NotSubscribedError                 no topic to consume
    │   └── WrongThreadError                   called outside of its event loop
    ├── RecordStateError                       a record that was settled already
    │   └── LockLostError                      its lock was lost with the connection
    ├── RecordsError                           records that cannot be handed out
    │   ├── CorruptRecordsError                a batch whose bytes are damaged
    │   └── DeserializationError               a deserializer raised
    ├── CallbackError                          on_acknowledged raised
    ├── ConnectionFailedError                  no broker, or a broken connection
    │   ├── RequestTimedOutError (also TimeoutError) no answer in time
    │   └── ProtocolError                      an answer that is not Kafka's
    ├── AuthenticationError                    a broker does not know us, or we it
    ├── BrokerError                            the broker answered with an error code
    │   ├── AuthorizationError                 not allowed
    │   └── GroupError                         the group does not admit this member
    ├── UnsupportedVersionError                the broker is too old
    ├── BackgroundTaskError                    a task of the consumer failed
    ├── OutdatedPlanError                      a group moved on since it was planned
    └── CommitTimeoutError (also TimeoutError) results still under way

A class exists only where a caller would act differently; what else there is to
know is an attribute. A test compares this drawing with the classes.
"""

from typing import TYPE_CHECKING, Final, TypeVar

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

ErrorT = TypeVar("ErrorT", bound=BaseException)

RETRIABLE_CODES: Final = frozenset(
    [
        *(2, 3, 5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 41, 51, 56, 70, 71, 72, 74, 75),
        *(78, 80, 83, 84, 88, 89, 100, 103, 106, 122, 123, 133),
    ]
)
"""Kafka's error codes whose exception is a RetriableException in Kafka 4.4."""


class Error(Exception):
    """The base of all errors of sharecons; every other exception is a bug to report.

    Attributes:
        retriable: whether the same call may succeed later without a change.
    """

    retriable: bool = False


class ConfigurationError(Error, ValueError):
    """An argument makes no sense; nothing was started."""


class ConsumerStateError(Error):
    """The consumer cannot do that now."""


class ClosedError(ConsumerStateError):
    """The consumer is closed: what it held was released, nothing more can be said."""


class NotSubscribedError(ConsumerStateError):
    """There is no topic to consume; `subscribe()` first."""


class WrongThreadError(ConsumerStateError):
    """Called from a thread or an event loop other than the consumer's; changed nothing.

    Send the call to the event loop: `loop.call_soon_threadsafe(record.accept)`,
    `anyio.from_thread.run_sync(record.accept)`, `trio.from_thread.run_sync(...)`.
    """


class RecordStateError(Error):
    """The record is not held any more, or was settled in another way already."""


class LockLostError(RecordStateError):
    """The record's acquisition lock was lost: the record will be delivered again.

    The broker releases all locks of a connection that ends, so the record may be
    processed by another consumer now. The call changed nothing.
    """


class RecordsError(Error):
    """Records that were acquired but cannot be handed out; they were not accepted."""


class CorruptRecordsError(RecordsError):
    """A record batch is damaged: its offsets were released, later ones follow.

    Attributes:
        topic, partition: whose batch it is.
        first_offset, last_offset: the damaged range, both inclusive.
    """

    def __init__(
        self,
        reason: str,
        *,
        topic: str,
        partition: int,
        first_offset: int,
        last_offset: int,
    ) -> None:
        super().__init__(
            f"{topic}-{partition}, offsets {first_offset} to {last_offset}: {reason}; "
            "they were released for another delivery"
        )
        self.topic = topic
        self.partition = partition
        self.first_offset = first_offset
        self.last_offset = last_offset


class DeserializationError(RecordsError):
    """A deserializer raised; the exception it raised is this one's `__cause__`.

    Attributes:
        record: the record with its raw bytes; say `record.reject()` to be rid of it.
            Unless told otherwise, it is released when the next one is asked for.
        part: "key" or "value".
    """

    def __init__(self, record: "Record[bytes, bytes]", part: str, where: str) -> None:
        super().__init__(
            f"{where}: the {part}_deserializer raised; the record was not accepted "
            "(reject() it through the error's `record` to be rid of it)"
        )
        self.record: Record[bytes, bytes] = record
        self.part = part


class CallbackError(Error):
    """A callback of the application raised; its exception is the `__cause__`.

    The consumer continues: read from it again. It is raised once per exception.

    Attributes:
        callback: the callback's name, "on_acknowledged".
    """

    def __init__(self, callback: str, error: BaseException) -> None:
        super().__init__(f"{callback} raised {error!r}; the consumer continues")
        self.callback = callback


class ConnectionFailedError(Error):
    """A broker cannot be reached, or the connection to it broke."""

    retriable = True


class RequestTimedOutError(ConnectionFailedError, TimeoutError):
    """A broker did not answer in time; whether it acted is unknown."""


class ProtocolError(ConnectionFailedError):
    """What came back is not what Kafka would say; the connection was dropped."""

    retriable = False


class AuthenticationError(Error):
    """The broker does not take us for who we say we are, or shows no good certificate.

    Asking again changes nothing, so nothing is asked again by itself.
    """


class BrokerError(Error):
    """The broker answered with an error code that this client cannot mend.

    Attributes:
        code: Kafka's number for it.
        name: Kafka's name for it.
        retriable: whether Kafka calls this code retriable.
    """

    def __init__(self, message: str, *, code: int, name: str) -> None:
        super().__init__(message)
        self.code = code
        self.name = name
        self.retriable = code in RETRIABLE_CODES


class AuthorizationError(BrokerError):
    """The group, a topic or the cluster may not be used by this principal."""


class GroupError(BrokerError):
    """The group does not admit this member: its id is invalid, taken, or it is full."""


class UnsupportedVersionError(Error):
    """The broker does not speak what is needed."""


class BackgroundTaskError(Error):
    """A background task of the consumer failed; its exception is the `__cause__`.

    The consumer has cut its connections, so the broker delivers its records again. A
    new consumer can go on. Please report the cause as a bug of sharecons, unless the
    program cancelled tasks that it did not start.
    """


class OutdatedPlanError(Error):
    """A group moved on since its migration was planned: plan again."""


class CommitTimeoutError(Error, TimeoutError):
    """`commit()` ran out of time; the requests go on, the callback gets the results."""

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
