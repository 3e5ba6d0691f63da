"""The program: `python -m sharecons.spark.pipeline`, or by spark-submit."""

import json
import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from sharecons.errors import Error
from sharecons.spark.pipeline.figures import SCHEMA, BatchFigures, measured, table
from sharecons.spark.pipeline.judging import judged, quarantine_of, rows_of
from sharecons.spark.pipeline.picture import picture
from sharecons.spark.pipeline.settings import Settings, parse
from sharecons.spark.source import ShareGroupDataSource

__all__ = ["Run", "main"]


class Run:
    """One run of a pipeline: from the query's start to its figures."""

    def __init__(self, spark: SparkSession, settings: Settings) -> None:
        self.batches: list[BatchFigures] = []
        self.name = uuid.uuid4().hex[:12]
        self._spark = spark
        self._settings = settings
        self._query: Any = None
        self._started = threading.Event()

    def start(self) -> Any:
        """Start the query; gives it."""
        settings = self._settings
        frame = judged(self._source(), settings.schema, settings.format)
        # A mistake in the settings shows here, and not in the first batch.
        rows_of(frame, settings.partition_by)
        writer = (
            frame.writeStream.foreachBatch(self._write)
            .option("checkpointLocation", settings.place("checkpoint"))
            .queryName("sharecons pipeline")
        )
        if settings.every is None:
            self._query = writer.trigger(availableNow=True).start()
        else:
            self._query = writer.trigger(processingTime=settings.every).start()
        self._started.set()
        return self._query

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
        """Write one batch; again and to the same end, if it is given again.

        A batch that is replayed has the same records, so its directories are written
        anew with what they had.
        """
        # Spark's thread is here as soon as the query is started, and perhaps sooner.
        self._started.wait()
        began = time.monotonic()
        settings = self._settings
        kept = frame.persist()
        try:
            rows = rows_of(kept, settings.partition_by)
            self._keep(rows, "rows", batch, *settings.partition_by)
            self._keep(quarantine_of(kept), "quarantine", batch)
            seconds = time.monotonic() - began
            self._note(measured(kept, batch, self._lag(), seconds))
        finally:
            kept.unpersist()

    def _keep(self, frame: DataFrame, name: str, batch: int, *by: str) -> None:
        (
            # A new checkpoint counts from 0 again, and is another query.
            frame.withColumn("batch", sql.lit(f"{self._query.id[:8]}-{batch}"))
            .write.mode("overwrite")
            .option("partitionOverwriteMode", "dynamic")
            .partitionBy(*by, "batch")
            .parquet(self._settings.place(name))
        )

    def _note(self, figures: BatchFigures) -> None:
        self.batches.append(figures)
        (
            self._spark.createDataFrame([figures.line()], SCHEMA)
            .withColumn("run", sql.lit(self.name))
            .coalesce(1)
            .write.mode("append")
            .partitionBy("run")
            .parquet(self._settings.place("runs"))
        )

    def _lag(self) -> int:
        progress = self._query.lastProgress
        if not progress or not progress.sources:
            return -1
        latest = json.loads(progress.sources[0].latestOffset or "{}")
        return int(latest.get("lag", -1))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a pipeline until it has ended; gives the exit code."""
    settings = parse(arguments)
    _have_workers_run_this_python()
    spark = SparkSession.builder.appName("sharecons pipeline").getOrCreate()
    spark.dataSource.register(ShareGroupDataSource)
    run = Run(spark, settings)
    try:
        query = run.start()
    except Error as error:
        sys.stderr.write(f"pipeline: {error}\n")
        return 2
    _stop_on_signal(query)
    try:
        query.awaitTermination()
    finally:
        sys.stdout.write(table(run.batches))
        if settings.picture is not None:
            Path(settings.picture).write_text(picture(run.batches), encoding="utf-8")
    return 0


def _have_workers_run_this_python() -> None:
    """Spark would take the first python3 of the path, which need not have sharecons.

    With spark-submit, whoever submits says what there is on the executors.
    """
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def _stop_on_signal(query: Any) -> None:
    """Have Ctrl-C and SIGTERM end the query between batches."""

    def stop(number: int, frame: object) -> None:
        query.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)


if __name__ == "__main__":
    sys.exit(main())
