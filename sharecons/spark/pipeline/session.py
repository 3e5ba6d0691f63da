"""The pipeline's Spark session: its Python, its log, and its file systems."""

import logging
import os
import sys
import warnings
from typing import Any, Final

from pyspark.sql import SparkSession

from sharecons.errors import ConfigurationError
from sharecons.spark.source import ShareGroupDataSource

__all__ = ["DELTA", "qualify_location", "start_session"]

SILENCED_LOGGERS: Final = (
    "org.apache.spark.sql.execution.streaming",
    "org.apache.spark.sql.execution.python",
    "org.apache.spark.sql.execution.datasources",
    "org.apache.spark.executor",
    "org.apache.spark.scheduler",
    "org.apache.spark.api.python",
    "org.apache.spark.util.Utils",
    "org.apache.hadoop.util.Shell",
)
"""Loggers that print a stack trace of the exception that ends the query, which the
pipeline reports itself."""


DELTA: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": (
        "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    ),
}
"""Spark's settings for Delta tables."""


def start_session(*, sink: str, verbose: bool) -> SparkSession:
    """Start Spark, or join the session of spark-submit.

    Args:
        sink: "delta" needs Delta's jars and settings, which are checked.
        verbose: do not change Spark's log levels. Without this, loggers that repeat
            the pipeline's error messages are off.

    Raises:
        ConfigurationError: Spark has no Delta.
    """
    _use_this_python()
    # Spark warns if pandas 3 is installed; the pipeline does not use pandas.
    warnings.filterwarnings("ignore", "PySpark does not yet", FutureWarning)
    builder = SparkSession.builder.appName("sharecons pipeline")
    if not verbose:
        builder = builder.config("spark.ui.showConsoleProgress", "false")
    if sink == "delta":
        for name, value in DELTA.items():
            builder = builder.config(name, value)
    spark = builder.getOrCreate()
    if sink == "delta":
        _check_delta(spark)
    if not verbose:
        _silence(spark)
    # Spark would find it by itself, except if its first look at the installed modules
    # has failed: it does not look again.
    spark.dataSource.register(ShareGroupDataSource)
    return spark


def _check_delta(spark: Any) -> None:
    try:
        spark._jvm.org.apache.spark.util.Utils.classForName(
            DELTA["spark.sql.extensions"], False, False
        )
    except Exception as error:
        # A session that was running has taken over the catalog, which it cannot load.
        spark.conf.unset("spark.sql.catalog.spark_catalog")
        raise ConfigurationError(
            f"--sink delta: Spark {spark.version} has no Delta; start the pipeline "
            "with --packages, as in docs/spark-pipeline.md"
        ) from error


def _use_this_python() -> None:
    """Make workers run this Python interpreter.

    By default Spark runs the first python3 of the path, which might have no
    sharecons. With spark-submit, Spark's configuration sets the interpreter.
    """
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def _silence(spark: Any) -> None:
    log4j = spark._jvm.org.apache.logging.log4j
    for name in SILENCED_LOGGERS:
        log4j.core.config.Configurator.setLevel(name, log4j.Level.OFF)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)


def qualify_location(spark: Any, location: str) -> str:
    """Return the URL of a directory, according to Hadoop's configuration.

    A path without a scheme is on the file system of `fs.defaultFS`; `~` is the home
    directory on this machine.

    Raises:
        ConfigurationError: Hadoop does not know the file system.
    """
    if location.startswith("~"):
        location = f"file://{os.path.expanduser(location)}"
    try:
        path = spark._jvm.org.apache.hadoop.fs.Path(location)
        files = path.getFileSystem(spark._jsc.hadoopConfiguration())
        return str(files.makeQualified(path).toString())
    except Exception as error:
        raise ConfigurationError(
            f"--into {location!r}: {_message(error)}; use a path, or a URL of a file "
            "system that Spark knows"
        ) from error


def _message(error: Exception) -> str:
    java = getattr(error, "java_exception", None)
    return str(java.getMessage()) if java is not None else str(error)
