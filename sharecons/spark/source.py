"""`spark.readStream.format("sharegroup")`, and `spark.read`: the source itself.

Where what runs (PySpark 4.2 and 4.3), since each is another process:

- `ShareGroupDataSource` is made on the driver's side, is pickled, and travels.
- `ShareGroupStreamReader` is made in two processes there. One lives as long as the
  query and is asked for offsets and tasks: there the member works. The other only
  pickles `read`, so making a reader must cost nothing and pickling it must work.
- `read` runs in the tasks' workers, on a copy that knows no more than the options.
- The end of a query comes as SIGTERM and the end of the socket, both at once; nobody
  waits for `stop`, but nobody cuts it short either.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from sharecons.errors import ConfigurationError
from sharecons.spark.batch import BatchQuery
from sharecons.spark.options import SourceOptions, read_options
from sharecons.spark.query_link import open_query
from sharecons.spark.schema import check_schema, schema_of
from sharecons.spark.shared_query import Query
from sharecons.spark.stream import StreamQuery
from sharecons.spark.tasks import RangesPartition, for_tasks, read_partition

__all__ = [
    "ShareGroupBatchReader",
    "ShareGroupDataSource",
    "ShareGroupStreamReader",
]

NAME: Final = "sharegroup"


class ShareGroupDataSource(DataSource):
    """A Kafka share group (KIP-932) as a source of Spark's.

        spark.dataSource.register(ShareGroupDataSource)
        (spark.readStream.format("sharegroup")
            .option("kafka.bootstrap.servers", "localhost:9092")
            .option("subscribe", "orders")
            .option("kafka.share.group.id", "billing")
            .option("ledgerLocation", "/data/billing/ledger")
            .load())

    docs/spark.md has the options and what they promise.
    """

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        # Spark makes one instance for each load(), and pickles it into the plan.
        self._load_id = uuid4().hex

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        # A stream's options differ from a batch's in little; here nobody says which.
        options = read_options(self.options, streaming=False)
        return schema_of(include_headers=options.include_headers)

    def reader(self, schema: StructType) -> "ShareGroupBatchReader":
        options = read_options(self.options, streaming=False)
        check_schema(schema, include_headers=options.include_headers)
        return ShareGroupBatchReader(options, options.load_id or self._load_id)

    def streamReader(self, schema: StructType) -> "ShareGroupStreamReader":  # noqa: N802
        try:
            options = read_options(self.options)
            check_schema(schema, include_headers=options.include_headers)
        except ConfigurationError as error:
            return InvalidStreamReader(str(error))
        return ShareGroupStreamReader(options, self._load_id)


class ShareGroupStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """What Spark asks of a stream; `StreamQuery` answers."""

    def __init__(self, options: SourceOptions, load_id: str | None = None) -> None:
        self._options = options
        self._load_id = load_id
        self._query: Query | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return self._ready().initial()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        # The readers of one query are asked this before any is asked for an offset.
        self._ready()
        return default_limit(self._options)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._ready().end_when_drained()

    def latestOffset(  # noqa: N802
        self, start: dict[str, Any], limit: ReadLimit
    ) -> dict[str, Any]:
        query = self._ready()
        most, least = _limits(limit, self._options)
        return query.latest(start, most=most, least=least)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return self._ready().report()

    def partitions(
        self, start: dict[str, Any], end: dict[str, Any]
    ) -> Sequence[InputPartition]:
        return [RangesPartition(task) for task in self._ready().tasks(start, end)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, RangesPartition), "one of ours"
        return read_partition(partition, self._options)

    def commit(self, end: dict[str, Any]) -> None:
        self._ready().commit(end)

    def stop(self) -> None:
        if self._query is not None:
            self._query.stop()
        if isinstance(sys.exc_info()[1], EOFError):
            # Spark has closed the connection to end the query. Its runner would report
            # that over the connection, fail, and print both as a stack trace.
            sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (until this process ends)

    def _ready(self) -> Query:
        if self._query is None:
            self._query = (
                open_query(self._options, self._load_id)
                if self._load_id is not None
                else StreamQuery(self._options)
            )
            _end_on_signal(self._query)
        return self._query

    def __getstate__(self) -> Mapping[str, Any]:
        return {
            "_options": for_tasks(self._options),
            "_load_id": None,
            "_query": None,
        }


class InvalidStreamReader(ShareGroupStreamReader):
    """Raises an error at the first question.

    Raised by `streamReader`, the error would be hidden by an UnboundLocalError of
    Spark's own: its runner stops the reader that it does not have.
    """

    def __init__(self, reason: str) -> None:
        self._reason = reason
        self._query = None

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        raise ConfigurationError(self._reason)

    def _ready(self) -> Query:
        raise ConfigurationError(self._reason)

    def __getstate__(self) -> Mapping[str, Any]:
        return {"_reason": self._reason, "_query": None}


class ShareGroupBatchReader(DataSourceReader):
    """What Spark asks of a batch; its first planning acquires records."""

    def __init__(self, options: SourceOptions, load_id: str) -> None:
        self._options = options
        self._load_id = load_id

    def partitions(self) -> Sequence[InputPartition]:
        tasks = BatchQuery(self._options, self._load_id).tasks()
        # Of an empty list Spark makes a task of None.
        return [RangesPartition(task) for task in tasks] or [RangesPartition([])]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, RangesPartition), "one of ours"
        return read_partition(partition, self._options)

    def __getstate__(self) -> Mapping[str, Any]:
        return {"_options": for_tasks(self._options), "_load_id": self._load_id}


def default_limit(options: SourceOptions) -> ReadLimit:
    """Return the limit of a batch that the options set."""
    most, least = options.max_offsets_per_trigger, options.min_offsets_per_trigger
    if most is not None:
        return ReadMaxRows(most)
    return ReadAllAvailable() if least is None else ReadMinRows(least)


def _limits(limit: ReadLimit, options: SourceOptions) -> tuple[int | None, int | None]:
    """Give the most and the least of a batch; a limit other than ours is Spark's."""
    if isinstance(limit, ReadMaxRows):
        return limit.max_rows, options.min_offsets_per_trigger
    if isinstance(limit, ReadMinRows):
        return None, limit.min_rows
    return None, None


def _end_on_signal(query: Query) -> None:
    """Have SIGTERM end the member in good order; the socket's end ends this process.

    Its default would end both at once, holding what was acquired: each such end uses
    up a delivery.
    """
    if threading.current_thread() is not threading.main_thread():
        return

    def end(number: int, frame: object) -> None:
        # In a thread: this one may hold the locks that ending takes.
        threading.Thread(target=query.stop_soon, daemon=True).start()

    signal.signal(signal.SIGTERM, end)
