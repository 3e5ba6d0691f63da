"""The actions that a `WorkerMachine` returns; the shell carries them out in order."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from sharecons._record import ACCEPT, AcknowledgeType
from sharecons.worker.machine.item import Call, WorkItem
from sharecons.worker.outcomes import (
    DeadLettered,
    Moved,
    RecordOutcome,
    Rejected,
)

__all__ = [
    "NOTHING",
    "Acknowledge",
    "Action",
    "AttemptFailed",
    "CancelCall",
    "Copy",
    "GivenUp",
    "HandlersCancelled",
    "LocksLost",
    "OutcomeDecided",
    "Stop",
    "Warn",
]


class Acknowledge(NamedTuple):
    """Acknowledge the record: it has left the machine."""

    item: WorkItem
    kind: AcknowledgeType = ACCEPT


class Copy(NamedTuple):
    """Write the record to a retry topic or to the dead-letter topic.

    Then call `on_copied` or `on_copy_failed` with this action.

    Attributes:
        failures: how often this was tried before.
        after: seconds to wait before.
    """

    item: WorkItem
    outcome: Moved | DeadLettered
    failures: int = 0
    after: float = 0.0


class CancelCall(NamedTuple):
    """Cancel the handler: all records of its call have outcomes."""

    call: Call
    reason: str


class OutcomeDecided(NamedTuple):
    """Report an outcome to the application, before it is carried out.

    Attributes:
        attempt: the number of the last attempt.
        seconds: the time of the handler; None if the outcome follows from no call.
        error: the exception, unless it is a decision; None if there is none.
    """

    item: WorkItem
    outcome: RecordOutcome
    attempt: int
    seconds: float | None = None
    error: Exception | None = None


class AttemptFailed(NamedTuple):
    """Log an exception of a handler."""

    item: WorkItem
    attempt: int
    error: Exception
    outcome: RecordOutcome
    seconds: float


class GivenUp(NamedTuple):
    """Log a record that is rejected, or whose dead letter is confirmed.

    Attributes:
        written: topic, partition and offset of the dead letter.
    """

    item: WorkItem
    outcome: Rejected | DeadLettered
    written: tuple[str, int, int] | None = None


class LocksLost(NamedTuple):
    """Log records whose locks are lost; `running` of them were in a call."""

    items: Sequence[WorkItem]
    running: int
    reason: str


class HandlersCancelled(NamedTuple):
    """Log the records whose handlers the end of the worker has cancelled."""

    items: Sequence[WorkItem]


class Warn(NamedTuple):
    """Log a WARNING."""

    event: str
    fields: Mapping[str, Any]


class Stop(NamedTuple):
    """Stop the worker, because a handler has raised this."""

    error: Exception


Action = (
    Acknowledge
    | Copy
    | CancelCall
    | OutcomeDecided
    | AttemptFailed
    | GivenUp
    | LocksLost
    | HandlersCancelled
    | Warn
    | Stop
)

NOTHING: Final[Sequence[Action]] = ()
