"""Invalid settings are rejected with the messages of a real Kafka."""

import uuid

import pytest

from tests.broker.configs import (
    APPEND,
    BROKER,
    GROUP,
    SET,
    SUBTRACT,
    TOPIC,
    alter,
    invalid,
)
from tests.broker.either import BOTH, either_broker


@pytest.fixture
def group():
    return f"group-{uuid.uuid4().hex[:8]}"


TOPICS = [
    ("retention.ms", "-5", "-5", "Value must be at least -1"),
    ("retention.ms", "abc", "abc", "Not a number of type LONG"),
    ("retention.ms", "", "", "Not a number of type LONG"),
    ("segment.bytes", "1", "1", "Value must be at least 1048576"),
    ("segment.bytes", "99999999999", "99999999999", "Not a number of type INT"),
    ("min.insync.replicas", "0", "0", "Value must be at least 1"),
    ("max.message.bytes", "-1", "-1", "Value must be at least 0"),
    ("min.cleanable.dirty.ratio", "2", "2.0", "Value must be no more than 1"),
    ("min.cleanable.dirty.ratio", "x", "x", "Not a number of type DOUBLE"),
    ("compression.lz4.level", "99", "99", "Value must be no more than 17"),
    (
        "compression.gzip.level",
        "0",
        "0",
        "Value must be between 1 and 9 or equal to -1",
    ),
    ("preallocate", "maybe", "maybe", "Expected value to be either true or false"),
    ("cleanup.policy", "foo", "foo", "String must be one of: compact, delete"),
    ("cleanup.policy", "delete,foo", "foo", "String must be one of: compact, delete"),
    (
        "message.timestamp.type",
        "X",
        "X",
        "String must be one of: CreateTime, LogAppendTime",
    ),
    (
        "compression.type",
        "zip",
        "zip",
        "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer",
    ),
    (
        "leader.replication.throttled.replicas",
        "x",
        "[x]",
        "leader.replication.throttled.replicas must be the literal '*' or a list of "
        "replicas in the following format: "
        "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
    ),
]


@pytest.fixture(scope="module", params=BOTH)
def topic_of_either(request):
    either = either_broker(request)
    return either, either.create_topic()


@pytest.mark.parametrize(("name", "value", "as_shown", "reason"), TOPICS)
def test_invalid_topic_setting_is_rejected(
    topic_of_either, name, value, as_shown, reason
):
    broker, topic = topic_of_either
    error = alter(broker, TOPIC, topic, (name, SET, value))

    assert ("invalid_config", invalid(as_shown, name, reason)) == error


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("retention.ms", "-1"),
        ("retention.ms", " 9999 "),
        ("cleanup.policy", "compact,delete"),
        ("cleanup.policy", ""),
        ("compression.gzip.level", "-1"),
        ("leader.replication.throttled.replicas", "*"),
        ("follower.replication.throttled.replicas", "0:1,1:1"),
        ("preallocate", "TRUE"),
        ("message.timestamp.type", "LogAppendTime"),
        ("min.cleanable.dirty.ratio", "0.25"),
    ],
)
def test_valid_topic_setting_is_accepted(topic_of_either, name, value):
    broker, topic = topic_of_either

    assert not alter(broker, TOPIC, topic, (name, SET, value))


RESET = (
    "Invalid value `{0}` for configuration share.auto.offset.reset. The value must be "
    "either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
)
GROUPS = [
    ("share.session.timeout.ms", "0", "Value must be at least 1"),
    ("share.session.timeout.ms", "5.5", "Not a number of type INT"),
    ("share.heartbeat.interval.ms", "0", "Value must be at least 1"),
    ("share.record.lock.duration.ms", "10", "Value must be at least 1000"),
    ("share.delivery.count.limit", "1", "Value must be at least 2"),
    ("share.partition.max.record.locks", "99", "Value must be at least 100"),
    ("share.assignment.interval.ms", "-1", "Value must be at least 0"),
    ("share.auto.offset.reset", "EARLIEST", RESET),
    ("share.auto.offset.reset", "by_duration:zz", RESET),
    ("share.auto.offset.reset", "by_duration:-PT1H", RESET),
    ("share.auto.offset.reset", "by_duration:P", RESET),
    ("share.auto.offset.reset", "by_duration:PT", RESET),
    (
        "share.isolation.level",
        "READ_COMMITTED",
        "String must be one of: read_committed, read_uncommitted",
    ),
    (
        "share.renew.acknowledge.enable",
        "x",
        "Expected value to be either true or false",
    ),
]


@pytest.mark.parametrize(("name", "value", "reason"), GROUPS)
def test_invalid_group_setting_is_rejected(either, group, name, value, reason):
    error = alter(either, GROUP, group, (name, SET, value))

    assert ("invalid_config", invalid(value, name, reason.format(value))) == error


