"""Counting the results of acknowledgements and passing them to the application."""

from typing import Protocol, final

from sharecons.log import get_logger
from sharecons.metrics.counters import Counters
from sharecons.net.archive_warnings import ArchiveWarnings
from sharecons.protocol.acknowledge.result_log import AcknowledgeResult, ResultLog

__all__ = ["AckDispatcher", "AckListener"]


class AckListener(Protocol):
    """Receives the results of acknowledgements."""

    def on_ack_results(self, results: list[AcknowledgeResult]) -> None:
        """Handle results; called outside of any task if `has_ack_callback` is False."""

    @property
    def has_ack_callback(self) -> bool:
        """True if results are passed to a callback of the application."""
        ...


@final
class AckDispatcher:
    """Takes results from the result log, counts them, and passes them on.

    Attributes:
        is_awaited: a task waits for a change of any kind.
    """

    def __init__(
        self, result_log: ResultLog, counters: Counters, listener: AckListener
    ) -> None:
        self.is_awaited = False
        self._result_log = result_log
        self._counters = counters
        self._listener = listener
        self._archive_warnings = ArchiveWarnings(get_logger(__name__), counters)
        result_log.has_listener = listener.has_ack_callback

    def dispatch(self) -> None:
        """Count the results that are there, and pass them to the listener."""
        result_log = self._result_log
        results, result_log.results = result_log.results, []
        self._counters.add("acknowledgements-send-total", result_log.applied_count)
        result_log.applied_count = 0
        if result_log.archived:
            archived, result_log.archived = result_log.archived, []
            limit = result_log.delivery_limit
            self._archive_warnings.on_archived(archived, limit, result_log.clock())
        if results:
            self._counters.add_results(results)
            self._listener.on_ack_results(results)

    def try_dispatch(self) -> bool:
        """Dispatch unless a task has to; return whether it was done."""
        if self.is_awaited or (
            self._result_log.results and self._listener.has_ack_callback
        ):
            return False
        self.dispatch()
        return True
