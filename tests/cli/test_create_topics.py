"""`sharecons create-topics` on the embedded broker, and on a real Kafka."""

import json

import pytest

from sharecons.admin import NewTopic, Topic
from sharecons.admin import TopicPartitionInfo as Partition
from sharecons.cli.create_topics.plan import differences
from sharecons.cli.exit_codes import ExitCode
from sharecons.copies.topic_configs import CopyTopic, SourceTopic
from tests.broker.clients import new_name
from tests.cli.run_cli import run_cli

SETTINGS = (
    "cleanup.policy=delete, retention.ms=86400000, max.message.bytes={max_bytes}, "
    "retention.bytes=-1, min.insync.replicas=1"
)


@pytest.fixture(scope="module")
def kafka(any_kafka):
    return any_kafka


@pytest.fixture
def topic(kafka):
    name = new_name("orders")
    kafka.admin.create_topic(3, name, config={"retention.ms": "86400000"})
    return name


@pytest.fixture
def create(kafka, topic):
    def run(*args):
        where = ("--bootstrap-server", kafka.bootstrap_servers)
        return run_cli("create-topics", "--topic", topic, *args, *where)

    return run


def test_missing_topics_have_the_settings_of_the_source(create, kafka, topic):
    retry, dead = f"{topic}.retry", f"{topic}.dead"

    result = create("--retry-topic", f"{retry}=60", "--dead-letter", dead)

    assert (0, "") == (result.code, result.err)
    settings = SETTINGS.format(max_bytes=1048588 + 16384)
    assert [
        f"created retry topic {retry}: partitions=3, replication.factor=1, {settings}",
        f"created dead-letter topic {dead}: partitions=3, replication.factor=1, "
        f"{settings}",
    ] == result.out.splitlines()
    again = create("--retry-topic", f"{retry}=60", "--dead-letter", dead)
    assert (0, "") == (again.code, again.err)
    assert [f"exists retry topic {retry}", f"exists dead-letter topic {dead}"] == (
        again.out.splitlines()
    )


def test_dry_run_creates_nothing(create, topic):
    retry = f"{topic}.retry"

    first = create("--retry-topic", retry, "--dry-run")
    second = create("--retry-topic", retry, "--dry-run")

    assert 0 == first.code, first.err
    assert first.out.startswith(f"would create retry topic {retry}: partitions=3, ")
    assert first.out == second.out


def test_existing_topic_with_other_settings_says_which_differ(create, kafka, topic):
    dead, retry = f"{topic}.dead", f"{topic}.retry"
    kafka.admin.create_topic(
        1, dead, config={"retention.ms": "1000", "cleanup.policy": "compact"}
    )
    kafka.admin.create_topic(
        6, retry, config={"retention.ms": "-1", "max.message.bytes": "2000000"}
    )

    result = create("--dead-letter", dead)
    harmless = create("--retry-topic", retry)

    assert ExitCode.FAILED == result.code
    assert (
        f"exists dead-letter topic {dead}, with partitions=1 instead of 3, "
        "cleanup.policy=compact instead of delete (records can be lost), "
        "retention.ms=1000 instead of 86400000 (records can be lost), "
        "max.message.bytes=1048588 instead of 1064972\n"
    ) == result.out
    assert ExitCode.SUCCESS == harmless.code
    assert (
        f"exists retry topic {retry}, with partitions=6 instead of 3, "
        "retention.ms=-1 instead of 86400000, "
        "max.message.bytes=2000000 instead of 1064972\n"
    ) == harmless.out


def test_partitions_and_replicas_of_options_are_used(create, topic):
    dead = f"{topic}.dead"

    result = create("--dead-letter", dead, "--partitions", "5", "--json")
    failed = create("--retry-topic", f"{topic}.r", "--replication-factor", "3")

    (row,) = json.loads(result.out)
    assert (dead, "dead-letter topic", "created") == (
        row["topic"],
        row["role"],
        row["action"],
    )
    assert (5, 1, [], None) == (
        row["partitions"],
        row["replication_factor"],
        row["differences"],
        row["error"],
    )
    assert ExitCode.FAILED == failed.code
    assert "" == failed.out
    assert "INVALID_REPLICATION_FACTOR" in failed.err


