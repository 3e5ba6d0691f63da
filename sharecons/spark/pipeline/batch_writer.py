"""Writes batches: stages the files of a batch, commits it, and publishes it.

    staging/BATCH.RUN/   the staged files of one batch
    commits/BATCH.json   the commit file
    layout.json          the layout of rows, since the first batch

A driver can be killed at any point. Before the commit file exists, nothing of the batch
is visible, and a replay stages it again. Afterwards the batch is published from its
staged files, by this driver or the next one. Every step of publishing can be repeated.
"""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from sharecons.spark.pipeline.commits import KEPT_COMMITS, Commit, CommitLog
from sharecons.spark.pipeline.errors import CommitError, PublishError
from sharecons.spark.pipeline.files import Files
from sharecons.spark.pipeline.ledger_range import LedgerRange, read_range
from sharecons.spark.pipeline.measuring import measure_batch
from sharecons.spark.pipeline.stats import UNKNOWN, BatchStats, Waiting
from sharecons.spark.pipeline.tables import QUARANTINE, ROWS, RUNS, Quarantined, Sink
from sharecons.spark.pipeline.validation import Rows, select_quarantined, validate

__all__ = ["BatchWriter"]

STAGING: Final = "staging"

REQUEUE: Final = "requeue"
"""The name of the query whose batches are records from quarantine."""

FILE_BYTES: Final = 64 << 20
"""Bytes of values for each file: few files, but enough for several cores."""


