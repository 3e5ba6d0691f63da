"""The Spark session of the benchmark."""

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
    # Read when the JVM starts, before the session exists.
    "spark.driver.memory": "4g",
    # Recommended in docs/spark-running.md for everything that runs in Python.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}


@contextmanager
def session(master: str, jars: str, scratch: Path) -> Iterator[Any]:
    # Workers start in this directory; without this, they would import the checkout
    # instead of the installed `sharecons`.
    os.environ["PYTHONSAFEPATH"] = "1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["JAVA_HOME"] = str(find_java().parent.parent)
    from pyspark.sql import SparkSession

    from sharecons.spark import ShareGroupDataSource

    builder = SparkSession.builder.master(master).appName("sharecons-bench")
    directories = {
        "spark.local.dir": scratch,
        "spark.sql.warehouse.dir": scratch / "tables",
    }
    for name, value in {**SETTINGS, **directories, "spark.jars": jars}.items():
        builder = builder.config(name, str(value))
    spark = builder.getOrCreate()
    try:
        spark.dataSource.register(ShareGroupDataSource)
        _check_worker_build(spark)
        yield spark
    finally:
        spark.stop()


def _check_worker_build(spark: Any) -> None:
    """Check that workers import the same build as this process."""
    module = spark.sparkContext.parallelize(["sharecons"], 1).map(import_module)
    worker_compiled = module.map(attrgetter("COMPILED")).first()
    if worker_compiled != COMPILED:
        raise RuntimeError(
            f"sharecons.COMPILED is {COMPILED} in this process, "
            f"but {worker_compiled} in Spark's workers"
        )
