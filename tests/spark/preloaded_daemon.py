"""Spark's daemon of Python workers, which imports the source before it forks them.

Otherwise each worker of each query imports it, which takes a second of CPU.
"""

from pyspark.daemon import manager

import sharecons.spark.arrow
import sharecons.spark.fetching
import sharecons.spark.source  # noqa: F401

if __name__ == "__main__":
    manager()
