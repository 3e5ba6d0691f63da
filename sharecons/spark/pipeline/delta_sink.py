"""Publishes batches to Delta tables, each exactly once.

Each write has a transaction id: the query and the number of the batch. Delta skips a
write whose id a table has already, so an interrupted batch can be published again.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from sharecons.spark.pipeline.commits import Commit
from sharecons.spark.pipeline.files import Files
from sharecons.spark.pipeline.stats import SCHEMA, BatchStats
from sharecons.spark.pipeline.tables import QUARANTINE, ROWS, RUNS, Quarantined
from sharecons.spark.pipeline.validation import Rows

__all__ = ["DeltaSink"]

TRANSACTION: Final = "spark.databricks.delta.write."
"""The prefix of the session settings with the transaction of a MERGE."""

CONSTRAINT_CHECK: Final = "spark.databricks.delta.replaceWhere.constraintCheck.enabled"


class DeltaSink:
    """Appends staged files to Delta tables, or merges them by key.

    Args:
        rows: `merge_by` has the columns of the key.
    """

    stages_partitions = False

    def __init__(self, spark: Any, files: Files, rows: Rows) -> None:
        self._spark = spark
        self._files = files
        self._rows = rows

    def publish(self, commit: Commit) -> None:
        for table in (ROWS, QUARANTINE):
            self.publish_table(commit, table)

    def publish_table(self, commit: Commit, table: str) -> None:
        """Write the rows or the quarantine of a batch, unless the table has them."""
        staged = self._read_staged(list(commit.files.get(table, ())))
        transaction = _Transaction(f"{commit.query}-{table}", commit.number)
        if table == QUARANTINE and commit.replaced:
            self._replace_quarantine(staged, commit.replaced, transaction)
        elif staged is not None and table == ROWS and self._rows.merge_by:
            self._merge(staged, transaction)
        elif staged is not None:
            by = self._rows.partition_by if table == ROWS else ()
            self._append(staged, table, transaction, by)

    def publish_stats(self, stats: BatchStats, *, query: str, is_new: bool) -> None:
        lines = self._spark.createDataFrame([stats.as_row()], SCHEMA)
        transaction = _Transaction(f"{query}-{RUNS}", stats.number)
        self._append(lines.coalesce(1), RUNS, transaction, ())

    def has_line(self, batch: str) -> bool:
        if not self._files.exists(RUNS):
            return False
        runs = self._spark.read.format("delta").load(self._files.url(RUNS))
        return not runs.where(runs["batch"] == batch).isEmpty()

    def read_quarantine(self) -> Quarantined | None:
        if not self._files.exists(QUARANTINE):
            return None
        frame = self._spark.read.format("delta").load(self._files.url(QUARANTINE))
        column = self._rows.own.batch
        batches = tuple(row[0] for row in frame.select(column).distinct().collect())
        # Batches that the service adds in between stay as they are.
        chosen = frame.where(sql.col(column).isin(*batches))
        return Quarantined(chosen, replaced=batches) if batches else None

    def _read_staged(self, names: Sequence[str]) -> DataFrame | None:
        # Staged files are missing only if everything was published, and a driver was
        # killed while it removed them.
        urls = [self._files.url(name) for name in names if self._files.exists(name)]
        if not urls:
            return None
        frame: DataFrame = self._spark.read.parquet(*urls)
        return frame

    def _append(
        self,
        frame: DataFrame,
        table: str,
        transaction: "_Transaction",
        by: Sequence[str],
    ) -> None:
        writer = _writer(frame, by).mode("append").options(**transaction.options)
        writer.save(self._files.url(table))

    def _replace_quarantine(
        self,
        staged: DataFrame | None,
        replaced: Sequence[str],
        transaction: "_Transaction",
    ) -> None:
        url = self._files.url(QUARANTINE)
        if staged is None:
            schema = self._spark.read.format("delta").load(url).schema
            staged = self._spark.createDataFrame([], schema)
        assert staged is not None
        names = ", ".join(f"'{name}'" for name in replaced)
        condition = f"{_quoted(self._rows.own.batch)} IN ({names})"
        writer = _writer(staged, ()).mode("overwrite").options(**transaction.options)
        # The records that stay in quarantine have another batch now.
        with _session_settings(self._spark, {CONSTRAINT_CHECK: "false"}):
            writer.option("replaceWhere", condition).save(url)

    def _merge(self, staged: DataFrame, transaction: "_Transaction") -> None:
        url = self._files.url(ROWS)
        _writer(staged.limit(0), self._rows.partition_by).mode("ignore").save(url)
        view = f"sharecons_{transaction.version}"
        self._latest(staged).createOrReplaceTempView(view)
        # SQL has no options.
        settings = {TRANSACTION + n: v for n, v in transaction.options.items()}
        with _session_settings(self._spark, settings):
            self._spark.sql(self._merge_statement(url, view))
        self._spark.catalog.dropTempView(view)

    def _latest(self, frame: DataFrame) -> DataFrame:
        """Return the latest row of each key: a MERGE rejects several."""
        order = [sql.col(_quoted(name)).desc() for name in self._order]
        keys = [sql.col(_quoted(name)) for name in self._rows.merge_by]
        rank = sql.row_number().over(Window.partitionBy(*keys).orderBy(*order))
        return frame.withColumn("__rank", rank).where("__rank = 1").drop("__rank")

    @property
    def _order(self) -> tuple[str, str]:
        origin = self._rows.own.origin
        return origin["timestamp"], origin["offset"]

    def _merge_statement(self, url: str, view: str) -> str:
        same = " AND ".join(
            f"old.{_quoted(name)} = new.{_quoted(name)}" for name in self._rows.merge_by
        )
        new, old = (
            f"struct({', '.join(f'{side}.{_quoted(name)}' for name in self._order)})"
            for side in ("new", "old")
        )
        return (
            f"MERGE WITH SCHEMA EVOLUTION INTO delta.{_quoted(url)} AS old "
            f"USING {view} AS new ON {same} "
            # Records come in any order: an older one changes nothing.
            f"WHEN MATCHED AND {new} >= {old} THEN UPDATE SET * "
            "WHEN NOT MATCHED THEN INSERT *"
        )


class _Transaction:
    """The transaction id of one write."""

    def __init__(self, app: str, version: int) -> None:
        self.version = version
        self.options = {"txnAppId": app, "txnVersion": str(version)}


@contextmanager
def _session_settings(spark: Any, settings: Mapping[str, str]) -> Iterator[None]:
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in settings:
            spark.conf.unset(name)


def _writer(frame: DataFrame, by: Sequence[str]) -> Any:
    return (
        frame.write.format("delta")
        .partitionBy(*by)
        .option("mergeSchema", "true")
        # A property of a new table: small files are merged after a write.
        .option("delta.autoOptimize.autoCompact", "true")
    )


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
