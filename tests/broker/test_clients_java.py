"""Kafka's command line tools on the embedded broker.

With SHARECONS_TEST_BROKER=kafka they run on a real Kafka, which checks the expected
results.
"""

import json
from contextlib import contextmanager

import pytest
from confluent_kafka import ShareConsumer

from tests.broker.clients import new_name, poll_until
from tests.broker.java_tools import JavaTools
from tests.kafka_plugin import BROKERS

# The tools need a Java, on either Kafka.
pytestmark = [pytest.mark.kafka, pytest.mark.slow("Kafka's Java tools start a JVM")]

LINES = [f"line {number}" for number in range(30)]


@pytest.fixture
def kafka(request):
    which = "real_kafka" if BROKERS == "kafka" else "embedded_kafka"
    return request.getfixturevalue(which)


@pytest.fixture
def tools(kafka):
    return JavaTools(kafka.bootstrap_servers)


@pytest.fixture
def admin(kafka):
    return kafka.admin


@pytest.fixture
def topic(admin):
    return admin.create_topic(2)


@pytest.fixture
def share_group(admin):
    """Return a share group that starts at the earliest offset, without delay."""
    group = new_name("group")
    config = {
        "share.auto.offset.reset": "earliest",
        "share.heartbeat.interval.ms": 100,
        "share.assignment.interval.ms": 0,
    }
    admin.set_group_config(group, config)
    return group


@contextmanager
def member(kafka, group, topic):
    """Run a member of a share group."""
    settings = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "group.id": group,
        "client.id": "client",
        "log_level": 0,
    }
    with ShareConsumer(settings) as consumer:
        consumer.subscribe([topic])
        yield consumer


def take(consumer, count):
    records = []
    poll = lambda: records.extend(consumer.poll(0.2))  # noqa: E731
    poll_until(f"{count} records", lambda: len(records) >= count, poll)
    consumer.commit_sync(20.0)


def test_topics_are_created_extended_described_and_deleted(tools):
    name = new_name("topic")
    what = ("--topic", name)
    config = ("--config", "retention.ms=5000")

    created = tools.run("kafka-topics", "--create", *what, "--partitions", "3", *config)
    tools.run("kafka-topics", "--alter", *what, "--partitions", "4")
    listed = tools.run("kafka-topics", "--list")
    first, *partitions = tools.run("kafka-topics", "--describe", *what)
    tools.run("kafka-topics", "--delete", *what)

    assert [f"Created topic {name}."] == created
    assert name in listed
    assert "PartitionCount: 4\tReplicationFactor: 1\t" in first
    assert "retention.ms=5000" in first
    assert [
        f"\tTopic: {name}\tPartition: {number}\tLeader: 1\tReplicas: 1\tIsr: 1"
        for number in range(4)
    ] == [line.partition("\tElr: ")[0] for line in partitions]
    # Only in-sync replicas are eligible leaders; older Kafkas do not list them.
    assert {"\tLastKnownElr: "} == {line.partition("\tElr: ")[2] for line in partitions}
    assert name not in tools.run("kafka-topics", "--list")


def test_kafka_configs_describes_and_alters_settings(tools, topic):
    group = new_name("group")

    def configs(kind, name, *args):
        where = ("--entity-type", kind, "--entity-name", name)
        return tools.run("kafka-configs", *where, *args)

    def described(kind, name):
        _, *settings = configs(kind, name, "--describe")
        return [setting.split()[0] for setting in settings]

    settings = "retention.ms=9999,max.message.bytes=5000"
    configs("topics", topic, "--alter", "--add-config", settings)
    assert ["max.message.bytes=5000", "retention.ms=9999"] == described("topics", topic)
    configs("topics", topic, "--alter", "--delete-config", "retention.ms")
    assert ["max.message.bytes=5000"] == described("topics", topic)

    setting = "share.record.lock.duration.ms=16000"
    configs("groups", group, "--alter", "--add-config", setting)
    assert [setting] == described("groups", group)
    every = tools.run("kafka-configs", "--describe", "--entity-type", "groups")
    assert f"Dynamic configs for group {group} are:" in every
    assert [] == described("brokers", "1")


def test_console_consumer_reads_what_console_producer_wrote(tools, topic):
    group = new_name("group")
    tools.run("kafka-console-producer", "--topic", topic, stdin="\n".join(LINES))

    read = tools.run(
        "kafka-console-consumer",
        *("--topic", topic, "--group", group, "--from-beginning"),
        *("--max-messages", str(len(LINES)), "--timeout-ms", "20000"),
    )

    assert sorted(LINES) == sorted(read)
    assert group in tools.run("kafka-consumer-groups", "--list")
    where = ("--group", group, "--topic", topic)
    assert len(LINES) == _sum(tools, group, "CURRENT-OFFSET")
    tools.run(
        "kafka-consumer-groups", "--reset-offsets", "--to-earliest", "--execute", *where
    )
    assert (0, len(LINES)) == (
        _sum(tools, group, "CURRENT-OFFSET"),
        _sum(tools, group, "LAG"),
    )
    _, state = tools.run(
        "kafka-consumer-groups", "--describe", "--state", "--group", group
    )
    assert [group, "Empty", "0"] == [state.split()[0], *state.split()[-2:]]
    tools.run("kafka-consumer-groups", "--delete-offsets", *where)
    tools.run("kafka-consumer-groups", "--delete", "--group", group)
    assert group not in tools.run("kafka-consumer-groups", "--list")


