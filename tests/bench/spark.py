"""The share group's source beside Spark's own Kafka source, in turn, in one session.

    python -m tests.bench.spark --bootstrap-servers localhost:9092 --topic T \\
        --jars spark-sql-kafka-0-10_2.13-4.2.0.jar,...  --rounds 2 --into results.json

The topic is filled before. Both sources read all of
it, into no sink and into Parquet. "ledger" reads positions that are there already,
"stream" acquires meanwhile; the JVM's source is measured the same two ways. Every
figure is of a warm session: the first round is thrown away.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
import uuid
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

__all__ = ["main"]

SINKS = ("noop", "parquet")


class Sides:
    """Both sources on one topic, and what was measured of them."""

    def __init__(self, spark: Any, servers: str, topic: str, limit: int) -> None:
        self.spark, self.servers, self.topic = spark, servers, topic
        self.limit = str(limit)
        self.results: defaultdict[str, list[dict[str, float]]] = defaultdict(list)
        self.place = Path(tempfile.mkdtemp(prefix="sharecons-bench-"))
        self.ledger = self.place / "ledger"
        self.group = f"bench-{uuid.uuid4().hex[:8]}"

    # Sources.

    def ours(self, reader: Any, group: str, ledger: Path, **more: str) -> Any:
        options = {
            "kafka.bootstrap.servers": self.servers,
            "subscribe": self.topic,
            "kafka.share.group.id": group,
            "kafka.share.auto.offset.reset": "earliest",
            "ledgerLocation": str(ledger),
            **more,
        }
        return reader.format("sharegroup").options(**options).load()

    def theirs(self, reader: Any, **more: str) -> Any:
        options = {
            "kafka.bootstrap.servers": self.servers,
            "subscribe": self.topic,
            "startingOffsets": "earliest",
            **more,
        }
        return reader.format("kafka").options(**options).load()

    def fill(self) -> int:
        """Put the whole topic into a ledger; gives how many rows that is."""
        rows: int = self.ours(self.spark.read, self.group, self.ledger).count()
        return rows

    # Rounds.

    def round(self, rows: int) -> None:
        end = {"startingPosition": "0", "endingPosition": str(rows)}
        for sink in SINKS:
            frame = self.ours(self.spark.read, self.group, self.ledger, **end)
            self._batch(f"sharegroup ledger {sink}", frame, sink, rows)
            self._batch(f"kafka batch {sink}", self.theirs(self.spark.read), sink, rows)
            group, ledger = f"bench-{uuid.uuid4().hex[:8]}", self._new("ledger")
            limit = {"maxOffsetsPerTrigger": self.limit}
            frame = self.ours(self.spark.readStream, group, ledger, **limit)
            self._stream(f"sharegroup stream {sink}", frame, sink, rows)
            frame = self.theirs(self.spark.readStream, **limit)
            self._stream(f"kafka stream {sink}", frame, sink, rows)

    def _batch(self, name: str, frame: Any, sink: str, rows: int) -> None:
        writer = frame.write.format(sink).mode("overwrite")
        began = time.monotonic()
        writer.save(*([str(self._new("out"))] if sink == "parquet" else []))
        self._note(name, rows, time.monotonic() - began)

    def _stream(self, name: str, frame: Any, sink: str, rows: int) -> None:
        writer = (
            frame.writeStream.format(sink)
            .option("checkpointLocation", str(self._new("checkpoint")))
            .trigger(availableNow=True)
        )
        if sink == "parquet":
            writer = writer.option("path", str(self._new("out")))
        began = time.monotonic()
        query = writer.start()
        query.awaitTermination()
        seconds = time.monotonic() - began
        read = sum(p.numInputRows for p in query.recentProgress)
        assert read >= rows, f"{name}: {read} rows of {rows}"
        self._note(name, rows, seconds)

    def _note(self, name: str, rows: int, seconds: float) -> None:
        figure = {"rows": rows, "seconds": seconds, "rows_per_second": rows / seconds}
        self.results[name].append(figure)
        sys.stderr.write(f"{name:28} {seconds:7.2f} s {rows / seconds:12,.0f} rows/s\n")

    def _new(self, kind: str) -> Path:
        return self.place / f"{kind}-{uuid.uuid4().hex[:8]}"


def table(results: dict[str, list[dict[str, float]]]) -> str:
    """Medians, and each of ours as a share of theirs."""
    speed = {
        name: median(figure["rows_per_second"] for figure in figures)
        for name, figures in results.items()
    }
    lines = ["| | sharegroup | Spark's Kafka source | share |", "|---|---|---|---|"]
    for ours, theirs in (("ledger", "batch"), ("stream", "stream")):
        for sink in SINKS:
            one = speed.get(f"sharegroup {ours} {sink}", 0.0)
            other = speed.get(f"kafka {theirs} {sink}", 0.0)
            share = f"{one / other:.2f}" if other else "-"
            lines.append(
                f"| {ours}, {sink} | {one / 1e6:.2f} M/s | {other / 1e6:.2f} M/s "
                f"| {share} |"
            )
    return "\n".join(lines) + "\n"


def session(jars: str | None, master: str) -> Any:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    from sharecons.spark import ShareGroupDataSource

    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    if jars:
        builder = builder.config("spark.jars", jars)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(ShareGroupDataSource)
    return spark


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.spark")
    add = parser.add_argument
    add("--bootstrap-servers", default="localhost:9092")
    add("--topic", required=True)
    add("--jars", help="of Spark's own Kafka source, with commas")
    add("--master", default="local[2]")
    add("--rounds", type=int, default=2, help="measured, after one to warm up")
    add("--batch", type=int, default=1_000_000, help="maxOffsetsPerTrigger")
    add("--into", help="a file for all figures")
    given = parser.parse_args()
    spark = session(given.jars, given.master)
    sides = Sides(spark, given.bootstrap_servers, given.topic, given.batch)
    try:
        rows = sides.fill()
        sides.round(rows)
        sides.results.clear()
        for _ in range(given.rounds):
            sides.round(rows)
    finally:
        shutil.rmtree(sides.place, ignore_errors=True)
    sys.stdout.write(table(sides.results))
    if given.into:
        Path(given.into).write_text(json.dumps(sides.results, indent=1))


if __name__ == "__main__":
    main()