BOUNDS = [
    ("share.session.timeout.ms", "60001", "group.share.max.session.timeout.ms"),
    ("share.heartbeat.interval.ms", "15001", "group.share.max.heartbeat.interval.ms"),
    (
        "share.record.lock.duration.ms",
        "60001",
        "group.share.max.record.lock.duration.ms",
    ),
    ("share.delivery.count.limit", "11", "group.share.max.delivery.count.limit"),
    (
        "share.partition.max.record.locks",
        "4001",
        "group.share.max.partition.max.record.locks",
    ),
    (
        "share.assignment.interval.ms",
        "15001",
        "group.share.max.assignment.interval.ms",
    ),
    ("streams.num.standby.replicas", "9", "group.streams.max.standby.replicas"),
]


@pytest.mark.parametrize(("name", "value", "bound"), BOUNDS)
def test_broker_settings_bound_group_settings_above(either, group, name, value, bound):
    error = alter(either, GROUP, group, (name, SET, value))

    assert (
        "invalid_config",
        f"{name} must be less than or equal to {bound}",
    ) == error


def test_broker_settings_bound_group_settings_below(either, group):
    error = alter(either, GROUP, group, ("consumer.session.timeout.ms", SET, "1"))

    assert error == (
        "invalid_config",
        "consumer.session.timeout.ms must be greater than or equal to "
        "group.consumer.min.session.timeout.ms",
    )


def test_session_timeout_must_exceed_heartbeat_interval(either, group):
    session, heartbeat = "share.session.timeout.ms", "share.heartbeat.interval.ms"
    error = alter(either, GROUP, group, (session, SET, "4000"))

    assert ("invalid_config", f"{session} must be greater than {heartbeat}") == error
    assert not alter(
        either, GROUP, group, (session, SET, "4000"), (heartbeat, SET, "3999")
    )


@pytest.mark.parametrize(
    "value", ["earliest", "latest", "by_duration:PT1H", "by_duration:P1DT2H3M4.5S"]
)
def test_valid_auto_offset_reset_is_accepted(either, group, value):
    assert not alter(either, GROUP, group, ("share.auto.offset.reset", SET, value))


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        (TOPIC, [("nope", SET, "1")], "Unknown topic config name: nope"),
        (GROUP, [("nope", SET, "1")], "Unknown group config name: nope"),
        (
            TOPIC,
            [("retention.ms", APPEND, "1")],
            "Can't APPEND to key retention.ms because its type is not LIST.",
        ),
        (
            GROUP,
            [("share.session.timeout.ms", SUBTRACT, "1")],
            "Can't SUBTRACT to key share.session.timeout.ms because its type is not "
            "LIST.",
        ),
    ],
)
def test_unsuitable_operations_are_rejected(topic_of_either, kind, changes, message):
    broker, topic = topic_of_either

    assert ("invalid_config", message) == alter(broker, kind, topic, *changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            [("retention.ms", SET, None), ("retention.bytes", SET, None)],
            "Null value not supported for : retention.ms, retention.bytes",
        ),
        (
            [("retention.ms", SET, "1"), ("retention.ms", SET, "2")],
            "Error due to duplicate config keys",
        ),
    ],
)
def test_malformed_changes_are_rejected(topic_of_either, changes, message):
    broker, topic = topic_of_either

    assert ("invalid_request", message) == alter(broker, TOPIC, topic, *changes)


def test_unknown_operation_is_a_server_error(topic_of_either):
    broker, topic = topic_of_either

    assert ("unknown_server_error", None) == alter(
        broker, TOPIC, topic, ("retention.ms", 9, "1")
    )


@pytest.mark.parametrize(
    ("kind", "name", "code", "message"),
    [
        (TOPIC, "zz", "unknown_topic_or_partition", "The topic 'zz' does not exist."),
        (
            TOPIC,
            "a b",
            "invalid_topic_exception",
            "Topic name is invalid: 'a b' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'",
        ),
        (TOPIC, "", "invalid_request", "Default topic resources are not allowed."),
        (GROUP, "", "invalid_request", "Default group resources are not allowed."),
        (
            BROKER,
            "7",
            "invalid_request",
            "Unexpected broker id, expected 1, but received 7",
        ),
        (
            BROKER,
            "x",
            "invalid_request",
            "Node id must be an integer, but it is: x",
        ),
        (99, "x", "invalid_request", "Unknown resource type 99"),
    ],
)
def test_unknown_resource_cannot_be_altered(either, kind, name, code, message):
    setting = "retention.ms" if kind == TOPIC else "log.retention.ms"

    assert (code, message) == alter(either, kind, name, (setting, SET, "5"))
