"""The outcomes of a record, and the exceptions by which a handler decides."""

from typing import NamedTuple

from sharecons.errors import ConfigurationError

__all__ = [
    "Accepted",
    "DeadLetter",
    "DeadLettered",
    "HandlerDecision",
    "LockLost",
    "Outcome",
    "Reject",
    "Rejected",
    "Released",
    "Retry",
    "RetryAfter",
    "Spilled",
]


class HandlerDecision(Exception):
    """The base class of what a handler raises to decide about its record."""


class Retry(HandlerDecision):
    """Try the record again, after `after` seconds; None is the policy's backoff.

    It counts as an attempt: after the policy's last one the record is a dead letter.
    """

    def __init__(self, after: float | None = None) -> None:
        if after is not None and not 0.0 <= after < float("inf"):
            raise ConfigurationError(
                f"Retry(after=...) takes seconds, not {after!r}; use 0 for no delay"
            )
        super().__init__(after)
        self.after = after


class Reject(HandlerDecision):
    """Archive the record: no consumer gets it again."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class DeadLetter(HandlerDecision):
    """Write the record to the dead-letter queue, and accept it.

    Without a dead-letter queue it is rejected.
    """

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class Accepted(NamedTuple):
    """The record is processed."""


class RetryAfter(NamedTuple):
    """The record is held, and tried again as attempt number `attempt`."""

    seconds: float
    attempt: int
    error: Exception | None = None


class Spilled(NamedTuple):
    """The record is written to a retry topic, and then accepted.

    It is tried again from there, after `seconds`, as attempt number `attempt`.
    """

    topic: str
    seconds: float
    attempt: int
    error: Exception | None = None


class Rejected(NamedTuple):
    """The record is archived; `error` is None if the handler decided it."""

    reason: str
    error: Exception | None = None


class DeadLettered(NamedTuple):
    """The record is written to the dead-letter queue, and then accepted."""

    reason: str
    error: Exception | None = None


class Released(NamedTuple):
    """The record is returned to the broker, which delivers it again."""

    reason: str
    error: Exception | None = None


class LockLost(NamedTuple):
    """The record's lock ended: the broker delivers it again, perhaps to another member.

    Its handler was cancelled, and nothing was acknowledged.
    """


Outcome = (
    Accepted | RetryAfter | Spilled | Rejected | DeadLettered | Released | LockLost
)
