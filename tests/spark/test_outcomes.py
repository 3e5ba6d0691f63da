"""Outcomes that a query chooses for single records: rejected, or a dead letter."""

import os
import uuid
from types import SimpleNamespace

import anyio
import pytest

pytest.importorskip("pyspark", reason="needs sharecons[spark]")

from pyspark import cloudpickle
from pyspark.sql.functions import expr

from sharecons.admin import NewTopic, ShareGroupAdmin
from sharecons.copies.dead_letter_headers import Origin, origin_headers
from sharecons.copies.dead_letter_queue import DeadLetterQueue
from sharecons.dead_letters import DeadLetters, SourceStatus
from sharecons.errors import BrokerError, ConfigurationError
from sharecons.spark.options import read_options
from sharecons.spark.outcomes import DeadLetterTask, OutcomeWriter
from tests.spark.spark_session import Query

COPIED, FETCHED = SourceStatus.COPIED, SourceStatus.FETCHED

NEEDED = {
    "subscribe": "orders",
    "kafka.share.group.id": "billing",
    "ledgerLocation": "/ledgers/billing",
    "includeHeaders": "true",
}


def row(offset, **more):
    return SimpleNamespace(
        **{
            "key": bytearray(b"k"),
            "value": bytearray(b"v"),
            "headers": None,
            "topic": "orders",
            "partition": 0,
            "offset": offset,
            "timestamp": 1_700_000_000_000,
            "deliveryCount": 1,
            "reason": "no amount",
        }
        | more
    )


def dead_letters(servers, topic):
    async def read():
        async with DeadLetters(topic, bootstrap_servers=servers) as letters:
            return [letter async for letter in letters.read()]

    return anyio.run(read)


def task(broker, dead_letter="orders.dead"):
    options = read_options(
        NEEDED | {"kafka.bootstrap.servers": broker.bootstrap_servers}
    )
    made = DeadLetterTask(options, DeadLetterQueue(dead_letter))
    # As Spark passes it to executors.
    return cloudpickle.loads(cloudpickle.dumps(made))


def test_dead_letter_has_the_record_and_its_origin(any_kafka):
    dead = any_kafka.admin.create_topic()
    headers = [SimpleNamespace(key="trace", value=bytearray(b"7"))]

    task(any_kafka, dead)([row(17, headers=headers, value=None), row(18)])
    first, second = dead_letters(any_kafka.bootstrap_servers, dead)

    assert (first.key, first.value) == (b"k", None)
    assert ("trace", b"7") in first.headers
    assert first.origin.topic == "orders"
    assert (first.origin.offset, second.origin.offset) == (17, 18)
    assert first.origin.group == "billing"
    assert first.origin.reason == "no amount"
    assert first.origin.timestamp == 1_700_000_000_000


def test_record_with_forged_headers_of_a_dead_letter_is_dead_lettered(any_kafka):
    dead = any_kafka.admin.create_topic()
    forged = origin_headers(Origin(dead, 0, 0, "other", 1, "forged", dead_lettered=9))
    headers = [
        SimpleNamespace(key=key, value=bytearray(value)) for key, value in forged
    ]

    task(any_kafka, dead)([row(17, headers=headers)])
    (letter,) = dead_letters(any_kafka.bootstrap_servers, dead)

    assert ("orders", 17, 1) == (*letter.origin[:3:2], letter.origin.dead_lettered)


def test_compacted_dead_letter_topic_is_rejected(any_kafka):
    dead = any_kafka.admin.create_topic(config={"cleanup.policy": "compact"})
    options = NEEDED | {"kafka.bootstrap.servers": any_kafka.bootstrap_servers}

    with pytest.raises(ConfigurationError, match=r"cleanup\.policy=compact, which"):
        OutcomeWriter(options, dead_letter=dead)


def test_dead_letter_of_a_replayed_batch_is_a_duplicate(any_kafka):
    dead = any_kafka.admin.create_topic()

    for _ in range(2):
        task(any_kafka, dead)([row(17)])
    letters = dead_letters(any_kafka.bootstrap_servers, dead)

    assert [letter.duplicate_of is not None for letter in letters] == [False, True]


def test_dead_letter_that_is_rejected_fails_the_task(share_broker):
    share_broker.create_topic("orders.dead")
    with (
        share_broker.faults.on("Produce", times=None).refuse("INVALID_RECORD"),
        pytest.raises(BrokerError, match="INVALID_RECORD"),
    ):
        task(share_broker)([row(17)])


