"""Passing on the results of acknowledgements, in a task."""

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Final, Protocol, final

from sharecons.log import get_logger
from sharecons.member.archive_warnings import ArchiveWarnings
from sharecons.member.group_configs import GroupConfigReader
from sharecons.metrics.recorder import MetricsRecorder
from sharecons.net.io.event_loop import FOREVER
from sharecons.net.problem_log import ProblemLog, ProblemTexts
from sharecons.protocol.acknowledge.result_log import AcknowledgeResult, ResultLog
from sharecons.protocol.acknowledge.results import summarize

__all__ = ["AckDispatcher", "AckListener"]

EARLY: Final = (
    "records released before their delay has passed, because their locks are not "
    "renewed; raise share.record.lock.duration.ms, or release with a shorter delay"
)

EARLY_INTERVAL: Final = 60.0
"""Seconds between two warnings about early releases."""

FAILED: Final = ProblemTexts(
    begins="acknowledgements failed",
    lasts="acknowledgements still fail",
    ends="no acknowledgements fail any more",
)
FAILED_QUIET: Final = 60.0
"""Seconds without a failure after which they have ended: most follow from lost locks,
whose records come again."""

CLOSED: Final = "acknowledgements have failed; the client closes"


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
        self,
        result_log: ResultLog,
        recorder: MetricsRecorder,
        listener: AckListener,
        *,
        log_fields: Mapping[str, str],
    ) -> None:
        self._result_log = result_log
        self._recorder = recorder
        self._listener = listener
        self._configs = listener.configs
        self._log = get_logger(__name__, **log_fields)
        self._archive_warnings = ArchiveWarnings(
            self._log, recorder, self._configs, result_log.clock
        )
        self._failures = ProblemLog(self._log, FAILED)
        self._failed: Counter[Hashable] = Counter()
        self._has_read_renewals = False
        self._next_early_warning = -FOREVER
        self._configs.subscribe(self._follow_configs)
        self._follow_configs()
        result_log.has_listener = listener.has_ack_callback

    def dispatch(self) -> bool:
        """Pass the results to the listener; return whether there were any."""
        result_log = self._result_log
        results, result_log.results = result_log.results, []
        for error in self._failures.end_quiet(result_log.clock(), FAILED_QUIET):
            del self._failed[error]
        if result_log.overrun_count:
            self._recorder.lock_overruns += result_log.overrun_count
            result_log.overrun_count = 0
        if result_log.archived:
            archived, result_log.archived = result_log.archived, []
            self._archive_warnings.on_released(archived)
        if result_log.needs_renewals:
            result_log.needs_renewals = False
            self._read_renewals()
        if result_log.early_releases:
            self._warn_early()
        if results:
            self._recorder.on_acknowledge_results(results, result_log.clock())
            self._note_failures([each for each in results if each.error is not None])
            self._listener.on_ack_results(results)
        return bool(results)

    async def end(self) -> None:
        """Pass on the last results; log what was not logged yet."""
        self.dispatch()
        # A limit that was raised must not make a line about archived records.
        await self._configs.confirm()
        self._archive_warnings.flush(at_end=True)
        self._failures.end_quiet(self._result_log.clock(), 0.0, CLOSED)

    def _note_failures(self, failed: list[AcknowledgeResult]) -> None:
        """Log failures of one error once, and then how many records it concerns."""
        if not failed:
            return
        fields = summarize(failed)
        error = fields["error"]
        self._failed[error] += fields["records"]
        fields["records"] = self._failed[error]
        self._failures.on_failure(error, self._result_log.clock(), **fields)

    def _read_renewals(self) -> None:
        """Read once, before the next regular reading, whether the group renews."""
        if not self._has_read_renewals and self._configs.renews is None:
            self._configs.claim(lambda: None)
        self._has_read_renewals = True

    def _warn_early(self) -> None:
        now = self._result_log.clock()
        if now >= self._next_early_warning:
            self._next_early_warning = now + EARLY_INTERVAL
            self._log.warning(EARLY, records=self._result_log.early_releases)
            self._result_log.early_releases = 0

    def _follow_configs(self) -> None:
        self._result_log.delivery_limit = self._configs.delivery_limit
        self._result_log.renews = self._configs.renews is not False
