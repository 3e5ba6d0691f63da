"""Passing on the results of acknowledgements, in a task."""

from typing import Protocol, final

from sharecons.log import get_logger
from sharecons.member.archive_warnings import ArchiveWarnings
from sharecons.member.group_configs import GroupConfigReader
from sharecons.metrics.recorder import MetricsRecorder
from sharecons.protocol.acknowledge.result_log import AcknowledgeResult, ResultLog

__all__ = ["AckDispatcher", "AckListener"]


class AckListener(Protocol):
    """Receives the results of acknowledgements."""

    configs: GroupConfigReader
    """The configs of the group."""

    def on_ack_results(self, results: list[AcknowledgeResult]) -> None:
        """Handle results; called in a task."""

    @property
    def has_ack_callback(self) -> bool:
        """True if results are passed to a callback of the application."""
        ...


@final
class AckDispatcher:
    """Takes results from the result log, counts them, and passes them on."""

    def __init__(
        self, result_log: ResultLog, recorder: MetricsRecorder, listener: AckListener
    ) -> None:
        self._result_log = result_log
        self._recorder = recorder
        self._listener = listener
        self._configs = listener.configs
        self._archive_warnings = ArchiveWarnings(
            get_logger(__name__), recorder, self._configs
        )
        self._configs.subscribe(self._follow_configs)
        self._follow_configs()
        result_log.has_listener = listener.has_ack_callback

    def dispatch(self) -> bool:
        """Pass the results to the listener; return whether there were any."""
        result_log = self._result_log
        results, result_log.results = result_log.results, []
        if result_log.overrun_count:
            self._recorder.on_lock_overrun(result_log.overrun_count)
            result_log.overrun_count = 0
        if result_log.archived:
            archived, result_log.archived = result_log.archived, []
            self._archive_warnings.on_released(archived, result_log.clock)
        if results:
            self._recorder.on_acknowledge_results(results, result_log.clock())
            self._listener.on_ack_results(results)
        return bool(results)

    def _follow_configs(self) -> None:
        self._result_log.delivery_limit = self._configs.delivery_limit