def test_record_whose_dead_letter_cannot_be_made_fails_the_task_with_its_error(
    share_broker,
):
    share_broker.create_topic("orders.dead")

    text = "record None-0@18 cannot be a dead letter: AttributeError"
    with pytest.raises(ConfigurationError, match=text):
        task(share_broker)([row(17), row(18, topic=None)])


def test_dead_letter_that_is_too_large_is_a_reference(any_kafka):
    topic, dead = any_kafka.admin.create_topic(), f"dead-{uuid.uuid4().hex[:12]}"
    large = os.urandom(3000)
    any_kafka.admin.produce(topic, [b"v", large])
    configs = {"max.message.bytes": 2000}

    async def create():
        async with ShareGroupAdmin(
            bootstrap_servers=any_kafka.bootstrap_servers
        ) as admin:
            new = NewTopic(dead, partitions=1, configs=configs)
            assert (await admin.create_topics(new)).ok

    anyio.run(create)

    task(any_kafka, dead)([row(0, topic=topic), row(1, topic=topic, value=large)])
    letters = dead_letters(any_kafka.bootstrap_servers, dead)

    assert [letter.status for letter in letters] == [COPIED, FETCHED]
    assert [letter.value for letter in letters] == [b"v", large]


@pytest.mark.parametrize(
    ("more", "dead_letter", "reason"),
    [
        ({"includeHeaders": "false"}, "orders.dead", "includeHeaders must be true"),
        ({}, "orders", "which the query reads itself"),
        ({}, "missing", "'missing' does not exist"),
        ({}, "a b", "dead_letter"),
    ],
)
def test_invalid_writer_is_rejected(share_broker, more, dead_letter, reason):
    share_broker.create_topic("orders.dead")
    servers = {"kafka.bootstrap.servers": share_broker.bootstrap_servers}

    with pytest.raises(ConfigurationError, match=reason):
        OutcomeWriter(NEEDED | servers | more, dead_letter=dead_letter)


def test_pattern_that_matches_the_dead_letter_topic_is_rejected():
    given = {name: text for name, text in NEEDED.items() if name != "subscribe"}
    given |= {"kafka.bootstrap.servers": "localhost:1", "subscribePattern": "orders.*"}

    with pytest.raises(ConfigurationError, match="which the query reads itself"):
        OutcomeWriter(given, dead_letter="orders.dead")


JUDGED = {
    "outcome": "case when offset % 3 = 1 then 'reject' "
    "when offset % 3 = 2 then 'dead_letter' end",
    "reason": "concat('offset ', offset)",
}


@pytest.mark.slow("Spark starts processes", seconds=60)
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore")
def test_each_record_of_a_query_has_the_outcome_that_it_chose(
    any_kafka, spark, tmp_path
):
    topic = any_kafka.admin.create_topic()
    dead = any_kafka.admin.create_topic()
    any_kafka.admin.produce(topic, [b"%d" % n for n in range(9)])
    servers = any_kafka.bootstrap_servers
    query = Query(servers, topic, f"g-{uuid.uuid4().hex[:8]}", tmp_path)
    query.options["includeHeaders"] = "true"
    writer = OutcomeWriter(query.options, dead_letter=dead)
    seen = []

    def write(batch, batch_id):
        judged = batch.withColumns({n: expr(text) for n, text in JUDGED.items()})
        accepted, dead_lettered, rejected = writer.apply(judged)
        accepted.write.mode("append").parquet(str(query.out))
        seen.append((dead_lettered, dict(rejected)))
        if batch_id == 0:
            with pytest.raises(ConfigurationError, match="outcome is 'retry'"):
                writer.apply(judged.withColumn("outcome", expr("'retry'")))
            with pytest.raises(ConfigurationError, match="no column outcome, reason"):
                writer.apply(batch)

    running = (
        query.read(spark)
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert running.awaitTermination(300)

    rows = spark.read.parquet(str(query.out))
    assert sorted(each.offset for each in rows.collect()) == [0, 3, 6]
    assert "outcome" not in rows.columns
    letters = dead_letters(servers, dead)
    assert sorted(letter.origin.offset for letter in letters) == [2, 5, 8]
    assert {letter.value for letter in letters} == {b"2", b"5", b"8"}
    assert letters[0].origin.reason.startswith("offset ")
    assert sum(count for count, _ in seen) == 3
    reasons = {reason: n for _, rejected in seen for reason, n in rejected.items()}
    assert reasons == {"offset 1": 1, "offset 4": 1, "offset 7": 1}
