"""The data source that Spark calls, for `spark.readStream` and `spark.read`.

PySpark (4.2 and 4.3) uses several processes:

- `ShareGroupDataSource` is created on the driver's machine and pickled.
- `ShareGroupStreamReader` is created in two processes there. One lives as long as the
  query and returns offsets and tasks; the member runs in it. The other one only
  pickles `read`. So creating a reader must be cheap, and it must be picklable.
- `read` runs in the workers of the tasks, on a copy that has only the options.
- Spark ends a query with SIGTERM, and closes the socket at the same time. It does not
  wait for `stop`, but does not interrupt it either.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any, Final, Self
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
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from sharecons.errors import ConfigurationError
from sharecons.spark.batch import BatchQuery
from sharecons.spark.options import QueryOptions, read_options
from sharecons.spark.pickling import Reduced, reduce_for_workers
from sharecons.spark.planning import ALL_OFFSETS
from sharecons.spark.query_link import open_query
from sharecons.spark.schema import check_schema, source_schema
from sharecons.spark.shared_query import Query
from sharecons.spark.stream import StreamQuery
from sharecons.spark.tasks import RangesPartition, options_for_tasks, read_partition

__all__ = [
    "ShareGroupBatchReader",
    "ShareGroupDataSource",
    "ShareGroupStreamReader",
]

NAME: Final = "sharegroup"


class ShareGroupDataSource(DataSource):
    """A Spark data source that reads from a Kafka share group (KIP-932).

        (spark.readStream.format("sharegroup")
            .option("kafka.bootstrap.servers", "localhost:9092")
            .option("subscribe", "orders")
            .option("kafka.share.group.id", "billing")
            .option("ledgerLocation", "/data/billing/ledger")
            .load())

    docs/spark.md describes the options and the guarantees.
    """

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        # Spark creates one instance per load(), and pickles it into the plan.
        self._load_id = uuid4().hex

    def __reduce__(self) -> Reduced[Self]:
        return reduce_for_workers(type(self), self.__dict__)

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        # Spark does not say whether this is for a batch or a stream. The options of
        # batches include the options of streams.
        options = read_options(self.options, streaming=False)
        return source_schema(include_headers=options.include_headers)

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
        return self.create_stream_reader(options, self._load_id)

    def create_stream_reader(
        self, options: QueryOptions, load_id: str
    ) -> "ShareGroupStreamReader":
        """Return the reader of a stream; subclasses can return a reader of their own.

        Args:
            options: the source's options, which are valid.
            load_id: the id of this `load()`.
        """
        return ShareGroupStreamReader(options, load_id)


class ShareGroupStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader of a stream; passes Spark's calls on to a `Query`."""

    def __init__(self, options: QueryOptions, load_id: str | None = None) -> None:
        self._options = options
        self._load_id = load_id
        self._query: Query | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return self._get_query().initial_offset()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        # Spark calls this for all readers of a query before it requests any offset.
        self._get_query()
        return default_limit(self._options)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._get_query().end_when_drained()

    def latestOffset(  # noqa: N802
        self, start: dict[str, Any], limit: ReadLimit
    ) -> dict[str, Any]:
        query = self._get_query()
        max_offsets, min_offsets = _batch_limits(limit, self._options)
        return query.latest_offset(
            start, max_offsets=max_offsets, min_offsets=min_offsets
        )

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return self._get_query().report_latest_offset()

    def partitions(
        self, start: dict[str, Any], end: dict[str, Any]
    ) -> Sequence[InputPartition]:
        return [
            RangesPartition(task) for task in self._get_query().plan_tasks(start, end)
        ]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, RangesPartition), "from partitions()"
        return read_partition(partition, self._options)

    def commit(self, end: dict[str, Any]) -> None:
        self._get_query().commit(end)

    def stop(self) -> None:
        if self._query is not None:
            self._query.stop()
        if isinstance(sys.exc_info()[1], EOFError):
            # Spark has closed the connection to end the query. Its runner would try to
            # report the EOFError over that connection, and print a stack trace.
            sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (until this process ends)

    def open_query(self) -> Query:
        """Open the ledger and join the group, or attach to the query's first reader."""
        if self._load_id is None:
            return StreamQuery(self._options)
        return open_query(self._options, self._load_id)

    def _get_query(self) -> Query:
        if self._query is None:
            self._query = self.open_query()
            stop_on_sigterm(self._query)
        return self._query

    def __reduce__(self) -> Reduced[Self]:
        options = options_for_tasks(self._options)
        return reduce_for_workers(
            type(self), {"_options": options, "_load_id": None, "_query": None}
        )


