"""Log lines about failed attempts, and about records that do not end in success.

A kind of failure is a type of exception and the line of code that failed. Of each kind,
the first LINES records in a minute are followed: each of their attempts has a line. Of
others, the first attempt has one, up to FIRST_LINES a minute. Further ones are counted,
and their number is logged when the minute ends. So a database that is down does not
fill the log, and another failure beside it is still seen. The end of a record that is
dead-lettered or rejected always has a line, with what its last attempt raised.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, final

from sharecons.error_text import code_line
from sharecons.errors import Error
from sharecons.guard import qualified_type_name
from sharecons.net.io.event_loop import FOREVER, Clock
from sharecons.worker.machine.actions import AttemptFailed, GivenUp, LocksLost
from sharecons.worker.machine.item import WorkItem
from sharecons.worker.outcomes import (
    DeadLettered,
    Moved,
    RecordOutcome,
    Rejected,
    Released,
    RetryAfter,
)
from sharecons.worker.positions import item_position, items_text, written_text
from sharecons.worker.quoted_records import SafeTexts

__all__ = ["PERIOD", "FailureLog", "LineLimit"]

LINES: Final = 10
PERIOD: Final = 60
"""Up to LINES lines of one kind in PERIOD seconds."""

FIRST_LINES: Final = 100
"""As LINES, for first attempts."""


@final
class LineLimit:
    """Limits the lines of each kind in a period, and counts the others."""

    def __init__(self, lines: int = LINES, period: float = PERIOD) -> None:
        self._lines = lines
        self._period = period
        self._ends: float | None = None
        self._written: Counter[Hashable] = Counter()
        self._suppressed: Counter[Hashable] = Counter()

    def allows(self, kind: Hashable, lines: int | None = None) -> bool:
        """Count a line; return whether to write it.

        Args:
            lines: of this kind, if fewer or more are allowed in this case.
        """
        if self._written[kind] < (self._lines if lines is None else lines):
            self._written[kind] += 1
            return True
        self._suppressed[kind] += 1
        return False

    def take_suppressed(self, now: float) -> dict[Hashable, int]:
        """Return how many lines of each kind were not written in a period that ended.

        Empty until the period ends. It begins with the first call after a line.
        """
        if not self._written:
            return {}
        if self._ends is None:
            self._ends = now + self._period
        if now < self._ends:
            return {}
        suppressed = dict(self._suppressed)
        self._suppressed.clear()
        self._written.clear()
        self._ends = None
        return suppressed


@final
class FailureLog:
    """Writes the lines; `flush` must be called once a second or so."""

    def __init__(self, log: Any, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._attempts = LineLimit()
        self._followed = LineLimit()
        self._tracebacks = LineLimit()
        self._acknowledgements = LineLimit()
        self._texts = SafeTexts()

    def warn(self, event: str, fields: Mapping[str, Any]) -> None:
        self._log.warning(event, **fields)

    def on_failed_attempt(self, failed: AttemptFailed) -> None:
        """Log an attempt that raised an exception."""
        error = failed.error
        at = code_line(error)
        if self._is_shown(failed, (qualified_type_name(error), at)):
            self._log.warning(
                "attempt failed",
                **item_position(failed.item),
                attempt=failed.attempt,
                seconds=round(failed.seconds, 3),
                error=self._texts.error(error, failed.item),
                at=at,
                then=_what_follows(failed.outcome),
            )

    def _is_shown(self, failed: AttemptFailed, kind: Hashable) -> bool:
        """Return whether an attempt has a line."""
        item = failed.item
        if not item.is_followed:
            item.is_followed = self._followed.allows(kind)
        if item.is_followed:
            return True
        return self._attempts.allows(kind, FIRST_LINES if failed.attempt == 1 else 0)

    def on_given_up(self, given_up: GivenUp) -> None:
        """Log a record that is rejected or dead-lettered, with a traceback.

        Every such record has its line; only the traceback is limited.
        """
        item, outcome, written = given_up
        error = outcome.error
        fields = {
            **item_position(item),
            "attempt": item.attempt,
            "reason": self._texts.reason(outcome.reason, error, item),
        }
        if written is not None:
            fields["dead_letter"] = written_text(written)
        # Reject and DeadLetter are no errors.
        raised = item.error if error is None else error
        if raised is not None:
            fields["at"] = code_line(raised)
        if (
            error is not None
            and not self._texts.hides(error, item)
            and self._tracebacks.allows(qualified_type_name(error))
        ):
            fields["exc_info"] = error
        is_rejected = isinstance(outcome, Rejected)
        self._log.warning(
            "record rejected" if is_rejected else "record dead-lettered", **fields
        )

    def on_not_acknowledged(self, item: WorkItem, error: Error) -> None:
        """Log a record that has an outcome, and is delivered again nevertheless.

        A lost connection has as many of them as there are handlers.
        """
        if self._acknowledgements.allows(""):
            self._log.warning(
                "acknowledgement failed; the record is delivered again, except after "
                "its last delivery",
                **item_position(item),
                error=str(error),
            )

    def on_handlers_cancelled(self, items: Sequence[WorkItem]) -> None:
        """Log the records whose handlers were cancelled by the end of the run."""
        self._log.warning(
            "handlers cancelled, because the worker ends; their records are "
            "released and delivered again, except last deliveries",
            records=len(items),
            positions=items_text(items),
        )

    def on_locks_lost(self, lost: LocksLost) -> None:
        """Log records whose locks are lost, in one line, with the first position."""
        self._log.warning(
            "locks lost; running handlers of these records are cancelled, and the "
            "records are delivered again, except last deliveries",
            records=len(lost.items),
            running=lost.running,
            reason=lost.reason,
            **item_position(lost.items[0]),
        )

    def flush(self, *, at_end: bool = False) -> None:
        """Log how many lines were left out in a period that has ended.

        Args:
            at_end: end the period now, since no more lines follow.
        """
        self._texts.end()
        now = FOREVER if at_end else self._clock()
        self._followed.take_suppressed(now)
        for kind, count in self._attempts.take_suppressed(now).items():
            assert isinstance(kind, tuple), "a type and a line"
            exception, at = kind
            self._log.warning(
                "more attempts failed",
                exception=exception,
                at=at,
                count=count,
                within_seconds=PERIOD,
            )
        self._tracebacks.take_suppressed(now)
        for count in self._acknowledgements.take_suppressed(now).values():
            self._log.warning(
                "more acknowledgements failed", count=count, within_seconds=PERIOD
            )


def _what_follows(outcome: RecordOutcome) -> str:
    match outcome:
        case RetryAfter(seconds):
            return f"attempt {outcome.attempt} in {seconds:.3g} s"
        case Moved(topic, seconds):
            return f"attempt {outcome.attempt} in {seconds:.3g} s, from {topic}"
        case DeadLettered():
            return "dead letter"
        case Rejected():
            return "rejected"
        case Released(reason):
            return f"released: {reason}"
    return type(outcome).__name__
