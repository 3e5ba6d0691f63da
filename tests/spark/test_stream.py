"""Queries of a real PySpark in this process, on both brokers."""

import json
import time
from collections import Counter
from contextlib import suppress

import pytest

pytest.importorskip("pyspark", reason="needs sharecons[spark]")

from pyspark.sql.functions import udf

import sharecons.records.columns
from sharecons.spark.source import ShareGroupDataSource, ShareGroupStreamReader
from sharecons.spark.store import Store
from tests.spark.faults import wait_for_tasks
from tests.spark.spark_session import Query, committed_rows, self_join
from tests.waiting import until_true

pytestmark = [
    pytest.mark.slow("Spark starts processes"),
    pytest.mark.timeout(240),
    # Spark warns about pandas 3, and its gateway leaves sockets open.
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture
def queue(any_kafka, tmp_path):
    """A topic of two partitions, and a query on it."""
    topic = any_kafka.admin.create_topic(partitions=2)
    return Queue(any_kafka, topic, tmp_path)


class Queue(Query):
    def __init__(self, kafka, topic, base):
        super().__init__(kafka.bootstrap_servers, topic, f"g-{topic}", base)
        self.admin, self.topic = kafka.admin, topic
        self.group = f"g-{topic}"

    def produce(self, count, partition=0):
        values = [b"%d" % n for n in range(count)]
        self.admin.produce(self.topic, values, partition=partition)


def offset_counts(table):
    """Count each partition and offset in the output."""
    if table is None:
        return Counter()
    columns = (table["partition"].to_pylist(), table["offset"].to_pylist())
    return Counter(zip(*columns, strict=True))


def exactly_once(counts):
    """Return one of each offset, for a number of records per partition."""
    return Counter(
        {(p, offset): 1 for p, count in counts.items() for offset in range(count)}
    )


def failure(query):
    with pytest.raises(Exception) as caught:
        query.awaitTermination(60)
    return str(caught.value)


def test_available_now_reads_all_records_once_and_ends(spark, queue):
    queue.produce(3000)
    queue.produce(2000, partition=1)
    query = queue.run(spark, maxOffsetsPerTrigger="2000")

    assert offset_counts(committed_rows(queue.out)) == exactly_once({0: 3000, 1: 2000})
    progress = [p for p in query.recentProgress if p.numInputRows]
    assert max(p.numInputRows for p in progress) <= 2000
    stats = json.loads(progress[-1].sources[0].latestOffset)
    assert stats["position"] == stats["entered"] == 5000


def test_columns_equal_those_of_sparks_source(spark, queue):
    queue.admin.produce(
        queue.topic,
        ["v"],
        keys=["k"],
        partition=0,
        headers=[("trace", b"1"), ("none", None)],
    )
    queue.run(spark, includeHeaders="true")

    (row,) = committed_rows(queue.out).to_pylist()
    assert row["key"] == b"k"
    assert row["value"] == b"v"
    assert (row["topic"], row["partition"], row["offset"]) == (queue.topic, 0, 0)
    assert abs(row["timestamp"].timestamp() - time.time()) < 120
    assert row["timestampType"] == 0
    assert row["deliveryCount"] == 1
    assert row["headers"] == [
        {"key": "trace", "value": b"1"},
        {"key": "none", "value": None},
    ]


def test_running_query_reads_new_records_and_stops_without_using_a_delivery(
    spark, queue
):
    query = queue.start(queue.read(spark), processingTime="100 milliseconds")
    for count in (100, 200, 300):
        queue.produce(100)
        wait_for(count, queue, query)
    progress = query.lastProgress
    query.stop()
    queue.produce(10)
    queue.run(spark)

    table = committed_rows(queue.out)
    assert offset_counts(table) == exactly_once({0: 310})
    assert set(table["deliveryCount"].to_pylist()) == {1}
    # The backlog includes the batch that was just planned.
    latest = json.loads(progress.sources[0].latestOffset)
    assert latest["backlog"] >= progress.numInputRows


def wait_for(count, queue, query):
    """Wait until the output of a running query has `count` rows."""

    def has_rows():
        assert query.isActive, query.exception()
        return offset_counts(rows_so_far(queue)).total() >= count

    until_true(has_rows, within=60, what=f"{count} rows are written", pause=0.05)


def rows_so_far(queue):
    with suppress(FileNotFoundError, ValueError):
        return committed_rows(queue.out)


def test_workers_import_the_tested_sharecons(spark):
    def where(batches):
        import pyarrow as pa

        import sharecons.records.columns

        for _ in batches:
            yield pa.RecordBatch.from_pydict(
                {"where": [sharecons.records.columns.__file__]}
            )

    (row,) = (
        spark.createDataFrame([("",)], "where string")
        .mapInArrow(where, "where string")
        .collect()
    )

    assert row["where"] == sharecons.records.columns.__file__


def test_one_partition_is_read_by_four_tasks_in_parallel(spark, queue, tmp_path):
    running = tmp_path / "running"
    running.mkdir()
    directory = str(running)

    class Reader(ShareGroupStreamReader):
        def read(self, partition):
            rows = super().read(partition)
            yield next(rows)
            # All wait until each task has started.
            wait_for_tasks(directory, 4)
            yield from rows

    class Source(ShareGroupDataSource):
        def create_stream_reader(self, options, load_id):
            return Reader(options, load_id)

    spark.dataSource.register(Source)
    queue.produce(4000)
    try:
        queue.run(spark, minPartitions="4")
    finally:
        spark.dataSource.register(ShareGroupDataSource)

    assert offset_counts(committed_rows(queue.out)) == exactly_once({0: 4000})
    assert len(list(running.iterdir())) == 4


def test_failed_tasks_are_retried_with_the_same_records(spark, queue, tmp_path):
    marker = str(tmp_path / "failed")
    queue.produce(2000)
    queue.produce(2000, partition=1)

    def fail_once(batches):
        from pathlib import Path

        for number, batch in enumerate(batches):
            yield batch
            if not number and not Path(marker).exists():
                Path(marker).touch()
                raise RuntimeError("on purpose")

    frame = queue.read(spark, minPartitions="2")
    queue.run(spark, frame.mapInArrow(fail_once, frame.schema))

    assert (tmp_path / "failed").exists()
    assert offset_counts(committed_rows(queue.out)) == exactly_once({0: 2000, 1: 2000})


def test_second_query_on_a_ledger_is_rejected(spark, queue):
    queue.produce(10)
    first = queue.start(queue.read(spark), processingTime="100 milliseconds")
    try:
        until_true(lambda: first.recentProgress, within=60)
        second = queue.start(queue.read(spark), "other", availableNow=True)
        assert "ledger" in failure(second)
        assert first.isActive
    finally:
        first.stop()


@pytest.mark.thorough
def test_self_join_has_each_record_once_after_restarts(spark, queue):
    for count in (300, 500):
        queue.produce(count - offset_counts(committed_rows(queue.out)).total())
        frame = queue.read(spark, maxOffsetsPerTrigger="200")
        queue.run(spark, self_join(frame))

        assert offset_counts(committed_rows(queue.out)) == exactly_once({0: count})


@pytest.mark.thorough
def test_failed_batch_of_a_self_join_is_replayed(spark, queue):
    queue.produce(300)
    fails = udf(lambda value: 1 // 0, "long")
    joined = self_join(queue.read(spark))
    failing = queue.start(joined.where(fails("value") > 0), availableNow=True)
    assert "ZeroDivisionError" in failure(failing)
    assert offset_counts(committed_rows(queue.out)) == Counter()
    queue.produce(20, partition=1)
    queue.run(spark, self_join(queue.read(spark)))

    assert offset_counts(committed_rows(queue.out)) == exactly_once({0: 300, 1: 20})


def test_self_join_trims_ranges_that_both_sides_have_committed(spark, queue):
    joined = self_join(queue.read(spark))
    query = queue.start(joined, processingTime="100 milliseconds")
    for count in (100, 200, 300):
        queue.produce(100)
        wait_for(count, queue, query)
    query.stop()

    assert offset_counts(committed_rows(queue.out)) == exactly_once({0: 300})
    ledger = Store(str(queue.base / "ledger")).open(queue.group, lock_timeout=20)
    assert 100 <= ledger.begin


def test_second_query_on_a_load_is_rejected(spark, queue):
    queue.produce(10)
    frame = queue.read(spark)
    first = queue.start(frame, processingTime="100 milliseconds")
    second = queue.start(frame, "other", processingTime="100 milliseconds")
    try:
        until_true(lambda: not (first.isActive and second.isActive), within=60)
        active, failed = (first, second) if first.isActive else (second, first)
        assert "two queries use it" in failure(failed)
        active.processAllAvailable()
        assert active.isActive
    finally:
        first.stop()
        second.stop()


def test_query_starts_on_the_load_of_a_stopped_one(spark, queue):
    frame = queue.read(spark)
    for count in (10, 20):
        queue.produce(10)
        query = queue.start(frame, processingTime="100 milliseconds")
        wait_for(count, queue, query)
        query.stop()

        assert offset_counts(committed_rows(queue.out)) == exactly_once({0: count})


def test_invalid_options_are_rejected_when_the_query_is_created(spark, queue):
    with pytest.raises(Exception, match="startingOffsets is not supported"):
        queue.read(spark, startingOffsets="earliest")


def test_batch_reads_current_records_and_the_same_positions_again(spark, queue):
    queue.produce(300)
    queue.produce(200, partition=1)

    def read(**more):
        options = queue.options | more
        return spark.read.format("sharegroup").options(**options).load()

    first = read()
    rows = {(row.partition, row.offset, row.value) for row in first.collect()}
    assert len(rows) == 500
    assert first.count() == 500

    queue.produce(10)
    assert read().count() == 10
    again = read(startingPosition="0", endingPosition="500").collect()
    assert {(row.partition, row.offset, row.value) for row in again} == rows
    assert read(startingPosition="earliest", endingPosition="510").count() == 510
    with pytest.raises(Exception, match="ends at 510"):
        read(startingPosition="0", endingPosition="511").count()


def read_batch(spark, queue, **more):
    options = queue.options | more
    return spark.read.format("sharegroup").options(**options).load()


def latest_of_each_key(frame):
    latest = frame.groupBy("key").agg({"offset": "max"})
    joined = frame.join(latest.withColumnRenamed("max(offset)", "offset"), "offset")
    return {row.offset for row in joined.select("offset").collect()}


def test_batch_self_join_acquires_once(spark, queue):
    keys = [b"%d" % (n % 3) for n in range(10)]
    queue.admin.produce(queue.topic, keys, keys=keys, partition=0)
    frame = read_batch(spark, queue)

    assert latest_of_each_key(frame) == {7, 8, 9}
    queue.produce(5, partition=1)
    assert frame.union(frame).count() == 20
    assert read_batch(spark, queue).count() == 5
