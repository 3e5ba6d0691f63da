"""A PySpark session for tests, and helpers for queries."""

import json
import os
import shutil
import sys
import tempfile
import warnings
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

__all__ = ["Query", "committed_rows", "environment", "self_join", "session"]

if not shutil.which("java") and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs a Java of 17 or newer", allow_module_level=True)

ROOT = Path(__file__).parent.parent.parent
MASTER = "local[4,4]"  # four tasks at a time, each tried four times


# kio imports Hypothesis where it is installed: half a second for each process.
NO_HYPOTHESIS = 'raise ImportError("Spark starts many processes, and none needs it")\n'

# Spark's programs are short: their start counts, and fully optimized code does not.
SUBMIT_ARGUMENTS = (
    "--conf spark.ui.enabled=false "
    "--conf spark.python.daemon.module=tests.spark.preloaded_daemon "
    "--driver-java-options '-XX:+UseSerialGC -XX:TieredStopAtLevel=1' pyspark-shell"
)

# By default Delta reads the state of a table in 50 tasks.
DELTA_ARGUMENTS = "--conf spark.databricks.delta.snapshotPartitions=1"


@cache
def _modules():
    """Return a directory with the modules of Spark's processes: `tests` only."""
    directory = tempfile.TemporaryDirectory(prefix="sharecons-tests-")
    (Path(directory.name) / "tests").symlink_to(ROOT / "tests")
    (Path(directory.name) / "hypothesis.py").write_text(NO_HYPOTHESIS)
    return directory


@cache
def _submit_arguments():
    from tests.spark.delta import HAS_DELTA, delta_jars

    if not HAS_DELTA:
        return SUBMIT_ARGUMENTS
    return f"--jars {delta_jars()} {DELTA_ARGUMENTS} {SUBMIT_ARGUMENTS}"


def environment():
    """Return the environment variables of Spark and its workers.

    The tests use the installed `sharecons`, which can be compiled. Without these
    variables workers would import it from the checkout, in which they start.
    """
    return {
        "PYTHONPATH": _modules().name,
        "PYTHONSAFEPATH": "1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": _submit_arguments(),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


@contextmanager
def _environment():
    before = dict(os.environ)
    os.environ.update(environment())
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def session(master=MASTER):
    """Start Spark with this Python for its workers."""
    with _environment(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

        from sharecons.spark.pipeline.session import DELTA
        from sharecons.spark.source import ShareGroupDataSource
        from tests.spark.delta import HAS_DELTA

        settings = DELTA if HAS_DELTA else {}
        spark = (
            SparkSession.builder.master(master)
            .config("spark.sql.shuffle.partitions", "1")
            .config("spark.log.level", "ERROR")
            .config(map=settings)
            .getOrCreate()
        )
        # On a busy machine Spark's own look at the installed modules can time out.
        spark.dataSource.register(ShareGroupDataSource)
    return spark


class Query:
    """A query's options and directories."""

    def __init__(self, servers, topic, group, base, **options):
        self.base = Path(base)
        self.out = self.base / "out"
        self.options = {
            "kafka.bootstrap.servers": servers,
            "subscribe": topic,
            "kafka.share.group.id": group,
            "kafka.share.auto.offset.reset": "earliest",
            "ledgerLocation": str(self.base / "ledger"),
            # The end of a query waits for the fetch that the broker holds.
            "kafka.fetch.max.wait.ms": "50",
            **options,
        }

    def read(self, spark, **more):
        return (
            spark.readStream.format("sharegroup").options(**self.options | more).load()
        )

    def start(self, frame, checkpoint="checkpoint", **trigger):
        return (
            frame.writeStream.format("parquet")
            .option("path", str(self.out))
            .option("checkpointLocation", str(self.base / checkpoint))
            .trigger(**trigger)
            .start()
        )

    def run(self, spark, frame=None, **more):
        """Run until all current records are read; return the query."""
        query = self.start(
            self.read(spark, **more) if frame is None else frame, availableNow=True
        )
        assert query.awaitTermination(90)
        return query


def self_join(frame):
    """Return a join for which Spark creates two readers of one load()."""
    from pyspark.sql.functions import expr

    same = "a.partition = b.partition and a.offset = b.offset"
    both = frame.alias("a").join(frame.alias("b"), expr(same))
    return both.selectExpr("a.partition", "a.offset", "b.value")


def committed_rows(out):
    """Return the table of a query's committed batches; None if there is none."""
    log = Path(out) / "_spark_metadata"
    files = {}
    for part in sorted(log.glob("[0-9]*"), key=lambda path: int(path.stem)):
        for line in part.read_text().splitlines()[1:]:
            entry = json.loads(line)
            files[entry["path"].removeprefix("file://")] = None
    tables = [pq.read_table(path, partitioning=None) for path in files]
    return pa.concat_tables(tables) if tables else None
