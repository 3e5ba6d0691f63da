"""Unknown settings passed by tests are rejected with suggestions."""

import re
import subprocess

import pytest

from sharecons.testing import EmbeddedBroker
from sharecons.testing.broker.errors import RequestError
from sharecons.testing.broker.settings.brokers import BROKERS
from sharecons.testing.broker.settings.validation import SettingError

RANGE = re.compile(
    r'<h4><a id="([^"]+)">(?:(?!</li>).)*Valid Values:</th>'
    r"<td>\[(-?\d+),\.\.\.(?:,(\d+))?\]</td>",
    re.DOTALL,
)
"""A setting's name, and its lowest and highest value, in Kafka's table as HTML."""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("group.share.record.lock.duration", "group.share.record.lock.duration.ms"),
        ("num.partition", "did you mean num.partitions"),
        ("max.message.bytes", r"topic setting, for create_topic\(…, config=…\)"),
        (
            "share.record.lock.duration.ms",
            "it is a group setting, for set_group_config",
        ),
        ("advertised.listeners", "the arguments host, port and advertise"),
        ("node.id", "the arguments host, port and advertise"),
        ("zzz", "the embedded broker has no broker setting 'zzz'$"),
    ],
)
def test_unknown_broker_setting_raises(name, message):
    with pytest.raises(SettingError, match=message) as raised:
        EmbeddedBroker(settings={name: "1"})

    assert isinstance(raised.value, ValueError)
    assert name in str(raised.value)


def test_invalid_broker_setting_raises():
    with pytest.raises(ValueError, match="num.partitions: Not a number of type INT"):
        EmbeddedBroker(settings={"num.partitions": "many"})


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("max.delivery.count.limit", 26, "no more than 25"),
        ("max.delivery.count.limit", 4, "at least 5"),
        ("delivery.count.limit", 11, "no more than 10"),
        ("min.delivery.count.limit", 6, "no more than 5"),
        ("max.record.lock.duration.ms", 3_600_001, "no more than 3600000"),
        ("min.record.lock.duration.ms", 999, "at least 1000"),
        ("max.partition.max.record.locks", 10_001, "no more than 10000"),
        ("max.size", 1001, "no more than 1000"),
        ("max.share.sessions", 0, "at least 1"),
    ],
)
def test_broker_setting_outside_of_its_range_raises(name, value, reason):
    message = (
        f"Invalid value {value} for configuration group.share.{name}: "
        f"Value must be {reason}"
    )
    with pytest.raises(ValueError, match=message):
        EmbeddedBroker(settings={f"group.share.{name}": value})


@pytest.mark.kafka
def test_ranges_of_group_settings_are_those_of_a_real_kafka(real_kafka):
    """Brokers do not change most of these settings: Kafka's own table has them."""
    if real_kafka.version not in ("4.3.0", "4.4.0"):
        pytest.skip("other versions have other ranges")
    command = real_kafka.cluster.java_command("kafka.server.KafkaConfig")
    table = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = {
        name: (int(lowest), int(highest) if highest else None)
        for name, lowest, highest in RANGE.findall(table)
        if name in BROKERS and name.startswith(("group.", "share."))
    }

    assert found["group.share.max.delivery.count.limit"] == (5, 25)
    assert found == {
        name: (BROKERS[name].min_value, BROKERS[name].max_value) for name in found
    }


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("max.message.byte", "did you mean max.message.bytes"),
        ("num.partitions", "it is a broker setting"),
        ("share.delivery.count.limit", "it is a group setting"),
        ("zzz", "the embedded broker has no topic setting 'zzz'$"),
    ],
)
def test_unknown_topic_setting_raises(name, message):
    with EmbeddedBroker() as kafka:
        with pytest.raises(SettingError, match=message):
            kafka.create_topic("orders", config={name: "1"})
        assert kafka.cluster.topics.by_name("orders") is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("share.record.lock.duration", "did you mean share.record.lock.duration.ms"),
        ("share.delivery.limit", "did you mean share.delivery.count.limit"),
        ("group.share.delivery.count.limit", "it is a broker setting"),
        ("zzz", "the embedded broker has no group setting 'zzz'$"),
    ],
)
def test_unknown_group_setting_raises(name, message):
    with EmbeddedBroker() as kafka:
        with pytest.raises(SettingError, match=message):
            kafka.set_group_config("g", {"share.delivery.count.limit": 3, name: "1"})
        assert {} == kafka.cluster.configs.group_config("g")


def test_invalid_group_setting_raises():
    with EmbeddedBroker() as kafka:
        with pytest.raises(SettingError, match=r"share.delivery.count.limit"):
            kafka.set_group_config("g", {"share.delivery.count.limit": 1})
        with pytest.raises(SettingError, match="group.share.max.delivery.count.limit"):
            kafka.set_group_config("g", {"share.delivery.count.limit": 11})


def test_invalid_topic_setting_raises():
    with EmbeddedBroker() as kafka:
        with pytest.raises(RequestError, match="max.message.bytes: Not a number"):
            kafka.create_topic("orders", config={"max.message.bytes": "much"})


def test_setting_values_can_be_numbers_and_booleans():
    settings = {"num.partitions": 5, "auto.create.topics.enable": False}
    with EmbeddedBroker(settings=settings) as kafka:
        kafka.create_topic("orders", config={"preallocate": True, "retention.ms": 5})
        kafka.set_group_config("g", {"share.renew.acknowledge.enable": False})

        assert "5" == kafka.cluster.configs.broker_value("num.partitions")
        assert "false" == kafka.cluster.configs.broker_value(
            "auto.create.topics.enable"
        )
        assert {"preallocate": "true", "retention.ms": "5"} == (
            kafka.cluster.topics.by_name("orders").config
        )
        assert not kafka.cluster.share_partitions.group_settings("g").may_renew
