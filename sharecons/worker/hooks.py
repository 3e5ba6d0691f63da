"""Hooks: an application's functions that a worker calls around its handlers."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, final

from sharecons.log import get_logger
from sharecons.worker.failure_log import PERIOD, LineLimit
from sharecons.worker.handler_checks import describe_function
from sharecons.worker.outcomes import RecordOutcome

__all__ = ["HookRunner", "WorkerHooks"]


class WorkerHooks:
    """A base class for tracing, metrics and error reports; override what you need.

    The methods are plain functions. They run in the task of the handler, so context
    variables that `before` sets are visible in a handler that is a coroutine function.
    An exception is logged and has no other effect. `record` is what the handler
    receives; if it could not be deserialized, it has bytes as key and value.
    """

    def before(self, record: Any, attempt: int) -> None:
        """Called before each attempt; 1 is the first."""

    def after(self, record: Any, outcome: RecordOutcome, seconds: float) -> None:
        """Called after each attempt with its outcome, before this is carried out.

        Also called when an outcome changes without another attempt: if the lock is
        lost, or if a record that waits is moved to a retry topic. `seconds` is the time
        of the handler, 0.0 if it did not run.
        """

    def on_failure(self, record: Any, error: Exception, outcome: RecordOutcome) -> None:
        """Called when a handler raised an exception, or a deserializer did.

        Not called for `Retry`, `Reject` and `DeadLetter`, by which a handler decides.
        """


@final
class HookRunner:
    """Calls hooks in order; logs what they raise.

    A hook that fails for each record is logged up to ten times a minute.
    """

    def __init__(self, hooks: Sequence[WorkerHooks]) -> None:
        self._hooks = tuple(hooks)
        self._limit = LineLimit()
        self._log = get_logger(__name__)

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def before(self, record: Any, attempt: int) -> None:
        for hook in self._hooks:
            self._call(hook.before, record, attempt)

    def after(self, record: Any, outcome: RecordOutcome, seconds: float) -> None:
        for hook in self._hooks:
            self._call(hook.after, record, outcome, seconds)

    def on_failure(self, record: Any, error: Exception, outcome: RecordOutcome) -> None:
        for hook in self._hooks:
            self._call(hook.on_failure, record, error, outcome)

    def flush(self, now: float) -> None:
        """Log how many failures were not logged; call this once a second or so."""
        for hook, count in self._limit.take_suppressed(now).items():
            self._log.warning(
                "hook failed more often", hook=hook, count=count, within_seconds=PERIOD
            )

    def _call(self, hook: Callable[..., object], *arguments: object) -> None:
        try:
            returned = hook(*arguments)
        except Exception:  # noqa: BLE001 (any of the application's)
            if self._limit.allows(name := describe_function(hook)):
                self._log.exception("hook failed", hook=name)
            return
        if returned is None or not inspect.isawaitable(returned):
            return
        if inspect.iscoroutine(returned):
            returned.close()
        if self._limit.allows(name := describe_function(hook)):
            self._log.error("hook is not a plain function: not awaited", hook=name)
