"""One Spark session for all that is measured, warm and quiet."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from sharecons import COMPILED
from sharecons.testing.kafka.java import find_java

__all__ = ["session"]

SETTINGS: Final = {
    # Read when the JVM starts, and so before there is a session.
    "spark.driver.memory": "4g",
    # As docs/spark.md advises; of use to whatever runs in Python.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}


@contextmanager
def session(master: str, jars: str, scratch: Path) -> Iterator[Any]:
    # Workers start in this directory, and would put the checkout before the
    # `sharecons` that is installed.
    os.environ["PYTHONSAFEPATH"] = "1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["JAVA_HOME"] = str(find_java().parent.parent)
    from pyspark.sql import SparkSession

    from sharecons.spark import ShareGroupDataSource

    builder = SparkSession.builder.master(master).appName("sharecons-bench")
    places = {"spark.local.dir": scratch, "spark.sql.warehouse.dir": scratch / "tables"}
    for name, value in {**SETTINGS, **places, "spark.jars": jars}.items():
        builder = builder.config(name, str(value))
    spark = builder.getOrCreate()
    try:
        spark.dataSource.register(ShareGroupDataSource)
        _ask_worker(spark)
        yield spark
    finally:
        spark.stop()


def _ask_worker(spark: Any) -> None:
    """Make sure that workers run the build that is said to be measured."""
    module = spark.sparkContext.parallelize(["sharecons"], 1).map(import_module)
    theirs = module.map(attrgetter("COMPILED")).first()
    if theirs != COMPILED:
        raise RuntimeError(f"compiled: here {COMPILED}, in Spark's workers {theirs}")
