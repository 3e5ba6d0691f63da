"""Runs of the pipeline that end at a chosen point, and a look at its tables."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter

import pytest

from sharecons.spark.pipeline.__main__ import main
from sharecons.spark.pipeline.settings import parse_arguments
from sharecons.spark.store import Store
from tests.spark.faults import kill_at
from tests.spark.pipeline_program import POINTS
from tests.spark.spark_session import environment
from tests.tiers import THOROUGH

__all__ = [
    "check_each_once",
    "origins",
    "produce",
    "read",
    "run_until_killed",
    "wait_for_driver",
]


def produce(broker, values):
    """Produce values as JSON to the two partitions of `orders`, in turn."""
    parts = ([], [])
    for number, value in enumerate(values):
        parts[number % 2].append(json.dumps(value))
    for partition, part in enumerate(parts):
        broker.produce("orders", part, partition=partition)


def run_until_killed(arguments, point, base, zone="UTC"):
    """Run the program until it ends at a point of `pipeline_program`.

    In the thorough tier, and with Delta, it kills its own process there. Otherwise an
    exception ends it in Spark's running session: the same files are left, and no JVM
    has to start.
    """
    if not THOROUGH and "delta" not in arguments:
        run_until_failed(arguments, point)
        return
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


def run_until_failed(arguments, point):
    name, _, times = point.partition(":")
    owner, method, when = POINTS[name]
    is_reached = False

    def fail():
        nonlocal is_reached
        is_reached = True
        raise RuntimeError("on purpose")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, method, getattr(owner, method))  # undone afterwards
        kill_at(owner, method, when, int(times), fail)
        assert (main(arguments), is_reached) == (1, True)
    settings = parse_arguments(arguments)
    if not settings.requeues:
        ledger = settings.options.get("ledgerLocation", settings.path("ledger"))
        wait_for_driver(ledger, settings.group)


def wait_for_driver(ledger, group="lake"):
    """Wait until the last driver has ended: Spark does not wait for it."""
    store = Store(str(ledger))
    store.open(group, lock_timeout=30)
    store.close()


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
