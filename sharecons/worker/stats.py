"""The counts of a worker."""

from dataclasses import dataclass, fields
from typing import NamedTuple

__all__ = ["Counts", "WorkerStats"]
__dir__ = __all__.copy


class WorkerStats(NamedTuple):
    """Counts of the records of a worker, since it started and at present.

    Attributes:
        held: records that are not settled: running, ready, waiting, blocked, copied.
        running: records with a handler that runs now.
        waiting: records that wait for their next attempt.
        accepted: records whose handler succeeded.
        retried: attempts that failed and are repeated.
        moved: records that were moved to a retry topic.
        rejected, dead_lettered, released: records with this outcome.
        locks_lost: records whose lock ended while the worker held them.
        failed: attempts that raised an exception.
        abandoned_threads: threads of cancelled handlers that have not ended. Each takes
            one of the `concurrency` slots.
    """

    held: int = 0
    running: int = 0
    waiting: int = 0
    accepted: int = 0
    retried: int = 0
    moved: int = 0
    rejected: int = 0
    dead_lettered: int = 0
    released: int = 0
    locks_lost: int = 0
    failed: int = 0
    abandoned_threads: int = 0


@dataclass(slots=True)
class Counts:
    """The counters behind `WorkerStats`."""

    accepted: int = 0
    retried: int = 0
    moved: int = 0
    rejected: int = 0
    dead_lettered: int = 0
    released: int = 0
    locks_lost: int = 0
    failed: int = 0

    def as_dict(self) -> dict[str, int]:
        return {each.name: getattr(self, each.name) for each in fields(self)}
