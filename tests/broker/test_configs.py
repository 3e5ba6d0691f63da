"""Settings are described and altered as by a real Kafka."""

import uuid

import pytest

from tests.broker.configs import (
    APPEND,
    BROKER,
    DELETE,
    GROUP,
    SET,
    SUBTRACT,
    TOPIC,
    alter,
    describe,
    put,
    shown,
)
from tests.broker.either import Embedded, becoming, either_broker


@pytest.fixture
def group():
    return f"group-{uuid.uuid4().hex[:8]}"


def test_changes_of_a_resource_are_atomic(either):
    topic = either.create_topic()
    error = alter(
        either, TOPIC, topic, ("retention.ms", SET, "5"), ("segment.bytes", SET, "1")
    )

    assert error
    assert shown(either, TOPIC, topic, "retention.ms")["retention.ms"][0] == "604800000"


def test_validate_only_changes_nothing(either, group):
    topic = either.create_topic()
    changes = ("retention.ms", SET, "5"), ("share.delivery.count.limit", SET, "9")
    assert not alter(either, TOPIC, topic, changes[0], validate_only=True)
    assert not alter(either, GROUP, group, changes[1], validate_only=True)
    either.sleep(0.3)

    assert shown(either, TOPIC, topic, "retention.ms")["retention.ms"][0] == "604800000"
    limit = "share.delivery.count.limit"
    assert "5" == shown(either, GROUP, group, limit)[limit][0]


def test_append_and_subtract_edit_lists(either):
    topic = either.create_topic()

    def policy():
        return shown(either, TOPIC, topic, "cleanup.policy")["cleanup.policy"][0]

    for operation, value, expected in (
        (APPEND, "compact", "delete,compact"),
        (APPEND, "delete", "delete,compact"),
        (SUBTRACT, "delete", "compact"),
        (SUBTRACT, "nothing", "compact"),
        (DELETE, None, "delete"),
    ):
        assert not alter(either, TOPIC, topic, ("cleanup.policy", operation, value))
        assert expected == becoming(either, expected, policy)


def test_topic_setting_overrides_broker_setting(either):
    topic = either.create_topic(config={"cleanup.policy": "compact"})
    found = shown(either, TOPIC, topic, "cleanup.policy", "segment.ms", "nope")

    assert found == {
        "cleanup.policy": (
            "compact",
            [("cleanup.policy", "compact", 1), ("log.cleanup.policy", "delete", 5)],
        ),
        "segment.ms": ("604800000", []),
    }


def test_group_setting_overrides_broker_setting(either, group):
    put(either, GROUP, group, share_session_timeout_ms="50000")
    put(either, GROUP, group, share_isolation_level="read_committed")

    assert shown(
        either, GROUP, group, "share.session.timeout.ms", "share.isolation.level"
    ) == {
        "share.session.timeout.ms": (
            "50000",
            [
                ("share.session.timeout.ms", "50000", 8),
                ("group.share.session.timeout.ms", "45000", 5),
            ],
        ),
        "share.isolation.level": (
            "read_committed",
            [
                ("share.isolation.level", "read_committed", 8),
                ("share.isolation.level", "read_uncommitted", 5),
            ],
        ),
    }


def test_deleted_setting_falls_back_to_default(either, group):
    limit = "share.delivery.count.limit"
    put(either, GROUP, group, share_delivery_count_limit="9")
    assert "9" == shown(either, GROUP, group, limit)[limit][0]
    assert not alter(either, GROUP, group, (limit, DELETE, None))

    def value():
        return shown(either, GROUP, group, limit)[limit][0]

    assert "5" == becoming(either, "5", value)


@pytest.mark.parametrize(
    ("kind", "name", "code", "message"),
    [
        (TOPIC, "zz", "unknown_topic_or_partition", ""),
        (
            TOPIC,
            "",
            "invalid_topic_exception",
            "Topic name is invalid: the empty string is not allowed",
        ),
        (GROUP, "", "invalid_request", "Group name must not be empty"),
        (
            BROKER,
            "99",
            "invalid_request",
            "Unexpected broker id, expected 1 or empty string, but received 99",
        ),
        (
            BROKER,
            "x",
            "invalid_request",
            "Broker id must be an integer, but it is: x",
        ),
        (
            77,
            "x",
            "invalid_request",
            "This most likely occurs because of a request being malformed by the "
            "client library or the message was sent to an incompatible broker. See "
            "the broker logs for more details.",
        ),
    ],
)
def test_unknown_resource_cannot_be_described(either, kind, name, code, message):
    result = describe(either, kind, name)

    assert (code, message) == (result.error_code.name, result.error_message)
    assert not result.configs


@pytest.mark.kafka
@pytest.mark.parametrize("kind", [TOPIC, GROUP])
def test_topic_and_group_settings_equal_kafkas(kafka, kind):
    topic = kafka.admin.create_topic(config={"retention.ms": "5000"})

    def everything(broker):
        result = describe(broker, kind, topic, include_documentation=True)
        assert all(each.documentation for each in result.configs)
        return {
            each.name: (
                each.value,
                each.read_only,
                each.config_source,
                each.is_sensitive,
                each.config_type,
                [
                    (at.name, at.value, at.source)
                    for at in each.synonyms
                    if at.source in (1, 5, 8)
                ],
            )
            for each in result.configs
            if each.name != "min.insync.replicas"  # Kafka sets it on all brokers
        }

    embedded = Embedded()
    embedded.cluster.add_topic(topic, [[1]], {"retention.ms": "5000"})
    real = either_broker(Chosen(kafka))

    assert everything(real) == everything(embedded)


class Chosen:
    """A stand-in for pytest's request in a test without parameters."""

    param = "kafka"

    def __init__(self, kafka):
        self._kafka = kafka

    def getfixturevalue(self, name):
        return self._kafka


@pytest.mark.kafka
def test_broker_settings_equal_kafkas(kafka):
    def everything(broker):
        return {
            each.name: (
                each.config_type,
                each.read_only,
                [at.value for at in each.synonyms if at.source == 5],
            )
            for each in describe(broker, BROKER, "1").configs
        }

    real, embedded = everything(either_broker(Chosen(kafka))), everything(Embedded())

    assert embedded == {name: real[name] for name in embedded if name in real}
    assert {"broker.rack"} >= embedded.keys() - real.keys()


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_older_versions_return_fewer_fields(version):
    embedded = Embedded()
    topic = embedded.create_topic()
    (entry,) = describe(
        embedded, TOPIC, topic, "max.message.bytes", version=version
    ).configs

    assert ("1048588", 5) == (entry.value, entry.config_source)
    assert (version >= 3) == hasattr(entry, "config_type")