def test_topic_that_the_worker_consumes_must_exist(kafka):
    result = run_cli(
        *("create-topics", "--topic", "missing", "--dead-letter", "missing.dead"),
        *("--bootstrap-server", kafka.bootstrap_servers),
    )

    assert ExitCode.FAILED == result.code
    assert "cannot describe topic 'missing': UNKNOWN_TOPIC_OR_PARTITION" in result.err
    assert "" == result.out


def test_retry_topic_that_keeps_copies_for_less_than_their_delay_loses_records(
    create, kafka, topic
):
    retry = f"{topic}.retry"
    kafka.admin.create_topic(3, retry, config={"retention.ms": "8000"})

    result = create("--retry-topic", f"{retry}=40")

    assert ExitCode.FAILED == result.code
    assert "retention.ms=8000 instead of 86400000 (records can be lost)" in result.out


def test_retry_topic_of_a_source_with_a_short_retention_keeps_its_copies(create, topic):
    result = create("--retry-topic", f"{topic}.retry=86400", "--dry-run")

    assert "retention.ms=129660000" in result.out


@pytest.fixture
def create_plain(kafka):
    def run(*args):
        where = ("--bootstrap-server", kafka.bootstrap_servers)
        return run_cli("create-topics", *args, *where)

    return run


def test_named_topics_are_created_and_reported_when_they_exist(create_plain, kafka):
    one, other = new_name("orders"), new_name("refunds")

    planned = create_plain(f"{one}:6", "--dry-run")
    result = create_plain(f"{one}:6", other, "--partitions", "2")
    again = create_plain(f"{one}:6", other)

    assert f"would create topic {one}: partitions=6" in planned.out
    assert (0, "") == (result.code, result.err)
    assert [
        f"created topic {one}: partitions=6, replication.factor=1",
        f"created topic {other}: partitions=2, replication.factor=1",
    ] == result.out.splitlines()
    assert (0, "") == (again.code, again.err)
    assert [f"exists topic {one}", f"exists topic {other}"] == again.out.splitlines()


def test_named_topic_with_other_numbers_fails_and_stays(create_plain, kafka, topic):
    result = create_plain(f"{topic}:6", "--replication-factor", "2", "--json")

    (row,) = json.loads(result.out)
    assert ExitCode.FAILED == result.code
    assert ("exists", "topic") == (row["action"], row["role"])
    assert [("partitions", "3", "6"), ("replication.factor", "1", "2")] == [
        (each["name"], each["found"], each["wanted"]) for each in row["differences"]
    ]
    shown = create_plain(f"{topic}:6")
    assert f"exists topic {topic}, with partitions=3 instead of 6\n" == shown.out


def test_misspelled_topic_of_a_worker_names_the_nearest(create_plain, topic):
    wrong = topic.replace("orders", "order")

    result = create_plain("--topic", wrong, "--dead-letter", "dead")

    assert ExitCode.FAILED == result.code
    assert f"did you mean {topic!r}?" in result.err


# The comparison.


COPY = CopyTopic("t", False, frozenset(["s"]))
WANTED = NewTopic("t", partitions=1, replication_factor=2, configs={"retention.ms": -1})
FOUND = Topic(
    name="t",
    topic_id=bytes(16),
    internal=False,
    partitions={
        0: Partition(leader=1, leader_epoch=0, replicas=(1, 2, 3), in_sync=(1,))
    },
)


def test_number_of_replicas_is_compared():
    (found,) = differences(COPY, WANTED, FOUND, {}, [])

    assert "replication.factor=3 instead of 2" == str(found)


def test_any_limit_of_time_loses_records_if_the_source_has_none():
    source = SourceTopic("s", 1, {"retention.ms": "-1"})

    (_, found) = differences(COPY, WANTED, FOUND, {"retention.ms": "1000"}, [source])

    assert found.loses_records


def test_smaller_records_than_the_source_lose_records():
    wanted = NewTopic("t", configs={"max.message.bytes": "1100"})
    source = SourceTopic("s", 1, {"max.message.bytes": "1000"})

    (less,) = differences(COPY, wanted, FOUND, {"max.message.bytes": "999"}, [source])
    (same,) = differences(COPY, wanted, FOUND, {"max.message.bytes": "1000"}, [source])

    assert less.loses_records
    assert not same.loses_records