class BatchWriter:
    """Writes the batches of one run.

    Args:
        run: an id of this run.
        on_commit: is called before the first batch becomes visible.
        requeues: whether this run requeues; then a pipeline can run beside it.
    """

    def __init__(
        self,
        files: Files,
        commits: CommitLog,
        sink: Sink,
        rows: Rows,
        *,
        run: str,
        on_commit: Callable[[], None],
        requeues: bool = False,
    ) -> None:
        self._files = files
        self._commits = commits
        self._sink = sink
        self._rows = rows
        self._run = run
        self._on_commit = on_commit
        self._requeues = requeues
        self._has_recovered = False
        self._ranges: dict[str, LedgerRange] = {}

    def read_batch_ends(self) -> dict[str, list[int]]:
        """Read where committed batches end, by the ids of their ledgers.

        If the checkpoint lacks these batches, Spark has to plan them with these ends:
        then `write` recognizes them.

        Raises:
            CommitError: a commit file is damaged.
        """
        commits = self._commits.read_all()
        self._ranges = {each.batch: each.range for each in commits if each.range}
        ends: dict[str, list[int]] = {}
        for each in self._ranges.values():
            ends.setdefault(each.ledger, []).append(each.end)
        return {ledger: sorted(found) for ledger, found in ends.items()}

    def write(
        self, validated: DataFrame, *, query: str, number: int, waiting: Waiting
    ) -> BatchStats:
        """Write one batch, or publish it if it was staged before.

        Args:
            validated: the validated records of the batch.
            query: the id of the query.
            number: the number of the batch in the query.
            waiting: for the statistics.

        Raises:
            CommitError: the batch has other records than the batch that was committed
                with its number, or a part of the records of other batches.
        """
        if not self._has_recovered:
            self.recover()
            self._has_recovered = True
        prefix = query[:8]
        batch = f"{prefix}-{number}"
        positions = read_range(self._files, number)
        commit = self._find(batch, positions)
        if commit is None:
            staged = self._stage(
                validated,
                batch=batch,
                query=query,
                number=number,
                waiting=waiting,
                positions=positions,
            )
            commit = self.commit(staged)
        self._check_same(commit, positions, validated)
        self.publish(commit)
        self._remove_old_commits(prefix, number)
        return commit.stats

    def _find(self, batch: str, positions: LedgerRange) -> Commit | None:
        """Return the commit of a batch, or of its records in an earlier checkpoint."""
        commit = self._commits.find(batch)
        if commit is not None:
            return commit
        for other, known in self._ranges.items():
            if known.is_same(positions):
                return self._commits.find(other)
            if known.overlaps(positions):
                raise CommitError(
                    f"batch {batch} has {positions}, but the commit file "
                    f"{self._commits.location}/{other}.json has {known}: records "
                    "would be in the rows twice; restore the newest checkpoint"
                )
        return None

    def _check_same(
        self, commit: Commit, positions: LedgerRange, validated: DataFrame
    ) -> None:
        known, stats = commit.range, commit.stats
        if known is not None and known.is_same(positions):
            return
        # A file of an earlier version has no range.
        if known is None and validated.count() == stats.rows + stats.quarantined:
            return
        raise CommitError(
            f"batch {commit.number} of the checkpoint has {positions}, but the commit "
            f"file {self._commits.location}/{commit.batch}.json has "
            f"{known or f'{stats.rows + stats.quarantined} other records'}: the "
            "checkpoint is older than the commit file, and records would be missing "
            "or in the rows twice; restore the newest checkpoint"
        )

    def requeue(self) -> BatchStats | None:
        """Decode the records in quarantine again, and make rows of valid ones.

        Returns:
            The counts of new rows, and of records that stay in quarantine; None if the
            quarantine is empty.

        Raises:
            PublishError: another requeue has run at the same time.
        """
        self.recover()
        done = [b for b in self._commits.list_batches() if b.startswith(REQUEUE)]
        number = max((int(batch.rpartition("-")[2]) for batch in done), default=-1) + 1
        found = self._sink.read_quarantine()
        if found is None:
            return None
        again = found.frame.drop("reason", self._rows.own.batch)
        commit = self._stage(
            validate(again, self._rows),
            batch=f"{REQUEUE}-{number}",
            # Numbers can begin again: a user can delete the commit files.
            query=f"{REQUEUE}-{self._run}",
            number=number,
            waiting=UNKNOWN,
            source=found,
        )
        if not commit.stats.rows:
            self._files.remove(commit.staging)
            return commit.stats
        counts = self.commit(commit)
        if counts.staging != commit.staging:
            self._files.remove(commit.staging)
            raise PublishError(
                "another requeue has run at the same time; look at its result, and run "
                "this one again"
            )
        self.publish(commit)
        self._remove_old_commits(REQUEUE, number)
        return commit.stats

    # Staging.

    def _stage(
        self,
        validated: DataFrame,
        *,
        batch: str,
        query: str,
        number: int,
        waiting: Waiting,
        positions: LedgerRange | None = None,
        source: Quarantined | None = None,
    ) -> Commit:
        began = time.monotonic()
        staging = f"{STAGING}/{batch}.{self._run}"
        cached = validated.persist()
        try:
            stats = measure_batch(
                cached, batch=batch, number=number, run=self._run, waiting=waiting
            )
            files = self._stage_tables(cached, stats, staging)
        finally:
            cached.unpersist()
        return Commit(
            batch=batch,
            number=number,
            query=query,
            staging=staging,
            files=files,
            stats=replace(stats, seconds=time.monotonic() - began),
            removed=source.removed if source else (),
            replaced=source.replaced if source else (),
            range=positions,
        )

    def _stage_tables(
        self, cached: DataFrame, stats: BatchStats, staging: str
    ) -> dict[str, dict[str, str]]:
        """Write the files of a batch; return their final names, by table."""
        by = self._rows.partition_by if self._sink.stages_partitions else ()
        quarantined = select_quarantined(cached)
        files: dict[str, dict[str, str]] = {}
        for table, frame, count, columns in (
            (ROWS, self._rows.select(cached), stats.rows, by),
            (QUARANTINE, quarantined, stats.quarantined, ()),
        ):
            if count:
                share = count / (stats.rows + stats.quarantined)
                parts = math.ceil(stats.bytes * share / FILE_BYTES)
                named = frame.withColumn(self._rows.own.batch, sql.lit(stats.batch))
                directory = f"{staging}/{table}"
                self._write_files(named.coalesce(max(1, parts)), directory, columns)
                files[table] = self._final_names(directory, table, stats)
        return files

    def _write_files(self, frame: DataFrame, directory: str, by: Iterable[str]) -> None:
        writer = frame.write.mode("overwrite").partitionBy(*by)
        writer.parquet(self._files.url(directory))

    def _final_names(
        self, staged: str, table: str, stats: BatchStats
    ) -> dict[str, str]:
        # The run makes names unique, even after the commit files were deleted.
        start = f"{stats.batch}-{stats.run}"
        names: dict[str, str] = {}
        for number, name in enumerate(self._files.list_files(staged)):
            directory, _, _ = f"{table}/{name}".rpartition("/")
            names[f"{staged}/{name}"] = f"{directory}/{start}-{number:05}.parquet"
        return names

    # Committing and publishing.

    def commit(self, commit: Commit) -> Commit:
        """Create the commit file; return the commit that counts."""
        for table in commit.files.values():
            self._files.sync(table)
        self._on_commit()
        return self._commits.add(commit)

    def publish(self, commit: Commit) -> None:
        """Make a committed batch visible, and remove what was staged.

        Raises:
            CommitError: it is neither visible nor staged.
            PublishError: a file cannot be moved.
        """
        is_new = commit.stats.run == self._run
        if self._files.exists(commit.staging):
            self._sink.publish(commit)
        elif not is_new and not self._sink.has_line(commit.batch):
            # Staged files are removed after the line in `runs` is written.
            raise CommitError(
                f"the batch {commit.batch} was committed "
                f"({self._commits.location}/{commit.batch}.json), but "
                f"{self._files.url(RUNS)} has no line of it, and "
                f"{self._files.url(commit.staging)} is missing: {self._files.url('')} "
                "is older than its commit files; restore its newest state, or read "
                "the topics again into another --into with another group"
            )
        self._sink.publish_stats(commit.stats, query=commit.query, is_new=is_new)
        self._files.remove(commit.staging)

    def recover(self) -> None:
        """Publish the rest of committed batches; remove other staged files.

        A pipeline and a requeue can run at the same time, so each recovers its own.
        """
        for name in self._files.list_directories(STAGING):
            batch = name.partition(".")[0]
            if batch.startswith(REQUEUE) != self._requeues:
                continue
            commit = self._commits.find(batch)
            if commit is not None and commit.staging == f"{STAGING}/{name}":
                self.publish(commit)
            else:
                self._files.remove(f"{STAGING}/{name}")

    def _remove_old_commits(self, prefix: str, number: int) -> None:
        for batch in self._commits.list_batches():
            start, _, last = batch.rpartition("-")
            if start == prefix and int(last) < number - KEPT_COMMITS:
                self._commits.remove(batch)
