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
        self, journal: ResultLog, counters: Counters, hearer: AckListener
    ) -> None:
        self.awaited = False
        self._journal = journal
        self._counters = counters
        self._hearer = hearer
        self._archiving = ArchiveWarnings(get_logger(__name__), counters)
        journal.has_listener = hearer.has_ack_callback

    def dispatch(self) -> None:
        journal = self._journal
        results, journal.results = journal.results, []
        self._counters.add("acknowledgements-send-total", journal.applied)
        journal.applied = 0
        if journal.archived:
            archived, journal.archived = journal.archived, []
            limit = journal.delivery_limit
            self._archiving.on_archived(archived, limit, journal.clock())
        if results:
            self._counters.add_results(results)
            self._hearer.on_ack_results(results)

    def try_dispatch(self) -> bool:
        """Tell it, where nobody has to be told in a task; says whether it did."""
        if self.awaited or (self._journal.results and self._hearer.has_ack_callback):
            return False
        self.dispatch()
        return True
