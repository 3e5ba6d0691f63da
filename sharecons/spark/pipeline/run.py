"""One run of the pipeline: a query that writes rows, quarantine and figures."""

import json
import threading
import time
import uuid
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from sharecons.errors import ConfigurationError
from sharecons.spark.pipeline.settings import Settings
from sharecons.spark.pipeline.stats import SCHEMA, BatchStats, measured
from sharecons.spark.pipeline.validation import Rows, quarantine_of, validated

__all__ = ["Run"]

GRACE: Final = 20.0
"""Seconds that `stop` waits for the batch that is being written."""

LOOK: Final = 0.02


class StoppedError(Exception):
    """The run was stopped before this batch was written; the next run writes it."""


class Run:
    """One run of a pipeline: from the query's start to its figures.

    Args:
        settings: with `into` as Spark resolves it.

    Attributes:
        batches: the figures of the batches that were written.

    Raises:
        ConfigurationError: the schema, or a name of a column, is invalid.
    """

    def __init__(self, spark: SparkSession, settings: Settings) -> None:
        self.batches: list[BatchStats] = []
        self._name = uuid.uuid4().hex[:12]
        self._spark = spark
        self._settings = settings
        zone = spark.conf.get("spark.sql.session.timeZone") or "UTC"
        self._rows = Rows.of(settings, zone)
        self._query: Any = None
        self._started = threading.Event()
        self._stop_requested = False
        self._refused = threading.Event()

    def start(self) -> Any:
        """Start the query and return it."""
        frame = validated(self._source(), self._rows)
        writer = (
            frame.writeStream.foreachBatch(self._write)
            .option("checkpointLocation", self._settings.place("checkpoint"))
            .queryName("sharecons pipeline")
        )
        self._query = self._triggered(writer).start()
        self._started.set()
        return self._query

    def stop(self) -> None:
        """Stop the query between two batches, or in a batch that outlasts GRACE.

        Stopping interrupts a batch that Spark is writing. A batch that was not finished
        is replayed by the next run, to the same rows.
        """
        self._stop_requested = True
        deadline = time.monotonic() + GRACE
        while time.monotonic() < deadline and not self._is_between_batches():
            time.sleep(LOOK)
        self._query.stop()

    def _is_between_batches(self) -> bool:
        status = self._query.status
        # Spark has no trigger yet while it starts the source.
        starts = str(status["message"]).startswith("Initializing")
        return self._refused.is_set() or not (starts or status["isTriggerActive"])

    def _triggered(self, writer: Any) -> Any:
        every = self._settings.every
        if every is None:
            return writer.trigger(availableNow=True)
        try:
            return writer.trigger(processingTime=every)
        except Exception as error:
            raise ConfigurationError(
                f"--every {every!r} is not an interval (as in '10 seconds')"
            ) from error

    def _source(self) -> DataFrame:
        settings = self._settings
        options = {
            "kafka.bootstrap.servers": settings.bootstrap_servers,
            "subscribe": ",".join(settings.topics),
            "kafka.share.group.id": settings.group,
            "ledgerLocation": settings.place("ledger"),
            **settings.options,
        }
        return self._spark.readStream.format("sharegroup").options(**options).load()

    def _write(self, frame: DataFrame, batch: int) -> None:
        """Write one batch; called again with the same records if the run fails.

        The directories of a replayed batch are overwritten with the same rows.
        """
        # Spark may call this before `start` has the query.
        self._started.wait()
        if self._stop_requested:
            # Returning would tell Spark that the batch was written.
            self._refused.set()
            raise StoppedError
        began = time.monotonic()
        kept = frame.persist()
        try:
            rows = self._rows.select(kept)
            self._keep(rows, "rows", batch, *self._rows.partition_by)
            self._keep(quarantine_of(kept), "quarantine", batch)
            seconds = time.monotonic() - began
            self._note(measured(kept, batch, self._lag(), seconds))
        finally:
            kept.unpersist()

    def _keep(self, frame: DataFrame, name: str, batch: int, *by: str) -> None:
        column = self._rows.own.batch
        (
            # A new checkpoint counts from 0 again, and is another query.
            frame.withColumn(column, sql.lit(f"{self._query.id[:8]}-{batch}"))
            .write.mode("overwrite")
            .option("partitionOverwriteMode", "dynamic")
            .partitionBy(*by, column)
            .parquet(self._settings.place(name))
        )

    def _note(self, figures: BatchStats) -> None:
        self.batches.append(figures)
        (
            self._spark.createDataFrame([figures.line()], SCHEMA)
            .withColumn("run", sql.lit(self._name))
            .coalesce(1)
            .write.mode("append")
            .partitionBy("run")
            .parquet(self._settings.place("runs"))
        )

    def _lag(self) -> int:
        progress = self._query.lastProgress
        if not progress or not progress.sources:
            return -1
        # Null in JSON, too: the query was stopped before it knew.
        latest = json.loads(progress.sources[0].latestOffset or "null") or {}
        return int(latest.get("lag", -1))
