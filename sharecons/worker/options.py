"""The options of a worker, checked."""

from dataclasses import dataclass

from sharecons.worker.machine.meters import Meters
from sharecons.worker.routes import Routes
from sharecons.worker.running_records import RunningRecords

__all__ = ["WorkerOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """The options of `ShareWorker`, and the routes of its handlers.

    Attributes:
        concurrency: how many calls run at a time, of all handlers.
        max_bytes: see `WorkerMachine`.
        shutdown_grace: seconds for handlers to finish when the worker stops.
        meters: count what becomes of the records; None without metrics.
        running_records: has the records in calls, for a supervisor; or None.
    """

    concurrency: int
    max_bytes: int
    shutdown_grace: float
    routes: Routes
    meters: Meters | None = None
    running_records: RunningRecords | None = None
