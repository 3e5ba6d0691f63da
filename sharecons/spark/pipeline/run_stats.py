"""The batches that a run keeps, and the table that it prints at its end.

A service writes thousands of batches a day. So the run keeps the last of them and the
totals; the table `runs` has all batches.
"""

from collections import deque
from typing import Final, final

from sharecons.spark.pipeline.stats import BatchStats

__all__ = ["KEPT", "RunStats", "format_table"]

KEPT: Final = 10_000
"""Batches that a run keeps: more than a day of batches of 10 s, in some 10 MB."""

SHOWN: Final = 50
"""Batches that the table at the end shows."""


@final
class RunStats:
    """The last batches of a run, and the totals of all its batches.

    Spark's thread calls `add`; the others can be read by any thread.

    Attributes:
        count: the number of batches.
        rows, quarantined, redelivered: of all batches.
    """

    def __init__(self) -> None:
        self.count = self.rows = self.quarantined = self.redelivered = 0
        self._latest: deque[BatchStats] = deque(maxlen=KEPT)

    def add(self, batch: BatchStats) -> None:
        """Add a batch that was written."""
        self._latest.append(batch)
        self.count += 1
        self.rows += batch.rows
        self.quarantined += batch.quarantined
        self.redelivered += batch.redelivered

    def latest(self) -> tuple[BatchStats, ...]:
        """Return the last batches, at most KEPT, the oldest first."""
        return tuple(self._latest)


def format_table(run: RunStats) -> str:
    """Return a table of a run's last batches and its totals, for a terminal."""
    shown = run.latest()[-SHOWN:]
    if not shown:
        return "no records\n"
    head = "batch      rows  quarantined  redelivered  p50 s  p99 s  seconds\n"
    earlier = run.count - len(shown)
    if earlier > 0:  # Spark's thread can be adding a batch
        head += f"  ...  {earlier:,} earlier; `runs` has all\n"
    lines = [
        f"{b.number:5}  {b.rows:8,}  {b.quarantined:11,}  {b.redelivered:11,}  "
        f"{b.latency_p50:5.1f}  {b.latency_p99:5.1f}  {b.seconds:7.2f}\n"
        for b in shown
    ]
    totals = f"{run.rows:8,}  {run.quarantined:11,}  {run.redelivered:11,}"
    return head + "".join(lines) + f"  all  {totals}\n"
