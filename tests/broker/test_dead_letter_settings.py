"""Settings of dead letters: of groups, topics and brokers (KIP-1191).

The expected values were measured on Kafka 4.4.0.
"""

import pytest
from kio.schema.errors import ErrorCode

from sharecons.testing.broker.configs import Configs
from sharecons.testing.broker.errors import ConfigError
from sharecons.testing.broker.settings.changes import Change

LETTERS = "dlq.orders"
NAME = "errors.deadletterqueue.topic.name"
COPY = "errors.deadletterqueue.copy.record.enable"
ENABLE = "errors.deadletterqueue.group.enable"
PREFIX = "errors.deadletterqueue.topic.name.prefix"


def test_kafka_4_4_settings_are_shown_where_set():
    configs = Configs()
    shown = {each.name for each in configs.describe_group("g", 1)}
    assert not {NAME, COPY} & shown
    assert ENABLE not in {each.name for each in configs.describe_topic({}, 1)}
    assert PREFIX not in {each.name for each in configs.describe_broker(1, {})}

    configs.set_group("g", {NAME: LETTERS})
    configs.alter_broker("", [Change(PREFIX, 0, "")])
    (entry,) = (e for e in configs.describe_group("g", 1) if e.name == NAME)
    assert [LETTERS, ""] == [each.value for each in entry.synonyms]
    topic = configs.describe_topic({ENABLE: "true"}, 1)
    assert {"true"} == {each.value for each in topic if each.name == ENABLE}
    broker = configs.describe_broker(1, {})
    assert {""} == {each.value for each in broker if each.name == PREFIX}


@pytest.mark.parametrize("name", ["dlq.x", "no prefix", "x" * 300, "", "."])
def test_dead_letter_topic_name_is_accepted(name):
    configs = Configs()
    configs.set_group("g", {NAME: name})

    assert name == configs.group_value("g", NAME)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (NAME, "__dlq", f"{NAME}: DLQ topic name must not start with '__'"),
        (
            COPY,
            "maybe",
            f"Invalid value maybe for configuration {COPY}: "
            "Expected value to be either true or false",
        ),
    ],
)
def test_invalid_dead_letter_settings_are_rejected(name, value, message):
    with pytest.raises(ConfigError) as rejected:
        Configs().set_group("g", {name: value})

    assert (ErrorCode.invalid_config, message) == (
        rejected.value.code,
        rejected.value.message,
    )
