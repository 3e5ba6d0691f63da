"""The pipeline program, killed or interrupted at a chosen point.

`python -m tests.spark.pipeline_program POINT:N ARGUMENT...` kills itself, with Spark,
when it reaches a point of `POINTS` (or `DELTA_POINTS`) for the Nth time. At a point of
`INTERRUPTS` it sends itself SIGINT.
"""

import os
import signal
import sys

from sharecons.spark.pipeline import program
from sharecons.spark.pipeline.__main__ import main
from sharecons.spark.pipeline.batch_writer import BatchWriter
from sharecons.spark.pipeline.delta_sink import DeltaSink
from sharecons.spark.pipeline.files import Files
from sharecons.spark.pipeline.parquet_sink import ParquetSink
from tests.spark.faults import kill_at

__all__ = ["DELTA_POINTS", "POINTS"]

POINTS = {
    "staged": (BatchWriter, "commit", "before"),
    "committed": (BatchWriter, "commit", "after"),
    "first file visible": (Files, "move", "after"),
    "files visible": (ParquetSink, "publish", "after"),
    "line visible": (ParquetSink, "publish_stats", "after"),
    "published": (BatchWriter, "publish", "after"),
}

DELTA_POINTS = {
    "staged": (BatchWriter, "commit", "before"),
    "committed": (BatchWriter, "commit", "after"),
    "first table": (DeltaSink, "publish_table", "after"),
    "tables visible": (DeltaSink, "publish", "after"),
    "line visible": (DeltaSink, "publish_stats", "after"),
    "published": (BatchWriter, "publish", "after"),
}

INTERRUPTS = {"Spark started": (program, "start_session", "after")}


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    point, _, times = sys.argv[1].partition(":")
    if point in INTERRUPTS:
        kill_at(*INTERRUPTS[point], int(times), interrupt)
    else:
        points = DELTA_POINTS if "delta" in sys.argv else POINTS
        kill_at(*points[point], int(times))
    sys.exit(main(sys.argv[2:]))
