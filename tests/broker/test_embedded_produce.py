"""`EmbeddedBroker.produce()` follows the settings of the topic, as any producer."""

import time

import pytest
from confluent_kafka import Producer

from sharecons.testing import EmbeddedBroker
from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.errors import RequestError
from sharecons.testing.broker.log.batches import decode_header

NOW = 1_800_000_000_000


@pytest.fixture
def kafka():
    with EmbeddedBroker(brokers=2) as broker:
        yield broker


def log_of(kafka, partition=0):
    return kafka.cluster.topics.by_name("orders").partition(partition).log


def batches(kafka, partition=0):
    log = log_of(kafka, partition)
    return log.batches(log.start_offset, log.end_offset, 1 << 30)


def now_ms():
    return time.time_ns() // 1_000_000


def produce_by_librdkafka(kafka, value, **message):
    """Return the name of the error that a real producer gets, or None."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 0})
    errors = []
    producer.produce(
        "orders",
        value,
        partition=0,
        on_delivery=lambda error, _: errors.append(error),
        **message,
    )
    producer.flush(10)
    (error,) = errors
    return None if error is None else error.name().lower()


CASES = {
    "too large": ({"max.message.bytes": "500"}, {}, "max.message.bytes=500"),
    "too old": (
        {"message.timestamp.before.max.ms": "1000"},
        {"timestamp": NOW - 10**11},
        "message.timestamp.before.max.ms=1000",
    ),
    "too new": (
        {"message.timestamp.after.max.ms": "1000"},
        {"timestamp": 4 * 10**12},
        "message.timestamp.after.max.ms=1000",
    ),
    "too new by default": (
        {},
        {"timestamp": 4 * 10**12},
        "message.timestamp.after.max.ms=3600000",
    ),
    "without a key": ({"cleanup.policy": "compact"}, {}, "cleanup.policy=compact"),
    "without a key, also deleted": (
        {"cleanup.policy": "compact,delete"},
        {},
        "cleanup.policy=compact,delete",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_produce_against_a_setting_raises_the_error_of_a_producer(kafka, case):
    config, message, setting = CASES[case]
    kafka.create_topic("orders", config=config)
    with pytest.raises(RequestError) as raised:
        kafka.produce("orders", [b"x" * 1000], partition=0, **message)

    assert f"topic 'orders', partition 0: {setting}: " in str(raised.value)
    error_name = produce_by_librdkafka(kafka, b"x" * 1000, **message)
    names = {
        ErrorCode.message_too_large: "msg_size_too_large",
        ErrorCode.invalid_timestamp: "invalid_timestamp",
        ErrorCode.invalid_record: "invalid_record",
    }
    assert error_name == names[raised.value.code]
    assert 0 == log_of(kafka).end_offset


def test_produce_writes_nothing_if_one_record_is_rejected(kafka):
    kafka.create_topic("orders", 2, config={"max.message.bytes": "500"})
    with pytest.raises(RequestError, match="partition 1: max.message.bytes=500"):
        kafka.produce("orders", [b"a", b"b", b"c", b"x" * 1000], batch=1)

    assert [0, 0] == [log_of(kafka, index).end_offset for index in (0, 1)]


def test_produce_splits_records_by_max_message_bytes(kafka):
    kafka.create_topic("orders", config={"max.message.bytes": "500"})
    kafka.produce("orders", [b"x" * 100] * 10, headers=[("name", b"value")])

    assert 10 == log_of(kafka).end_offset
    assert all(len(batch.data) <= 500 for batch in batches(kafka))
    assert len(batches(kafka)) < 10


def test_produce_splits_large_records_by_default_limit(kafka):
    kafka.create_topic("orders")
    kafka.produce("orders", [b"x" * 200_000, b"x" * 1_000_000])

    assert 2 == log_of(kafka).end_offset


def test_produce_with_log_append_time_sets_broker_time(kafka):
    kafka.create_topic("orders", config={"message.timestamp.type": "LogAppendTime"})
    began = now_ms()
    kafka.produce("orders", [b"x"], timestamp=5)

    (batch,) = batches(kafka)
    assert decode_header(batch.data).has_log_append_time
    assert began <= batch.max_timestamp <= now_ms()


def test_produce_uses_current_settings():
    with EmbeddedBroker(settings={"message.max.bytes": "500"}) as kafka:
        kafka.create_topic("orders")
        with pytest.raises(RequestError, match="max.message.bytes=500"):
            kafka.produce("orders", [b"x" * 1000])
        kafka.cluster.topics.by_name("orders").config["max.message.bytes"] = "2000"
        kafka.produce("orders", [b"x" * 1000])

        assert 1 == log_of(kafka).end_offset


def test_produce_without_in_sync_replicas_raises(kafka):
    kafka.create_topic("orders", config={"min.insync.replicas": "2"})
    kafka.produce("orders", [b"x"])
    kafka.stop_broker(2)
    with pytest.raises(RequestError, match="min.insync.replicas=2") as raised:
        kafka.produce("orders", [b"x"])

    assert ErrorCode.not_enough_replicas is raised.value.code
    assert 1 == log_of(kafka).end_offset


def test_produce_without_leader_raises(kafka):
    kafka.create_topic("orders", replication=1)
    kafka.stop_broker(1)
    with pytest.raises(RequestError, match="partition 0: no leader"):
        kafka.produce("orders", [b"x"])


def test_produce_uses_leader_epoch(kafka):
    kafka.create_topic("orders")
    kafka.move_leader("orders", 0, to=2)
    kafka.produce("orders", [b"x"])

    (batch,) = batches(kafka)
    assert 1 == batch.leader_epoch == decode_header(batch.data).leader_epoch


def test_produce_with_unequal_keys_and_values_raises(kafka):
    kafka.create_topic("orders")
    with pytest.raises(ValueError, match="2 values have 1 keys"):
        kafka.produce("orders", [b"x", b"y"], keys=["k"])
    with pytest.raises(TypeError, match="values must be an iterable"):
        kafka.produce("orders", b"xy")

    assert 0 == log_of(kafka).end_offset


def test_produce_writes_tombstones_to_compacted_topics(kafka):
    kafka.create_topic("orders", config={"cleanup.policy": "compact"})
    kafka.produce("orders", ["a", None], keys=["k", "k"])

    assert 2 == log_of(kafka).end_offset


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"values": [b"x", 5]}, TypeError, r"values\[1\] must be bytes, str or None"),
        ({"values": None}, TypeError, "values must be an iterable of bytes"),
        ({"keys": [5]}, TypeError, r"keys\[0\] must be bytes, str or None, not int"),
        ({"keys": "k"}, TypeError, "keys must be an iterable of bytes"),
        ({"headers": [("a", "text")]}, TypeError, "headers must be a sequence of"),
        ({"headers": [(1, b"")]}, TypeError, "headers must be a sequence of"),
        ({"headers": {"a": b""}}, TypeError, "headers must be a sequence of"),
        ({"partition": "0"}, TypeError, "partition must be an int, not '0'"),
        ({"timestamp": 1.5}, TypeError, "timestamp must be an int, in milliseconds"),
        ({"timestamp": "now"}, TypeError, "timestamp must be an int"),
        ({"timestamp": -1}, ValueError, "timestamp must be from 0 to"),
        ({"timestamp": 2**63}, ValueError, "timestamp must be"),
        ({"batch": 0}, ValueError, "batch must be from 1 to .*, in records, not 0"),
        ({"batch": 1.5}, TypeError, "batch must be an int, in records, not 1.5"),
    ],
)
def test_produce_with_invalid_argument_raises(kafka, arguments, error, message):
    kafka.create_topic("orders")
    with pytest.raises(error, match=message):
        kafka.produce("orders", **{"values": [b"x"], **arguments})

    assert 0 == log_of(kafka).end_offset
