"""The outcome of an attempt as attributes and as an error."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sharecons.guard import is_a
from sharecons.otel.attributes import error_type_of
from sharecons.worker.outcomes import (
    Accepted,
    DeadLettered,
    LockLost,
    Moved,
    Rejected,
    Released,
    RetryAfter,
    decision_of,
)

__all__ = ["CANCELLED", "disposition_of", "failure_of"]

DISPOSITIONS: Final[Mapping[type, str]] = {
    Accepted: "accept",
    RetryAfter: "retry",
    Moved: "move",
    Rejected: "reject",
    DeadLettered: "dead_letter",
    Released: "release",
    LockLost: "lock_lost",
}

CANCELLED: Final = "cancelled"
"""The error type of an operation that was cancelled, on every event loop."""

NOT_CANCELLED: Final = (
    Exception,
    BaseExceptionGroup,
    GeneratorExit,
    KeyboardInterrupt,
    SystemExit,
)
"""All exceptions that Python has, except the cancellations of event loops."""


def disposition_of(outcomes: Sequence[Any]) -> str | None:
    """Return what becomes of the records; None if that is not known, or not one."""
    if len(outcomes) == 1:
        return DISPOSITIONS.get(type(outcomes[0]))
    found = {DISPOSITIONS.get(type(outcome)) for outcome in outcomes}
    return found.pop() if len(found) == 1 else None


def failure_of(
    raised: BaseException | None, outcomes: Sequence[Any] = ()
) -> tuple[str | None, BaseException | None]:
    """Return the error type of an operation, and the exception to record.

    `Retry`, `Reject` and `DeadLetter` are decisions, not errors. A cancellation is a
    timeout or a lost lock if the outcomes say so.
    """
    if raised is not None:
        if decision_of(raised) is not None:
            return None, None
        if is_a(raised, NOT_CANCELLED):
            return error_type_of(raised), raised
    if any(isinstance(outcome, LockLost) for outcome in outcomes):
        return "lock_lost", None
    for outcome in outcomes:
        error = getattr(outcome, "error", None)
        if error is not None and decision_of(error) is None:
            return error_type_of(error), error
    return (CANCELLED, None) if raised is not None else (None, None)
