"""Both sources on one topic: each reads all of it, and its time is taken."""

import shutil
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio

from sharecons import TopicPartition
from sharecons.admin import ShareGroupAdmin
from tests.bench.spark.options import OURS, Turn

__all__ = ["Sides"]


class Sides:
    """A topic, a ledger that has all of it, and the ways of reading it."""

    def __init__(self, spark: Any, servers: str, scratch: Path, limit: int) -> None:
        self._spark, self._servers, self._scratch = spark, servers, scratch
        self._limit = {"maxOffsetsPerTrigger": str(limit)}
        self._topic = ""
        self._records = 0
        self._ledger, self._group = scratch / "none", ""

    def take(self, topic: str, records: int) -> None:
        """Put the whole topic into a ledger, for all the batches that follow."""
        self._topic, self._records = topic, records
        self._ledger, self._group = self._scratch / f"ledger-{topic}", _new_group()
        frame = self._ours(self._spark.read, self._group, self._ledger)
        _whole(frame.count(), records, "the ledger")

    def measure(self, turn: Turn, *, counted: bool = False) -> dict[str, float]:
        """Read the topic once, and leave nothing behind.

        Args:
            counted: count Parquet's rows, too, which takes longer.
        """
        place = self._scratch / f"run-{uuid.uuid4().hex[:8]}"
        try:
            way = self._batch if turn.what == "ledger" else self._stream
            result = way(turn, place)
            if counted and turn.sink == "parquet":
                rows = self._spark.read.parquet(str(place / "rows")).count()
                _whole(rows, self._records, f"{turn}: Parquet")
            return result
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _batch(self, turn: Turn, place: Path) -> dict[str, float]:
        end = {"startingPosition": "0", "endingPosition": str(self._records)}
        if turn.client == OURS:
            frame = self._ours(self._spark.read, self._group, self._ledger, **end)
        else:
            frame = self._theirs(self._spark.read)
        writer = frame.write.format(turn.sink).mode("overwrite")
        path = [str(place / "rows")] if turn.sink == "parquet" else []
        return {"records": self._records, "seconds": _timed(lambda: writer.save(*path))}

    def _stream(self, turn: Turn, place: Path) -> dict[str, float]:
        if turn.client == OURS:
            group = _new_group()
            anyio.run(self._make, group)
            reader = self._spark.readStream
            frame = self._ours(reader, group, place / "ledger", **self._limit)
        else:
            frame = self._theirs(self._spark.readStream, **self._limit)
        writer = frame.writeStream.format(turn.sink).trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(place / "checkpoint"))
        if turn.sink == "parquet":
            writer = writer.option("path", str(place / "rows"))
        queries: list[Any] = []

        def run() -> None:
            queries.append(writer.start())
            queries[0].awaitTermination()

        seconds = _timed(run)
        batches = [each.numInputRows for each in queries[0].recentProgress]
        _whole(sum(batches), self._records, str(turn))
        count = sum(rows > 0 for rows in batches)
        return {"records": self._records, "seconds": seconds, "batches": count}

    async def _make(self, group: str) -> None:
        """See that the group is there, as it is for all queries but the first.

        Once in its life it takes a broker a second to make one: what a group begins
        with is written down, and given out with the next assignment.
        """
        async with ShareGroupAdmin(self._servers) as admin:
            topic = (await admin.describe_topics(self._topic))[self._topic].value
            places = [
                TopicPartition(self._topic, number) for number in topic.partitions
            ]
            (
                await admin.alter_share_group_offsets(group, dict.fromkeys(places, 0))
            ).check()

    def _ours(self, reader: Any, group: str, ledger: Path, **more: str) -> Any:
        options = {
            "kafka.bootstrap.servers": self._servers,
            "subscribe": self._topic,
            "kafka.share.group.id": group,
            "kafka.share.auto.offset.reset": "earliest",
            "ledgerLocation": str(ledger),
        }
        return reader.format("sharegroup").options(**options, **more).load()

    def _theirs(self, reader: Any, **more: str) -> Any:
        options = {
            "kafka.bootstrap.servers": self._servers,
            "subscribe": self._topic,
            "startingOffsets": "earliest",
        }
        return reader.format("kafka").options(**options, **more).load()


def _new_group() -> str:
    return f"bench-{uuid.uuid4().hex[:8]}"


def _timed(run: Callable[[], None]) -> float:
    began = time.monotonic()
    run()
    return time.monotonic() - began


def _whole(rows: int, records: int, what: str) -> None:
    if rows != records:
        raise RuntimeError(f"{what} has {rows:,} rows of {records:,}")
