"""Log lines about the life of a worker: its start, its first record, its stop, its end.

Rebalances are logged by the member, as "assigned".
"""

from collections.abc import Sequence
from typing import Any, Final, final

from sharecons.guard import qualified_type_name
from sharecons.log import get_logger
from sharecons.net.io.event_loop import Clock
from sharecons.worker.positions import position_of
from sharecons.worker.routes import Routes
from sharecons.worker.stats import WorkerStats

__all__ = ["LifeLog"]

PRESENT: Final = ("held", "running", "waiting", "abandoned_threads")
"""Numbers of `WorkerStats` that describe the present, not what was done."""


@final
class LifeLog:
    """Writes each of the lines once.

    Args:
        group: the share group.
        clock: returns the time in seconds.
    """

    def __init__(self, group: str, clock: Clock) -> None:
        self._log = get_logger(__name__, group=group)
        self._clock = clock
        self._started_at = clock()
        self._stops = False
        self._has_records = False

    def on_start(self, member: str, routes: Routes, concurrency: int) -> None:
        """Log the start: topics, and where failed records go."""
        retry_topics = routes.retry_topics
        topics = sorted(routes.by_topic.keys() - set(retry_topics))
        fields = {"member": member, "topics": ", ".join(topics)}
        if retry_topics:
            fields["retry_topics"] = ", ".join(sorted(retry_topics))
        if routes.dead_letter_topics:
            fields["dead_letter"] = ", ".join(sorted(routes.dead_letter_topics))
        self._log.info("worker starts", **fields, concurrency=concurrency)

    def on_records(self, records: Sequence[Any]) -> None:
        """Log the first record."""
        if self._has_records or not records:
            return
        self._has_records = True
        self._log.info(
            "first record received",
            **position_of(records[0]),
            seconds=self._seconds,
        )

    def on_stop(self, stats: WorkerStats, grace: float) -> None:
        """Log that the worker stops, and what it still has to do.

        Args:
            grace: seconds for its handlers to finish; 0 if they are cancelled.
        """
        if not self._stops:
            self._stops = True
            self._log.info(
                "worker stops",
                running=stats.running,
                held=stats.held,
                grace=grace,
            )

    def on_end(self, stats: WorkerStats, failure: Exception | None) -> None:
        """Log the end, with all counts since the start."""
        totals: dict[str, Any] = {
            name: number
            for name, number in stats._asdict().items()
            if name not in PRESENT
        }
        if failure is not None:
            totals["failure"] = qualified_type_name(failure)
        self._log.info("worker ended", seconds=self._seconds, **totals)

    @property
    def _seconds(self) -> float:
        return round(self._clock() - self._started_at, 1)
