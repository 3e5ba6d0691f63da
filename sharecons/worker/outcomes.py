"""The outcomes of a record, and the exceptions by which a handler decides."""

from typing import Final, Literal, NamedTuple, cast

from sharecons.config.validation import HOUR, check_number
from sharecons.error_text import text_of
from sharecons.guard import exceptions_of, guarded, is_a
from sharecons.plain_texts import is_plain

__all__ = [
    "Accepted",
    "DeadLetter",
    "DeadLetterCause",
    "DeadLettered",
    "HandlerDecision",
    "LockLost",
    "Moved",
    "RecordOutcome",
    "Reject",
    "Rejected",
    "Released",
    "Retry",
    "RetryAfter",
    "decision_of",
    "delay_of",
    "logs_reason",
    "reason_of",
]
__dir__ = __all__.copy


MAX_DELAY: Final = 365 * 24 * HOUR


class HandlerDecision(Exception):
    """The base class of what a handler raises to decide about its record."""


class Retry(HandlerDecision):
    """Try the record again, after `after` seconds; None is the policy's backoff.

    It counts as an attempt: after the policy's last one the record is a dead letter.

    Raises:
        ConfigurationError: `after` is not a number of seconds up to a year.
    """

    def __init__(self, after: float | None = None) -> None:
        if after is not None:
            check_number("Retry(after=...)", after, 0.0, MAX_DELAY)
        super().__init__(after)
        self.after = after


class Reject(HandlerDecision):
    """Archive the record: no consumer gets it again.

    Args:
        reason: for the log: a text, an exception, or any object with a text.
        log_reason: log the reason even if it quotes the record's key or value, for
            example an id that is no secret.
    """

    def __init__(self, reason: object = "", *, log_reason: bool = False) -> None:
        self.reason = text_of(reason)
        super().__init__(self.reason)
        self.log_reason = log_reason


class DeadLetter(HandlerDecision):
    """Write the record to the dead-letter queue, and accept it.

    Without a dead-letter queue it is rejected.

    Args:
        reason: for its header and the log: a text, an exception, or any object with a
            text.
        log_reason: log the reason even if it quotes the record's key or value, for
            example an id that is no secret.
    """

    def __init__(self, reason: object = "", *, log_reason: bool = False) -> None:
        self.reason = text_of(reason)
        super().__init__(self.reason)
        self.log_reason = log_reason


def decision_of(error: BaseException) -> HandlerDecision | None:
    """Return the decision that an exception is, or that it contains as its only one.

    A task group wraps what its tasks raise in an exception group. If several tasks have
    failed, nothing is decided.
    """
    while len(exceptions := exceptions_of(error)) == 1:
        error = exceptions[0]
    return cast("HandlerDecision", error) if is_a(error, HandlerDecision) else None


def reason_of(decision: HandlerDecision) -> str:
    """Return the reason of a `Reject` or `DeadLetter`.

    A subclass without `super().__init__()` has none, or one of any type: then it is
    the exception's text.
    """
    reason = guarded(lambda: cast("Reject", decision).reason, lambda _: decision)
    return text_of(reason if is_plain(reason) else decision)


def logs_reason(decision: HandlerDecision) -> bool:
    """Return whether to log the reason of a `Reject` or `DeadLetter` that quotes."""
    return guarded(lambda: bool(cast("Reject", decision).log_reason), lambda _: False)


def delay_of(decision: HandlerDecision) -> float | None:
    """Return the delay of a `Retry`; None for the policy's.

    Also None for a subclass that has no delay, or an invalid one.
    """

    def checked() -> float | None:
        after = cast("Retry", decision).after
        return None if after is None else Retry(after).after

    return guarded(checked, lambda _: None)


class Accepted(NamedTuple):
    """The record is processed."""


class RetryAfter(NamedTuple):
    """The record is held, and tried again as attempt number `attempt`."""

    seconds: float
    attempt: int
    error: Exception | None = None


class Moved(NamedTuple):
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


DeadLetterCause = Literal[
    "error",
    "decision",
    "deserialization",
    "deliveries",
    "last_delivery",
    "no_handler",
]


class DeadLettered(NamedTuple):
    """The record is written to the dead-letter queue, and then accepted.

    Attributes:
        cause: "error": its last attempt failed. "decision": its handler raised
            `DeadLetter`. "deserialization": a deserializer could not read it.
            "deliveries": it was delivered more often than `max_attempts`.
            "last_delivery": it would be released, or its lock is lost, on its last
            delivery. "no_handler": no handler processes it.
    """

    reason: str
    error: Exception | None = None
    cause: DeadLetterCause = "error"


class Released(NamedTuple):
    """The record is returned to the broker, which delivers it again."""

    reason: str
    error: Exception | None = None


class LockLost(NamedTuple):
    """The record's lock ended: the broker delivers it again, perhaps to another member.

    Its handler was cancelled, and nothing was acknowledged.
    """


RecordOutcome = (
    Accepted | RetryAfter | Moved | Rejected | DeadLettered | Released | LockLost
)