class InvalidStreamReader(ShareGroupStreamReader):
    """A reader that raises a configuration error at its first call.

    If `streamReader` raised it, an UnboundLocalError of Spark's runner would hide it:
    the runner stops the reader that was never assigned.
    """

    def __init__(self, reason: str) -> None:
        self._reason = reason
        self._query = None

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        raise ConfigurationError(self._reason)

    def open_query(self) -> Query:
        raise ConfigurationError(self._reason)

    def __reduce__(self) -> Reduced[Self]:
        return reduce_for_workers(type(self), {"_reason": self._reason, "_query": None})


class ShareGroupBatchReader(DataSourceReader):
    """The reader of a batch; its first planning acquires records.

    Attributes:
        load_id: the id of the `load()` in the ledger.
    """

    def __init__(self, options: QueryOptions, load_id: str) -> None:
        self._options = options
        self.load_id = load_id

    def partitions(self) -> Sequence[InputPartition]:
        tasks = BatchQuery(self._options, self.load_id).plan_tasks()
        # For an empty list Spark would plan one task with None.
        return [RangesPartition(task) for task in tasks] or [RangesPartition([])]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, RangesPartition), "from partitions()"
        return read_partition(partition, self._options)

    def __reduce__(self) -> Reduced[Self]:
        options = options_for_tasks(self._options)
        return reduce_for_workers(
            type(self), {"_options": options, "load_id": self.load_id}
        )


def default_limit(options: QueryOptions) -> ReadLimit:
    """Return the limit of a batch that the options set."""
    max_offsets, min_offsets = (
        options.max_offsets_per_trigger,
        options.min_offsets_per_trigger,
    )
    if max_offsets is not None:
        return ReadMaxRows(max_offsets)
    if options.max_bytes_per_trigger is not None:
        return ReadMaxBytes(options.max_bytes_per_trigger)
    return ReadAllAvailable() if min_offsets is None else ReadMinRows(min_offsets)


def _batch_limits(
    limit: ReadLimit, options: QueryOptions
) -> tuple[int | None, int | None]:
    """Return the maximum and the minimum of a batch, in offsets.

    Spark passes limits of its own, besides the limit of `default_limit`. The query
    itself applies `maxBytesPerTrigger`, unless the maximum is `ALL_OFFSETS`.
    """
    if isinstance(limit, ReadMaxRows):
        return limit.max_rows, options.min_offsets_per_trigger
    if isinstance(limit, ReadMinRows):
        return None, limit.min_rows
    if isinstance(limit, ReadMaxBytes):
        return None, options.min_offsets_per_trigger
    return (ALL_OFFSETS if options.max_bytes_per_trigger else None), None


def stop_on_sigterm(query: Query) -> None:
    """Make SIGTERM stop the member; this process ends when Spark closes the socket.

    By default SIGTERM ends the process immediately. The acquired records would be
    released, which uses up a delivery of each.
    """
    if threading.current_thread() is not threading.main_thread():
        return

    def end(number: int, frame: object) -> None:
        # In another thread: this one can hold the lock that request_stop takes.
        threading.Thread(target=query.request_stop, daemon=True).start()

    signal.signal(signal.SIGTERM, end)
