"""One run of the pipeline: a query that writes rows, quarantine and statistics."""

import json
import threading
import time
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from sharecons.errors import ConfigurationError
from sharecons.spark.pipeline.ledger_range import CHECKPOINT
from sharecons.spark.pipeline.run_stats import RunStats
from sharecons.spark.pipeline.settings import Settings
from sharecons.spark.pipeline.sinks import open_writer
from sharecons.spark.pipeline.stats import UNKNOWN, Waiting
from sharecons.spark.pipeline.validation import Rows, validate

__all__ = ["Run"]

STOP_TIMEOUT: Final = 20.0
"""Seconds that `stop` waits for the batch that is being written."""

POLL_INTERVAL: Final = 0.02


class StoppedError(Exception):
    """The run was stopped before this batch was written; the next run writes it."""


class Run:
    """One run of a pipeline.

    Args:
        settings: `into` must be a qualified URL (`session.qualify_location`).

    Attributes:
        stats: the statistics of the batches that were written.

    Raises:
        ConfigurationError: the schema, or the name of a column, is invalid; or the rows
            of earlier runs have another layout.
    """

    def __init__(self, spark: SparkSession, settings: Settings) -> None:
        self.stats = RunStats()
        self._spark = spark
        self._settings = settings
        zone = spark.conf.get("spark.sql.session.timeZone") or "UTC"
        self._rows = Rows.from_settings(settings, zone)
        self._writer = open_writer(spark, settings, self._rows)
        self._query: Any = None
        self._started = threading.Event()
        self._stop_requested = False
        self._is_batch_refused = threading.Event()

    def start(self) -> Any:
        """Start the query and return it."""
        frame = validate(self._read_source(), self._rows)
        writer = (
            frame.writeStream.foreachBatch(self._write_batch)
            .option("checkpointLocation", self._settings.path(CHECKPOINT))
            .queryName("sharecons pipeline")
        )
        self._query = self._with_trigger(writer).start()
        self._started.set()
        return self._query

    def stop(self) -> None:
        """Stop the query between two batches, or after STOP_TIMEOUT within a batch.

        The next run replays an interrupted batch, with the same rows.
        """
        self._stop_requested = True
        deadline = time.monotonic() + STOP_TIMEOUT
        while time.monotonic() < deadline and not self._is_between_batches():
            time.sleep(POLL_INTERVAL)
        self._query.stop()

    def _is_between_batches(self) -> bool:
        status = self._query.status
        # Spark has no trigger yet while it starts the source.
        starts = str(status["message"]).startswith("Initializing")
        return self._is_batch_refused.is_set() or not (
            starts or status["isTriggerActive"]
        )

    def _with_trigger(self, writer: Any) -> Any:
        every = self._settings.every
        if every is None:
            return writer.trigger(availableNow=True)
        try:
            return writer.trigger(processingTime=every)
        except Exception as error:
            raise ConfigurationError(
                f"--every {every!r} is not an interval (as in '10 seconds')"
            ) from error

    def _read_source(self) -> DataFrame:
        settings = self._settings
        options = {
            "kafka.bootstrap.servers": settings.bootstrap_servers,
            "subscribe": ",".join(settings.topics),
            "kafka.share.group.id": settings.group,
            "ledgerLocation": settings.path("ledger"),
            **settings.options,
        }
        if ends := self._writer.read_batch_ends():
            options["batchEnds"] = json.dumps(ends)
        return self._spark.readStream.format("sharegroup").options(**options).load()

    def _write_batch(self, frame: DataFrame, number: int) -> None:
        """Write one batch; after a failure Spark calls this again for it."""
        # Spark can call this before `start` has the query.
        self._started.wait()
        if self._stop_requested:
            # Returning would tell Spark that the batch was written.
            self._is_batch_refused.set()
            raise StoppedError
        try:
            # A new checkpoint counts from 0 again, and is another query.
            stats = self._writer.write(
                frame, query=str(self._query.id), number=number, waiting=self._waiting()
            )
            self.stats.add(stats)
        except Exception:
            if self._stop_requested:
                # Spark would match the message with a regular expression, for which a
                # stack trace is too long: its thread would end with a stack overflow.
                raise StoppedError from None
            raise

    def _waiting(self) -> Waiting:
        """Return the figures of the last progress."""
        progress = self._query.lastProgress
        if not progress or not progress.sources:
            return UNKNOWN
        # JSON null if the query was stopped before its first progress.
        latest = json.loads(progress.sources[0].latestOffset or "null") or {}
        return Waiting(int(latest.get("lag", -1)), int(latest.get("backlog", -1)))
