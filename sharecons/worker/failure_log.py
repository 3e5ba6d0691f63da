"""Log lines about failed attempts, records that do not end in success, and copies.

A kind of failure is a type of exception and the line of code that failed. Of each kind,
the first LINES records in a minute are followed: each of their attempts has a line. Of
others, the first attempt has one, up to FIRST_LINES a minute. Further ones are counted,
and their number is logged when the minute ends. So a database that is down does not
fill the log, and another failure beside it is still seen. The end of a record that is
dead-lettered or rejected always has a line, with what its last attempt raised.

Copies of records that cannot be written are one problem for each topic.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, final

from sharecons.error_text import code_line
from sharecons.errors import BrokerError, Error
from sharecons.guard import qualified_type_name
from sharecons.net.io.event_loop import FOREVER, Clock
from sharecons.net.problem_log import ProblemLog, ProblemTexts
from sharecons.protocol.codes import Code
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
from sharecons.worker.positions import (
    item_position,
    item_text,
    items_text,
    written_text,
)
from sharecons.worker.quoted_records import SafeTexts

__all__ = ["PERIOD", "CopyLog", "FailureLog", "LineLimit"]

LINES: Final = 10
PERIOD: Final = 60
"""Up to LINES lines of one kind in PERIOD seconds."""

FIRST_LINES: Final = 100
"""As LINES, for first attempts."""


NOT_WRITTEN: Final = 10
"""Records that are named in the log if their last dead letters cannot be written."""

MISSING: Final = (Code.UNKNOWN_TOPIC_OR_PARTITION, Code.UNKNOWN_TOPIC_ID)

QUIET: Final = 120.0
"""Seconds without a failure after which a problem has ended: its records have lost
their locks. The writes of a copy fail after up to 30 s, and follow each other after up
to 30 s."""

NO_TOPIC: Final = ProblemTexts(
    begins="a topic for copies does not exist: failed records are held until it does, "
    "and can stall their partitions. Create it again",
    lasts="the topic for copies still does not exist: failed records are held",
    ends="the topic for copies exists again",
)
NO_WRITE: Final = ProblemTexts(
    begins="copies of failed records not written, trying again: the records are held",
    lasts="copies of failed records still not written, trying again",
    ends="copies of failed records are written again",
)


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


@final
class CopyLog:
    """Logs failed writes, as one problem for each topic.

    Every record that fails meanwhile needs the topic, so a line for each would bury
    the others.

    Args:
        clock: returns the time in seconds.
    """

    def __init__(self, log: Any, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._failing: dict[str, set[WorkItem]] = {}
        self._no_topic = ProblemLog(self._log, NO_TOPIC)
        self._no_write = ProblemLog(self._log, NO_WRITE)

    def on_failure(self, topic: str, error: BaseException, item: WorkItem) -> None:
        """Begin or extend the problem of `topic`: a copy was not written."""
        failing = self._failing.setdefault(topic, set())
        failing.add(item)
        problems = self._no_topic if _is_missing(error) else self._no_write
        problems.on_failure(
            topic,
            self._clock(),
            copy_topic=topic,
            records=len(failing),
            record=item_text(item),
            reason=str(error),
        )

    def on_written(self, topic: str, item: WorkItem) -> None:
        """End the problem of `topic`; this is quick while no copy has failed."""
        if not self._failing or topic not in self._failing:
            return
        now = self._clock()
        self._no_topic.on_success(topic, now)
        failing = self._failing[topic]
        failing.discard(item)
        if not failing:
            del self._failing[topic]
            self._no_write.on_success(topic, now)

    def on_moved(self, item: WorkItem, written: tuple[str, int, int]) -> None:
        """Log where a record was moved to."""
        self._log.debug(
            "record moved to a retry topic",
            **item_position(item),
            copy=written_text(written),
        )

    def flush(self) -> None:
        """End the problems whose records are not held any more."""
        if self._failing:
            now = self._clock()
            ended = (
                *self._no_topic.end_quiet(now, QUIET),
                *self._no_write.end_quiet(now, QUIET),
            )
            for topic in ended:
                self._failing.pop(str(topic), None)

    def on_unwritten(self, items: Sequence[WorkItem]) -> None:
        """Log the dead letters of last deliveries that no broker has confirmed."""
        for item in items[:NOT_WRITTEN]:
            self._log.error(
                "dead letter not written before the worker ended; the broker archives "
                "the record",
                **item_position(item),
            )
        if len(items) > NOT_WRITTEN:
            self._log.error("dead letters not written", records=len(items))


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


def _is_missing(error: BaseException | None) -> bool:
    """Return whether an error, or one of its causes, is that there is no topic."""
    while error is not None:
        if isinstance(error, BrokerError) and error.code in MISSING:
            return True
        error = error.__cause__
    return False
