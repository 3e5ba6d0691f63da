"""Queries whose topics have lost records: a clear error, or the skip that was asked."""

import uuid

import pytest

pytest.importorskip("pyspark", reason="needs sharecons[spark]")

from tests.spark.fetched import Logs
from tests.spark.sparks import Query, kept

# What the embedded broker says to tasks there, tests/spark/test_fetching.py asks.
pytestmark = [
    pytest.mark.kafka,
    pytest.mark.slow,
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
    """What the query wrote, in order."""
    return sorted(int(value) for value in kept(query.out)["value"].to_pylist())


def leave_unread(spark, query):
    """Have a batch fail after it was planned: what it has stands in the ledger."""

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


def test_range_that_retention_removed_is_an_error_or_passed_over(spark, query, kafka):
    topic = query.options["subscribe"]
    kafka.admin.produce(topic, values(0, 100))
    leave_unread(spark, query)
    Logs(kafka.bootstrap_servers).delete_before(topic, 30)

    text = failure(query.start(query.read(spark), availableNow=True))
    assert f"{topic}-0, offsets 0 to 29 cannot be read any more" in text
    assert "set failOnDataLoss to false to go on without them" in text
    query.run(spark, **SKIP)
    assert numbers(query) == list(range(30, 100))


def test_topic_that_was_made_anew_is_an_error_or_gone_on_with(spark, query, kafka):
    topic = query.options["subscribe"]
    kafka.admin.produce(topic, values(0, 50))
    query.run(spark)
    kafka.admin.produce(topic, values(50, 60))
    leave_unread(spark, query)
    kafka.admin.delete_topic(topic)
    kafka.admin.create_topic(name=topic)
    kafka.admin.produce(topic, values(100, 120))

    text = failure(query.start(query.read(spark), availableNow=True))
    assert f"the topic {topic} was deleted and made anew" in text
    query.run(spark, **SKIP)
    assert numbers(query) == [*range(50), *range(100, 120)]