def _sum(tools, group, column):
    rows = tools.table("kafka-consumer-groups", "--describe", "--group", group)
    return sum(int(row[column]) for row in rows if row["GROUP"] == group)


def test_verifiable_producer_gets_all_acknowledgements(tools, topic):
    lines = tools.run(
        "kafka-verifiable-producer", "--topic", topic, "--max-messages", "50"
    )
    events = [json.loads(line) for line in lines]

    assert "startup_complete" == events[0]["name"]
    sent = [each for each in events if each["name"] == "producer_send_success"]
    assert [str(number) for number in range(50)] == [each["value"] for each in sent]
    assert (50, 50) == (events[-1]["sent"], events[-1]["acked"])
    offsets = tools.run("kafka-get-offsets", "--topic", topic)
    assert 50 == sum(int(line.split(":")[2]) for line in offsets)


def test_console_share_consumer_reads_all_records(tools, admin, topic, share_group):
    admin.produce(topic, LINES)

    read = tools.run(
        "kafka-console-share-consumer",
        *("--topic", topic, "--group", share_group),
        *("--max-messages", str(len(LINES)), "--timeout-ms", "20000"),
        *("--formatter-property", "print.delivery=true"),
    )

    assert sorted(f"Delivery:1\t{line}" for line in LINES) == sorted(read)


def test_verifiable_share_consumer_accepts_all_records(
    tools, admin, topic, share_group
):
    admin.produce(topic, LINES)

    lines = tools.run(
        "kafka-verifiable-share-consumer",
        *("--topic", topic, "--group-id", share_group),
        *("--max-messages", str(len(LINES)), "--acknowledgement-mode", "sync"),
    )
    events = [json.loads(line) for line in lines]

    assert "shutdown_complete" == events[-1]["name"]
    accepted = [each for each in events if each["name"] == "offsets_acknowledged"]
    assert len(LINES) == sum(each["count"] for each in accepted)
    assert all(each["success"] for each in accepted)


def test_a_share_group_with_a_member_is_described(tools, kafka, topic, share_group):
    kafka.admin.produce(topic, LINES, partition=1)
    with member(kafka, share_group, topic) as consumer:
        take(consumer, len(LINES))

        def described(what):
            which = ("--group", share_group, what)
            return tools.table("kafka-share-groups", "--describe", *which)

        (one,) = described("--members")
        (state,) = tools.run(
            "kafka-share-groups", "--describe", "--group", share_group, "--state"
        )[1:]
        offsets = described("--offsets")
        listed = tools.table("kafka-share-groups", "--list", "--state")

    assert (share_group, "/127.0.0.1", "client", "2", f"{topic}:0,1") == (
        one["GROUP"],
        one["HOST"],
        one["CLIENT-ID"],
        one["#PARTITIONS"],
        one["ASSIGNMENT"],
    )
    assert [share_group, kafka.bootstrap_servers, "(1)", "Stable", "1"] == (
        state.split()
    )
    # The start offset is the last one written, which can be old; the lag is exact.
    assert [(topic, "0")] == [
        (row["TOPIC"], row["LAG"]) for row in offsets if row["PARTITION"] == "1"
    ]
    assert {"GROUP": share_group, "STATE": "Stable"} in listed


def test_offsets_of_a_share_group_are_reset_and_deleted(
    tools, kafka, topic, share_group
):
    kafka.admin.produce(topic, LINES, partition=0)
    with member(kafka, share_group, topic) as consumer:
        take(consumer, len(LINES))

        busy = ("--reset-offsets", "--to-earliest", "--execute", "--topic", topic)
        output = tools.run_failing("kafka-share-groups", "--group", share_group, *busy)
        assert f"Share group '{share_group}' is not empty." in output
    which = ("--group", share_group)

    def offsets():
        rows = tools.table("kafka-share-groups", "--describe", *which)
        return {row["PARTITION"]: (row["START-OFFSET"], row["LAG"]) for row in rows}

    assert "0" == offsets()["0"][1]
    tools.run("kafka-share-groups", *which, *busy)
    assert {"0": ("0", "30"), "1": ("0", "0")} == offsets()
    deleted = tools.table(
        "kafka-share-groups", *which, "--delete-offsets", "--topic", topic
    )
    assert [{"TOPIC": topic, "STATUS": "Successful"}] == deleted
    (nothing,) = tools.run("kafka-share-groups", "--describe", *which)
    assert f"Share group '{share_group}' has no offset information." == nothing
    tools.run("kafka-share-groups", "--delete", *which)
    assert share_group not in tools.run("kafka-share-groups", "--list")


def test_client_metrics_tool_alters_describes_lists_and_deletes(tools):
    name = new_name("subscription")
    named = ("--name", name)

    tools.run(
        "kafka-client-metrics",
        *("--alter", *named, "--metrics", "a.,b.", "--interval", "1000"),
        *("--match", "client_id=billing.*"),
    )
    described = tools.run("kafka-client-metrics", "--describe", *named)
    assert name in tools.run("kafka-client-metrics", "--list")
    tools.run("kafka-client-metrics", "--delete", *named)

    assert [
        f"Client metrics configs for {name} are:",
        "interval.ms=1000",
        "match=client_id=billing.*",
        "metrics=a.,b.",
    ] == [line.strip() for line in described]
    assert name not in tools.run("kafka-client-metrics", "--list")
