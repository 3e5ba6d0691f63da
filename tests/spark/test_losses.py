"""Queries whose topics have lost records: a clear error, or a skip on request."""

import uuid

import pytest

pytest.importorskip("pyspark", reason="needs sharecons[spark]")

from pyspark.errors import AnalysisException

from tests.spark.fetch_helpers import Logs
from tests.spark.spark_session import Query, committed_rows
from tests.waiting import until_true

# tests/spark/test_fetching.py has the same for tasks, on the embedded broker.
pytestmark = [
    pytest.mark.kafka,
    pytest.mark.slow("Spark starts processes"),
    pytest.mark.timeout(240),
    pytest.mark.filterwarnings("ignore"),
]

SKIP = {"failOnDataLoss": "false"}


@pytest.fixture
def query(kafka, tmp_path):
    topic = kafka.admin.create_topic()
    group = f"spark-{uuid.uuid4().hex[:8]}"
    return Query(kafka.bootstrap_servers, topic, group, tmp_path)


def values(first, end):
    return [b"%d" % number for number in range(first, end)]


def numbers(query):
    """Return the values that the query has written, in order."""
    table = committed_rows(query.out)
    return [] if table is None else sorted(map(int, table["value"].to_pylist()))


def leave_unread(spark, query):
    """Make a batch fail after it was planned: its ranges stay in the ledger."""

    def fail(frame, batch):
        raise RuntimeError("on purpose")

    writing = query.read(spark).writeStream.foreachBatch(fail)
    checkpoint = str(query.base / "checkpoint")
    running = writing.option("checkpointLocation", checkpoint)
    assert "on purpose" in failure(running.trigger(availableNow=True).start())


def failure(running):
    with pytest.raises(Exception) as caught:
        running.awaitTermination(60)
    return str(caught.value)


def test_range_removed_by_retention_is_an_error_or_skipped(spark, query, kafka):
    topic = query.options["subscribe"]
    kafka.admin.produce(topic, values(0, 100))
    leave_unread(spark, query)
    Logs(kafka.bootstrap_servers).delete_before(topic, 30)

    text = failure(query.start(query.read(spark), availableNow=True))
    assert f"{topic}-0, offsets 0 to 29 cannot be read any more" in text
    assert "set failOnDataLoss to false to continue without them" in text
    query.run(spark, **SKIP)
    assert numbers(query) == list(range(30, 100))


def test_recreated_topic_is_an_error_or_read(spark, query, kafka):
    topic = query.options["subscribe"]
    kafka.admin.produce(topic, values(0, 50))
    query.run(spark)
    kafka.admin.produce(topic, values(50, 60))
    leave_unread(spark, query)
    kafka.admin.delete_topic(topic)
    kafka.admin.create_topic(name=topic)
    kafka.admin.produce(topic, values(100, 120))

    text = failure(query.start(query.read(spark), availableNow=True))
    assert f"the topic {topic} was deleted and created again" in text
    query.run(spark, **SKIP)
    assert numbers(query) == [*range(50), *range(100, 120)]


def test_topic_recreated_during_a_query_is_read(spark, query, kafka):
    topic = query.options["subscribe"]
    kafka.admin.produce(topic, values(0, 50))
    running = query.start(query.read(spark, **SKIP), processingTime="0 seconds")
    try:
        wait_while_active(running, lambda: numbers(query) == list(range(50)))
        kafka.admin.delete_topic(topic)
        kafka.admin.create_topic(name=topic)
        kafka.admin.produce(topic, values(100, 120))
        wait_while_active(running, lambda: len(numbers(query)) >= 70)
    finally:
        running.stop()
    kafka.admin.produce(topic, values(120, 130))
    query.run(spark, **SKIP)

    assert numbers(query) == [*range(50), *range(100, 130)]


def test_missing_or_forbidden_topic_is_named_in_the_error(spark, query, kafka):
    missing = query.options | {"subscribe": f"{query.options['subscribe']},ordres"}
    with pytest.raises(AnalysisException, match="topic 'ordres' does not exist"):
        spark.read.format("sharegroup").options(**missing).load().collect()
    secret = query.options["subscribe"]
    kafka.admin.deny_topic(secret)
    try:
        text = failure(query.start(query.read(spark, **SKIP), availableNow=True))
    finally:
        kafka.admin.allow_topic(secret)
    assert f"topic '{secret}' is not readable" in text


def wait_while_active(running, condition):
    """Wait for a condition; fail if the query ends before."""

    def check():
        assert running.isActive, running.exception()
        return condition()

    until_true(check, within=60, pause=0.1)
