"""What became of acknowledgements, told to whoever is to know."""

from typing import Protocol, final

from sharecons.log import get_logger
from sharecons.metrics.counters import Counters
from sharecons.net.archive_warnings import ArchiveWarnings
from sharecons.protocol.acknowledge.result_log import AcknowledgeResult, ResultLog

__all__ = ["AckDispatcher", "AckListener"]


class AckListener(Protocol):
    """Who is told."""

    def on_ack_results(self, results: list[AcknowledgeResult]) -> None:
        """What became of acknowledgements; outside of any task, if `calls_back` says
        that nobody else hears it.
        """

    @property
    def has_ack_callback(self) -> bool:
        """What `acknowledged` is told goes on to the application."""
        ...


@final
class AckDispatcher:
    """Takes results out of a journal, counts them, and passes them on.

    Attributes:
        awaited: somebody waits, in a task, for whatever may have been told.
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
        result_log = self._result_log
        results, result_log.results = result_log.results, []
        self._counters.add("acknowledgements-send-total", result_log.applied)
        result_log.applied = 0
        if result_log.archived:
            archived, result_log.archived = result_log.archived, []
            limit = result_log.delivery_limit
            self._archive_warnings.on_archived(archived, limit, result_log.clock())
        if results:
            self._counters.add_results(results)
            self._listener.on_ack_results(results)

    def try_dispatch(self) -> bool:
        """Tell it, where nobody has to be told in a task; says whether it did."""
        if self.is_awaited or (
            self._result_log.results and self._listener.has_ack_callback
        ):
            return False
        self.dispatch()
        return True
