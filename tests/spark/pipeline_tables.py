"""Runs of the pipeline in processes that are killed, and a look at its tables."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter

from tests.spark.spark_session import environment

__all__ = ["check_each_once", "origins", "produce", "read", "run_until_killed"]


def produce(broker, values):
    """Produce values as JSON to the two partitions of `orders`, in turn."""
    parts = ([], [])
    for number, value in enumerate(values):
        parts[number % 2].append(json.dumps(value))
    for partition, part in enumerate(parts):
        broker.produce("orders", part, partition=partition)


def run_until_killed(arguments, point, base, zone="UTC"):
    """Run the program in a process of its own until it kills itself."""
    submit = f"--conf spark.sql.session.timeZone={zone} "
    submit += "--conf spark.sql.shuffle.partitions=1 "
    submit += environment()["PYSPARK_SUBMIT_ARGS"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.pipeline_program", point, *arguments],
        env=os.environ | environment() | {"PYSPARK_SUBMIT_ARGS": submit},
        cwd=base,
        capture_output=True,
        text=True,
        timeout=600,
        start_new_session=True,
    )
    assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr


def read(spark, path, sink="parquet"):
    return spark.read.option("mergeSchema", "true").format(sink).load(str(path))


def origins(spark, path, prefix="", sink="parquet"):
    """Return how often each partition and offset is in a table."""
    if not path.exists():
        return Counter()
    found = read(spark, path, sink).select(f"{prefix}partition", f"{prefix}offset")
    return Counter(tuple(row) for row in found.collect())


def check_each_once(spark, lake, records, prefix="_", sink="parquet"):
    """Check that each record is in one table; return the number in quarantine.

    Args:
        records: how many records were produced.
    """
    rows = origins(spark, lake / "rows", prefix, sink)
    quarantine = origins(spark, lake / "quarantine", "", sink)
    assert sorted(rows + quarantine) == [
        (partition, offset) for partition in (0, 1) for offset in range(records // 2)
    ]
    assert set((rows + quarantine).values()) == {1}
    assert not list((lake / "staging").iterdir())
    return len(quarantine)
