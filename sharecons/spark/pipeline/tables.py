"""The tables that a pipeline writes, and the interface of its sinks."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from sharecons.spark.pipeline.commits import Commit
from sharecons.spark.pipeline.stats import BatchStats

if TYPE_CHECKING:  # the page of a run is made without Spark
    from pyspark.sql import DataFrame

__all__ = ["QUARANTINE", "ROWS", "RUNS", "Quarantined", "Sink"]

ROWS: Final = "rows"
QUARANTINE: Final = "quarantine"
RUNS: Final = "runs"


@dataclass(frozen=True, slots=True)
class Quarantined:
    """The records in quarantine.

    Attributes:
        frame: the records.
        removed: their files, in a sink of files.
        replaced: their batches, in a sink of tables.
    """

    frame: "DataFrame"
    removed: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()


class Sink(Protocol):
    """Publishes staged batches to the tables that users read."""

    stages_partitions: bool
    """Whether staged rows are in directories for the values of partition columns."""

    def publish(self, commit: Commit) -> None:
        """Make a batch visible; after an interruption, the rest of it."""

    def publish_stats(self, stats: BatchStats, *, query: str, is_new: bool) -> None:
        """Add a line to `runs`, after the batch is visible.

        Args:
            query: the id of the query.
            is_new: this run has staged the batch, so there is no such line.
        """

    def has_line(self, batch: str) -> bool:
        """Return whether `runs` has a line of a batch."""
        ...

    def read_quarantine(self) -> Quarantined | None:
        """Return the records in quarantine; None if there are none."""
