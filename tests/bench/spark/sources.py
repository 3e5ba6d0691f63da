"""Timed queries of both sources over a whole topic."""

import shutil
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio

from sharecons import TopicPartition
from sharecons.admin import ShareGroupAdmin
from tests.bench.spark.options import SHARE_GROUP, Turn

__all__ = ["SourceBenchmark"]


class SourceBenchmark:
    """Runs batch and streaming queries over one topic and measures their time.

    Args:
        limit: maxOffsetsPerTrigger of both sources.
        record_locks: share.partition.max.record.locks of the groups.
    """

    def __init__(
        self, spark: Any, servers: str, scratch: Path, limit: int, record_locks: int
    ) -> None:
        self._spark, self._servers, self._scratch = spark, servers, scratch
        self._record_locks = record_locks
        self._limit = {"maxOffsetsPerTrigger": str(limit)}
        self._topic = ""
        self._records = 0
        self._ledger, self._group = scratch / "none", ""

    def fill_ledger(self, topic: str, records: int) -> None:
        """Fill a ledger with the whole topic, for the batch queries that follow."""
        self._topic, self._records = topic, records
        self._ledger, self._group = self._scratch / f"ledger-{topic}", _new_group()
        frame = self._share_group_frame(self._spark.read, self._group, self._ledger)
        _check_row_count(frame.count(), records, "the ledger")

    def measure(self, turn: Turn, *, count_rows: bool = False) -> dict[str, float]:
        """Read the topic once, and delete what the query wrote.

        Args:
            turn: source, query and sink.
            count_rows: also check the number of rows in Parquet, which takes longer.
        """
        directory = self._scratch / f"run-{uuid.uuid4().hex[:8]}"
        try:
            read = self._batch if turn.what == "ledger" else self._stream
            result = read(turn, directory)
            if count_rows and turn.sink == "parquet":
                rows = self._spark.read.parquet(str(directory / "rows")).count()
                _check_row_count(rows, self._records, f"{turn}: Parquet")
            return result
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def _batch(self, turn: Turn, directory: Path) -> dict[str, float]:
        end = {"startingPosition": "0", "endingPosition": str(self._records)}
        if turn.client == SHARE_GROUP:
            frame = self._share_group_frame(
                self._spark.read, self._group, self._ledger, **end
            )
        else:
            frame = self._kafka_frame(self._spark.read)
        writer = frame.write.format(turn.sink).mode("overwrite")
        path = [str(directory / "rows")] if turn.sink == "parquet" else []
        return {"records": self._records, "seconds": _time(lambda: writer.save(*path))}

    def _stream(self, turn: Turn, directory: Path) -> dict[str, float]:
        if turn.client == SHARE_GROUP:
            group = _new_group()
            anyio.run(self._create_group, group)
            reader = self._spark.readStream
            frame = self._share_group_frame(
                reader, group, directory / "ledger", **self._limit
            )
        else:
            frame = self._kafka_frame(self._spark.readStream, **self._limit)
        writer = frame.writeStream.format(turn.sink).trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(directory / "checkpoint"))
        if turn.sink == "parquet":
            writer = writer.option("path", str(directory / "rows"))
        queries: list[Any] = []

        def run() -> None:
            queries.append(writer.start())
            queries[0].awaitTermination()

        seconds = _time(run)
        batches = [each.numInputRows for each in queries[0].recentProgress]
        _check_row_count(sum(batches), self._records, str(turn))
        count = sum(rows > 0 for rows in batches)
        return {"records": self._records, "seconds": seconds, "batches": count}

    async def _create_group(self, group: str) -> None:
        """Create the group, whose creation is not part of the measurement.

        It takes the broker a second, once per group: the initial state is persisted and
        sent with the next assignment.
        """
        async with ShareGroupAdmin(bootstrap_servers=self._servers) as admin:
            configs = {"share.partition.max.record.locks": self._record_locks}
            changed = await admin.alter_group_configs(group, configs)
            if changed.error is not None:
                raise changed.error
            topic = (await admin.describe_topics(self._topic))[self._topic].value
            partitions = [
                TopicPartition(self._topic, number) for number in topic.partitions
            ]
            (
                await admin.alter_share_group_offsets(
                    group, dict.fromkeys(partitions, 0)
                )
            ).check()

    def _share_group_frame(
        self, reader: Any, group: str, ledger: Path, **extra: str
    ) -> Any:
        options = {
            "kafka.bootstrap.servers": self._servers,
            "subscribe": self._topic,
            "kafka.share.group.id": group,
            "kafka.share.auto.offset.reset": "earliest",
            "ledgerLocation": str(ledger),
        }
        return reader.format("sharegroup").options(**options, **extra).load()

    def _kafka_frame(self, reader: Any, **extra: str) -> Any:
        options = {
            "kafka.bootstrap.servers": self._servers,
            "subscribe": self._topic,
            "startingOffsets": "earliest",
        }
        return reader.format("kafka").options(**options, **extra).load()


def _new_group() -> str:
    return f"bench-{uuid.uuid4().hex[:8]}"


def _time(run: Callable[[], None]) -> float:
    began = time.monotonic()
    run()
    return time.monotonic() - began


def _check_row_count(rows: int, records: int, what: str) -> None:
    if rows != records:
        raise RuntimeError(f"{what} has {rows:,} rows, expected {records:,}")
