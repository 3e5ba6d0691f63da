"""A process that runs a Spark query on a share group.

python -m tests.chaos.clients.spark JSON

Ledger and checkpoint are beside the journal. A record that ends a process does that
once: the driver, its JVM, or a Python worker of a task. Spark takes half a minute to
start, and all records of that time are in one batch, so such records are far apart.
"""

import faulthandler
import json
import os
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from tests.chaos.clients import Options
from tests.chaos.clients.crashing import crash
from tests.chaos.clients.plans import plan_of
from tests.chaos.journal import Journal

INTERVAL: Final = "500 milliseconds"
COLUMNS: Final = ("value", "topic", "partition", "offset", "deliveryCount")
SCHEMA: Final = (
    "value binary, topic string, partition int, offset bigint, deliveryCount int"
)
IN_DRIVER: Final = ("exit", "memory")
IN_TASK: Final = ("segfault", "kill")
DRIVER_PAUSE: Final = 30.0
"""Seconds from the first batch of a driver to its end, so that each one makes way."""

TASK_PAUSE: Final = 15.0
"""Seconds between two ends in tasks: a task that fails four times ends the query."""


class Program:
    """One query, and the journal of its records."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._journal = options.journal
        self._first_batch: float | None = None
        self._place = Path(options.journal).parent / "spark"
        self._place.mkdir(exist_ok=True)

    def run(self) -> None:
        stopped: list[int] = []
        signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
        spark = start_spark()
        query = self._start_query(spark)
        Journal(self._journal).note("started")
        while not stopped:
            # Raises if the query has failed.
            query.awaitTermination(1)
        query.stop()
        spark.stop()

    def _start_query(self, spark: Any) -> Any:
        frame = (
            spark.readStream.format("sharegroup")
            .option("kafka.bootstrap.servers", self._options.servers)
            .option("subscribe", self._options.topic)
            .option("kafka.share.group.id", self._options.group)
            .option("kafka.client.id", self._options.client_id)
            .option("ledgerLocation", str(self._place / "ledger"))
            # A topic is deleted and created again.
            .option("failOnDataLoss", "false")
            .load()
        )
        return (
            frame.writeStream.foreachBatch(self._write)
            .option("checkpointLocation", str(self._place / "checkpoint"))
            .trigger(processingTime=INTERVAL)
            .start()
        )

    def _write(self, batch: Any, batch_id: int) -> None:
        """Record a batch in one write: an interrupted batch comes again, whole."""
        checked = batch.select(*COLUMNS).mapInArrow(self._check, SCHEMA)
        rows = [(int(bytes(row[0])), *row[1:]) for row in checked.collect()]
        for row in rows:
            if self._crashes(row, IN_DRIVER):
                self._end_driver(row)
        Journal(self._journal).note_all("handled", rows, f"batch-{batch_id}")
        self._first_batch = self._first_batch or time.monotonic()

    def _check(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Pass on the rows of a task, in a Python worker of Spark."""
        for batch in batches:
            for row in batch.to_pylist():
                values = (int(row["value"]), *(row[name] for name in COLUMNS[1:]))
                if self._crashes(values, IN_TASK):
                    crash(self._plan(values))
            yield batch

    def _plan(self, row: tuple[Any, ...]) -> str:
        return plan_of(row[0], self._options.plans)

    def _crashes(self, row: tuple[Any, ...], plans: tuple[str, ...]) -> bool:
        """Return whether a record has to end this process, which it does once."""
        plan = self._plan(row)
        if plan not in plans:
            return False
        if not (self._can_end_driver() if plans is IN_DRIVER else self._can_end_task()):
            return False
        with suppress(FileExistsError):
            (self._place / f"crashed-{row[0]}").touch(exist_ok=False)
            (self._place / f"crashed-in-{plans[0]}").touch()
            Journal(self._journal).note_all("crashes", [row], plan)
            return True
        return False

    def _can_end_driver(self) -> bool:
        first = self._first_batch
        return first is not None and time.monotonic() > first + DRIVER_PAUSE

    def _can_end_task(self) -> bool:
        """Return whether the last end in a task, in any process, is long ago."""
        with suppress(FileNotFoundError):
            last = (self._place / f"crashed-in-{IN_TASK[0]}").stat().st_mtime
            return time.time() > last + TASK_PAUSE
        return True

    def _end_driver(self, row: tuple[Any, ...]) -> None:
        if self._plan(row) == "exit":
            crash("exit")
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (
                    os.getpgid(int(process.name)) == os.getpgrp()
                    and (process / "comm").read_text() == "java\n"
                ):
                    os.kill(int(process.name), signal.SIGKILL)


def start_spark() -> Any:
    """Start Spark with short starts of its processes, as tests of Spark have."""
    from tests.spark.spark_session import environment

    given = environment()
    # Its workers start in this directory, and import the checkout from it.
    del given["PYTHONSAFEPATH"]
    paths = given["PYTHONPATH"], os.environ.get("PYTHONPATH", "")
    os.environ.update(given, PYTHONPATH=os.pathsep.join(filter(None, paths)))
    warnings.simplefilter("ignore")
    from pyspark.sql import SparkSession

    from sharecons.spark import ShareGroupDataSource

    spark = (
        SparkSession.builder.master("local[2,4]")
        .config("spark.log.level", "ERROR")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "600m")
        .getOrCreate()
    )
    # On a busy machine Spark's own look at the installed modules can time out.
    spark.dataSource.register(ShareGroupDataSource)
    return spark


if __name__ == "__main__":
    faulthandler.enable()  # SIGABRT prints the stacks of a hanging process
    Program(Options(**json.loads(sys.argv[1]))).run()
