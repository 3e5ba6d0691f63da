"""Broker settings, and ACLs for settings; these would stay set on a real Kafka."""

import pytest

from sharecons.testing.broker.acls import (
    Acl,
    Operation,
    Pattern,
    Permission,
    Resource,
)
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
from tests.broker.either import Ours


def test_broker_settings_apply_to_one_node_or_all():
    ours = Ours(brokers=2)
    put(ours, BROKER, "", log_retention_ms="200000")
    put(ours, BROKER, "1", log_retention_ms="100000")
    topic = ours.create_topic()
    for_all = ("log.retention.ms", "200000", 3)

    assert ("100000", [("log.retention.ms", "100000", 2), for_all]) == shown(
        ours, BROKER, "1", "log.retention.ms"
    )["log.retention.ms"]
    assert {"log.retention.ms": ("200000", [for_all])} == shown(ours, BROKER, "")
    assert "100000" == shown(ours, TOPIC, topic, "retention.ms")["retention.ms"][0]
    assert "200000" == ours.cluster.configs.topic_value({}, "retention.ms")


@pytest.mark.parametrize("name", ["node.id", "auto.create.topics.enable"])
def test_static_settings_cannot_be_altered(name):
    assert alter(Ours(), BROKER, "1", (name, SET, "7")) == (
        "invalid_request",
        f"Cannot update these configs dynamically: [{name}]",
    )


def test_broker_rejects_values_invalid_for_topics():
    refused = alter(Ours(), BROKER, "", ("log.message.timestamp.type", SET, "foo"))
    reason = "String must be one of: CreateTime, LogAppendTime"

    assert refused == (
        "invalid_request",
        invalid("foo", "log.message.timestamp.type", reason),
    )


def test_broker_default_for_groups_is_bounded():
    name = "group.share.assignment.interval.ms"
    ours = Ours()
    assert alter(ours, BROKER, "", (name, SET, "50000")) == (
        "invalid_request",
        f"{name} must be less than or equal to group.share.max.assignment.interval.ms",
    )

    put(ours, BROKER, "", group_share_assignment_interval_ms="0")
    assert "0" == ours.cluster.configs.group_value("g", "share.assignment.interval.ms")


def test_unknown_setting_is_sensitive():
    ours = Ours()
    assert not alter(ours, BROKER, "1", ("nope", SET, "hush"))
    (entry,) = describe(ours, BROKER, "1", "nope").configs

    assert entry.is_sensitive
    assert entry.value is None
    assert [None] == [synonym.value for synonym in entry.synonyms]


def test_static_settings_have_lowest_precedence():
    ours = Ours(settings={"log.retention.hours": "1", "num.partitions": "5"})

    assert "3600000" == ours.cluster.configs.topic_value({}, "retention.ms")
    assert "7" == ours.cluster.configs.topic_value(
        {"retention.ms": "7"}, "retention.ms"
    )
    assert "5" == ours.cluster.configs.broker_value("num.partitions")
    assert [("num.partitions", "5", 4), ("num.partitions", "1", 5)] == shown(
        ours, BROKER, "1", "num.partitions"
    )["num.partitions"][1]


def test_invalid_static_setting_raises():
    with pytest.raises(ValueError, match="Not a number of type INT"):
        Ours(settings={"num.partitions": "many"})


def test_unknown_names_are_stored():
    ours = Ours(settings={"some.plugin.setting": "1"})

    assert describe(ours, BROKER, "1", "some.plugin.setting").configs[0].is_sensitive


def test_smaller_time_unit_has_precedence():
    settings = {"log.retention.hours": "1", "log.retention.minutes": "2"}
    assert "120000" == Ours(settings=settings).cluster.configs.topic_value(
        {}, "retention.ms"
    )

    settings["log.retention.ms"] = "3"
    assert "3" == Ours(settings=settings).cluster.configs.topic_value(
        {}, "retention.ms"
    )


def test_broker_settings_include_its_address():
    ours = Ours(brokers=2)
    own = shown(ours, BROKER, "1", "node.id", "advertised.listeners")

    assert "1" == own["node.id"][0]
    assert "PLAINTEXT://localhost:9092" == own["advertised.listeners"][0]


def test_duplicate_resource_is_rejected():
    ours = Ours()
    topic = ours.create_topic()
    twice = {
        "resource_type": TOPIC,
        "resource_name": topic,
        "configs": [{"name": "retention.ms", "config_operation": SET, "value": "5"}],
    }
    answers = ours.ask(
        "incremental_alter_configs", 1, resources=[twice, twice]
    ).responses

    assert {"invalid_request"} == {answer.error_code.name for answer in answers}
    assert {} == ours.cluster.topics.by_name(topic).config


@pytest.mark.parametrize(
    ("kind", "resource", "name"),
    [
        (TOPIC, Resource.TOPIC, "t"),
        (BROKER, Resource.CLUSTER, "kafka-cluster"),
        (GROUP, Resource.GROUP, "g"),
    ],
)
def test_denied_resources_are_not_described_or_altered(kind, resource, name):
    ours = Ours()
    ours.cluster.authorizer.add(
        Acl(
            resource=resource,
            name=name,
            pattern=Pattern.LITERAL,
            principal="User:ANONYMOUS",
            host="*",
            operation=Operation.ALL,
            permission=Permission.DENY,
        )
    )
    asked = "1" if kind == BROKER else name
    code = f"{resource.name.lower()}_authorization_failed"

    assert code == describe(ours, kind, asked).error_code.name
    assert code == alter(ours, kind, asked, ("retention.ms", SET, "5"))[0]


def test_documentation_is_returned_on_request():
    ours = Ours()
    topic = ours.create_topic()
    (with_doc,) = describe(
        ours, TOPIC, topic, "retention.ms", include_documentation=True
    ).configs
    (without,) = describe(ours, TOPIC, topic, "retention.ms").configs

    assert "kept" in with_doc.documentation
    assert without.documentation is None
