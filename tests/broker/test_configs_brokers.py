"""Broker settings, and ACLs for settings; these would stay set on a real Kafka."""

import pytest

from sharecons.testing.broker.acls import Resource
from tests.broker.configs import (
    BROKER,
    GROUP,
    SET,
    TOPIC,
    alter,
    describe,
    invalid,
    put,
    shown,
)
from tests.broker.either import Embedded


def test_broker_settings_apply_to_one_node_or_all():
    embedded = Embedded(brokers=2)
    put(embedded, BROKER, "", log_retention_ms="200000")
    put(embedded, BROKER, "1", log_retention_ms="100000")
    topic = embedded.create_topic()
    for_all = ("log.retention.ms", "200000", 3)

    assert ("100000", [("log.retention.ms", "100000", 2), for_all]) == shown(
        embedded, BROKER, "1", "log.retention.ms"
    )["log.retention.ms"]
    assert {"log.retention.ms": ("200000", [for_all])} == shown(embedded, BROKER, "")
    assert "100000" == shown(embedded, TOPIC, topic, "retention.ms")["retention.ms"][0]
    assert "200000" == embedded.cluster.configs.topic_value({}, "retention.ms")


@pytest.mark.parametrize("name", ["node.id", "auto.create.topics.enable"])
def test_static_settings_cannot_be_altered(name):
    assert alter(Embedded(), BROKER, "1", (name, SET, "7")) == (
        "invalid_request",
        f"Cannot update these configs dynamically: [{name}]",
    )


def test_broker_rejects_values_invalid_for_topics():
    error = alter(Embedded(), BROKER, "", ("log.message.timestamp.type", SET, "foo"))
    reason = "String must be one of: CreateTime, LogAppendTime"

    assert error == (
        "invalid_request",
        invalid("foo", "log.message.timestamp.type", reason),
    )


def test_broker_default_for_groups_is_bounded():
    name = "group.share.assignment.interval.ms"
    embedded = Embedded()
    assert alter(embedded, BROKER, "", (name, SET, "50000")) == (
        "invalid_request",
        f"{name} must be less than or equal to group.share.max.assignment.interval.ms",
    )

    put(embedded, BROKER, "", group_share_assignment_interval_ms="0")
    assert "0" == embedded.cluster.configs.group_value(
        "g", "share.assignment.interval.ms"
    )


def test_unknown_setting_is_sensitive():
    embedded = Embedded()
    assert not alter(embedded, BROKER, "1", ("nope", SET, "hush"))
    (entry,) = describe(embedded, BROKER, "1", "nope").configs

    assert entry.is_sensitive
    assert entry.value is None
    assert [None] == [synonym.value for synonym in entry.synonyms]


def test_static_settings_have_lowest_precedence():
    embedded = Embedded(settings={"log.retention.hours": "1", "num.partitions": "5"})

    assert "3600000" == embedded.cluster.configs.topic_value({}, "retention.ms")
    assert "7" == embedded.cluster.configs.topic_value(
        {"retention.ms": "7"}, "retention.ms"
    )
    assert "5" == embedded.cluster.configs.broker_value("num.partitions")
    assert [("num.partitions", "5", 4), ("num.partitions", "1", 5)] == shown(
        embedded, BROKER, "1", "num.partitions"
    )["num.partitions"][1]


def test_invalid_static_setting_raises():
    with pytest.raises(ValueError, match="Not a number of type INT"):
        Embedded(settings={"num.partitions": "many"})


def test_unknown_names_are_stored():
    embedded = Embedded(settings={"some.plugin.setting": "1"})

    assert (
        describe(embedded, BROKER, "1", "some.plugin.setting").configs[0].is_sensitive
    )


def test_smaller_time_unit_has_precedence():
    settings = {"log.retention.hours": "1", "log.retention.minutes": "2"}
    assert "120000" == Embedded(settings=settings).cluster.configs.topic_value(
        {}, "retention.ms"
    )

    settings["log.retention.ms"] = "3"
    assert "3" == Embedded(settings=settings).cluster.configs.topic_value(
        {}, "retention.ms"
    )


def test_broker_settings_include_its_address():
    embedded = Embedded(brokers=2)
    own = shown(embedded, BROKER, "1", "node.id", "advertised.listeners")

    assert "1" == own["node.id"][0]
    assert "PLAINTEXT://localhost:9092" == own["advertised.listeners"][0]


def test_duplicate_resource_is_rejected():
    embedded = Embedded()
    topic = embedded.create_topic()
    twice = {
        "resource_type": TOPIC,
        "resource_name": topic,
        "configs": [{"name": "retention.ms", "config_operation": SET, "value": "5"}],
    }
    responses = embedded.request(
        "incremental_alter_configs", 1, resources=[twice, twice]
    ).responses

    assert {"invalid_request"} == {response.error_code.name for response in responses}
    assert {} == embedded.cluster.topics.by_name(topic).config


@pytest.mark.parametrize(
    ("kind", "resource", "name"),
    [
        (TOPIC, Resource.TOPIC, "t"),
        (BROKER, Resource.CLUSTER, "kafka-cluster"),
        (GROUP, Resource.GROUP, "g"),
    ],
)
def test_denied_resources_are_not_described_or_altered(kind, resource, name):
    embedded = Embedded()
    embedded.deny(resource, name)
    target = "1" if kind == BROKER else name
    code = f"{resource.name.lower()}_authorization_failed"

    assert code == describe(embedded, kind, target).error_code.name
    assert code == alter(embedded, kind, target, ("retention.ms", SET, "5"))[0]


def test_documentation_is_returned_on_request():
    embedded = Embedded()
    topic = embedded.create_topic()
    (with_doc,) = describe(
        embedded, TOPIC, topic, "retention.ms", include_documentation=True
    ).configs
    (without,) = describe(embedded, TOPIC, topic, "retention.ms").configs

    assert "kept" in with_doc.documentation
    assert without.documentation is None
