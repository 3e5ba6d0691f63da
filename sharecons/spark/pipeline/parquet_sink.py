"""Publishes batches as files of Parquet.

A file appears whole, by renaming it. So a batch of one file appears whole; the files of
a larger batch appear one after the other, and its line in `runs` after the last one.
"""

import io
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from sharecons.spark.pipeline.commits import Commit
from sharecons.spark.pipeline.files import Files
from sharecons.spark.pipeline.stats import BatchStats
from sharecons.spark.pipeline.tables import QUARANTINE, RUNS, Quarantined

__all__ = ["ParquetSink"]

KEPT_DAYS: Final = 2
"""Days whose lines are kept in memory: batches can be written around midnight."""

_INTEGERS: Final = ("rows", "quarantined", "redelivered", "bytes", "lag", "backlog")
_SECONDS: Final = ("latency_p50", "latency_p90", "latency_p99", "seconds")
_FIELDS: Final[list[Any]] = [
    pa.field("batch", pa.string()),
    pa.field("number", pa.int64()),
    pa.field("run", pa.string()),
    pa.field("at", pa.timestamp("us", tz="UTC")),
    *(pa.field(name, pa.int64()) for name in _INTEGERS),
    *(pa.field(name, pa.float64()) for name in _SECONDS),
    pa.field("reasons", pa.map_(pa.string(), pa.int64())),
]


class ParquetSink:
    """Moves staged files to their place.

    `runs` has one file for each run and day, which is written again with each batch.

    Args:
        run: the id of this run.
    """

    stages_partitions = True

    def __init__(self, spark: Any, files: Files, run: str) -> None:
        self._spark = spark
        self._files = files
        self._run = run
        self._lines: dict[str, dict[str, BatchStats]] = {}

    def publish(self, commit: Commit) -> None:
        for table in commit.files.values():
            for staged, final in table.items():
                self._files.move(staged, final)
        for name in commit.removed:
            self._files.remove(name)

    def publish_stats(self, stats: BatchStats, *, query: str, is_new: bool) -> None:
        if not is_new and self.has_line(stats.batch):
            return
        day = f"{stats.at:%Y-%m-%d}"
        lines = self._lines.setdefault(day, {})
        lines[stats.batch] = stats
        self._files.replace(f"{RUNS}/{day}-{self._run}.parquet", _encode(lines))
        for old in sorted(self._lines)[:-KEPT_DAYS]:
            del self._lines[old]

    def has_line(self, batch: str) -> bool:
        runs = self._read(RUNS)
        return runs is not None and not runs.where(runs["batch"] == batch).isEmpty()

    def read_quarantine(self) -> Quarantined | None:
        names = [f"{QUARANTINE}/{n}" for n in self._files.list_files(QUARANTINE)]
        if not names:
            return None
        # With the option includeHeaders, files have one more column.
        reader = self._spark.read.option("mergeSchema", "true")
        frame = reader.parquet(*map(self._files.url, names))
        return Quarantined(frame, removed=tuple(names))

    def _read(self, table: str) -> Any:
        names = self._files.list_files(table)
        urls = [self._files.url(f"{table}/{name}") for name in names]
        return self._spark.read.parquet(*urls) if urls else None


def _encode(lines: Mapping[str, BatchStats]) -> bytes:
    rows = [
        each.as_row() | {"reasons": list(each.reasons.items())}
        for each in lines.values()
    ]
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(_FIELDS)), buffer)
    return buffer.getvalue()
