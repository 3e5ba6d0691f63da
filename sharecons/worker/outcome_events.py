"""Calls the application's `on_outcome` for each outcome of a record."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Self, final

from sharecons.error_text import code_line
from sharecons.errors import DeserializationError
from sharecons.guard import function_name, guarded, is_a, type_name
from sharecons.log import get_logger
from sharecons.plain_copy import plain_copy
from sharecons.record import KeyT, Record, ValueT
from sharecons.worker.failure_log import PERIOD, LineLimit
from sharecons.worker.machine.actions import OutcomeDecided
from sharecons.worker.machine.item import WorkItem
from sharecons.worker.outcomes import RecordOutcome
from sharecons.worker.quoted_records import SafeTexts

__all__ = ["OutcomeCallback", "OutcomeEvent"]


@final
@dataclass(frozen=True, slots=True)
class OutcomeEvent(Generic[KeyT, ValueT]):
    """An outcome of a record, before it is carried out.

    Attributes:
        record: the record that the handler receives; with bytes as key and value if it
            could not be deserialized.
        outcome: the decision about the record.
        attempt: the number of the last attempt; 1 is the first.
        seconds: the time of the handler with its middleware. None if the outcome does
            not follow from a call: the record's lock is lost, it moves to a retry topic
            while it waits, it cannot be deserialized, or the worker ends.
        error: the exception of handler, middleware or deserializer. None for
            `Retry`, `Reject` and `DeadLetter`, and for an outcome that follows from no
            new exception.
    """

    record: Record[KeyT, ValueT]
    outcome: RecordOutcome
    attempt: int
    seconds: float | None
    error: Exception | None


@final
class OutcomeCallback:
    """Calls the function; logs what it raises, up to ten times a minute."""

    def __init__(
        self, function: Callable[[OutcomeEvent[Any, Any]], object], group_id: str
    ) -> None:
        self._function = function
        self._limit = LineLimit()
        self._log = get_logger(__name__, group=group_id)

    @classmethod
    def of(
        cls, function: Callable[[OutcomeEvent[Any, Any]], object] | None, group_id: str
    ) -> Self | None:
        """Return what calls the function; None without one."""
        return None if function is None else cls(function, group_id)

    def report(self, decided: OutcomeDecided) -> None:
        """Report an outcome. Exceptions have no other effect than a log line."""
        item, outcome, attempt, seconds, error = decided
        event = OutcomeEvent(item.argument, outcome, attempt, seconds, error)
        guarded(lambda: self._call(event), lambda error: self._fail(error, item))

    def _call(self, event: OutcomeEvent[Any, Any]) -> None:
        returned = self._function(event)
        if returned is None or not inspect.isawaitable(returned):
            return
        if inspect.iscoroutine(returned):
            returned.close()
        if self._limit.allows(""):
            self._log.error(
                "on_outcome returned an awaitable, which is not awaited; make it a "
                "plain function",
                function=self._name,
            )

    def _fail(self, error: BaseException, item: WorkItem) -> None:
        if self._limit.allows(""):
            shown = plain_copy(error)
            is_unreadable = is_a(error, DeserializationError)
            is_hidden = is_unreadable or SafeTexts().hides(shown, item)
            self._log.error(
                "on_outcome failed",
                function=self._name,
                error=type_name(error),
                at=code_line(error),
                exc_info=None if is_hidden else shown,
            )

    def flush(self, now: float) -> None:
        """Log how many failures were not logged; call this once a second or so."""
        for count in self._limit.take_suppressed(now).values():
            self._log.warning(
                "on_outcome failed more often",
                function=self._name,
                count=count,
                within_seconds=PERIOD,
            )

    @property
    def _name(self) -> str:
        return function_name(self._function)
