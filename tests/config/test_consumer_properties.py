"""Consumers from a Kafka properties file."""

import logging
import re
from pathlib import Path
from typing import Any

import pytest

from sharecons import Security, ShareConsumer, load_properties
from sharecons.errors import ConfigurationError
from sharecons.properties.consumer_properties import (
    ARGUMENTS,
    REFUSED,
    WITHOUT_EFFECT,
)

GUIDE = Path(__file__).parent.parent.parent / "docs" / "consumer-running.md"

FILE = """\
# of a Java program
bootstrap.servers=broker-1:9092, broker-2:9092
group.id=billing
client.id=me
client.rack=r1
share.acknowledgement.mode=EXPLICIT
share.acquire.mode=record_limit
max.poll.records=100
enable.metrics.push=False
fetch.min.bytes=0
fetch.max.bytes=1000000
fetch.max.wait.ms=250
request.timeout.ms=7000
security.protocol=SASL_PLAINTEXT
sasl.mechanism=PLAIN
sasl.username=alice
sasl.password=secret
acks=all
"""
MINIMUM = {"bootstrap.servers": "b:9092", "group.id": "billing"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "client.properties"
    path.write_text(FILE)
    return path


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records]


def test_file_sets_all_arguments(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    arguments: dict[str, Any] = {**load_properties(file)}
    security = arguments.pop("security")

    assert arguments == {
        "bootstrap_servers": "broker-1:9092, broker-2:9092",
        "group_id": "billing",
        "client_id": "me",
        "client_rack": "r1",
        "enable_metrics_push": False,
        "acknowledgement": "explicit",
        "acquire_mode": "record_limit",
        "max_records": 100,
        "min_bytes": 0,
        "max_bytes": 1_000_000,
        "max_wait": 0.25,
        "request_timeout": 7.0,
    }
    assert security.credentials.username == "alice"
    assert warnings_of(caplog) == []
    consumer = ShareConsumer("orders", **load_properties(file))
    assert consumer.group_id == "billing"


def test_arguments_override_the_file(file: Path) -> None:
    security = Security()
    arguments: dict[str, Any] = {
        **load_properties(
            file,
            group_id="other",
            max_records=7,
            security=security,
            acknowledgement="implicit",
        )
    }

    assert (arguments["group_id"], arguments["max_records"]) == ("other", 7)
    assert arguments["security"] is security
    assert "acknowledgement" not in arguments, "the default, which a worker has too"


def test_mapping_is_used_as_a_file() -> None:
    assert load_properties(MINIMUM) == {
        "bootstrap_servers": "b:9092",
        "group_id": "billing",
        "security": Security(),
    }


@pytest.mark.parametrize("name", ["group.id", "bootstrap.servers"])
def test_missing_property_raises_unless_its_argument_is_given(name: str) -> None:
    rest = {key: value for key, value in MINIMUM.items() if key != name}
    argument, _ = ARGUMENTS[name]
    with pytest.raises(
        ConfigurationError, match=f"^{name}: missing; add it, or pass {argument}="
    ):
        load_properties(rest)

    given: Any = {argument: "b:9092"}
    assert load_properties(rest, **given).items() >= given.items()


def test_missing_property_is_found_under_a_misspelled_name() -> None:
    with pytest.raises(ConfigurationError, match=r"group\.id: .*; is grup.id missp"):
        load_properties({"bootstrap.servers": "b:9092", "grup.id": "billing"})


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_property_that_share_groups_do_not_have_raises(name: str, file: Path) -> None:
    file.write_text(f"{FILE}{name}=1\n")
    with pytest.raises(ConfigurationError) as caught:
        load_properties(file)

    line = FILE.count("\n") + 1
    assert str(caught.value) == f"{file}, line {line}: {name}: {REFUSED[name]}"


@pytest.mark.parametrize("name", sorted(WITHOUT_EFFECT))
def test_property_without_an_effect_is_logged(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        load_properties({**MINIMUM, name: "1"})

    (line,) = warnings_of(caplog)
    assert f"{name}: {WITHOUT_EFFECT[name]}" in line


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("fetch.max.byte", "fetch.max.bytes"),
        ("share.acknowledgment.mode", "share.acknowledgement.mode"),
        ("group.ids", "group.id"),
        ("grup.id", "group.id"),
        ("securty.protocol", "security.protocol"),
        ("request.timout.ms", "request.timeout.ms"),
        ("clint.id", "client.id"),
        ("max.poll.record", "max.poll.records"),
        ("bootstrap.server", "bootstrap.servers"),
        ("sasl.mechanizm", "sasl.mechanism"),
        ("security.protocols", "security.protocol"),
        ("ssl.truststore.locations", "ssl.truststore.location"),
    ],
)
def test_misspelled_property_is_logged_with_the_right_one(
    name: str, near: str, caplog: pytest.LogCaptureFixture
) -> None:
    load_properties({**MINIMUM, name: "1"})

    (line,) = warnings_of(caplog)
    assert name in line
    assert f"did you mean {near}?" in line


def test_missing_security_protocol_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    properties = {**MINIMUM, "sasl.username": "alice", "sasl.password": "secret"}
    load_properties(properties)
    load_properties(properties, security=Security())

    (line,) = warnings_of(caplog)
    assert "sasl.username: sasl.* properties have no effect without" in line
    assert "secret" not in line


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("max.poll.records", "0", "a whole number between 1 and 2,147,483,647"),
        ("max.poll.records", "many", "a whole number"),
        ("fetch.max.wait.ms", "-1", "milliseconds between 0 and 3,600,000"),
        ("request.timeout.ms", "0", "milliseconds between 1"),
        ("share.acknowledgement.mode", "auto", "implicit or explicit, not 'auto'"),
        ("share.acquire.mode", "all", "batch_optimized or record_limit"),
        ("security.protocol", "TLS", "must be one of"),
        pytest.param("client.id", "a" * 32768, "at most 32,767 bytes", id="too long"),
    ],
)
def test_invalid_value_raises_with_file_and_line(
    name: str, value: str, expected: str, file: Path
) -> None:
    file.write_text(f"group.id=g\nbootstrap.servers=b:9092\n{name}={value}\n")
    with pytest.raises(ConfigurationError) as caught:
        load_properties(file)

    assert str(caught.value).startswith(f"{file}, line 3: {name}: must be ")
    assert expected in str(caught.value)


def test_deserializer_of_java_is_logged_as_info_unless_it_returns_bytes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    prefix = "org.apache.kafka.common.serialization."
    with caplog.at_level(logging.INFO):
        load_properties(
            {
                **MINIMUM,
                "key.deserializer": f"{prefix}ByteArrayDeserializer",
                "value.deserializer": f"{prefix}StringDeserializer",
            }
        )

    (line,) = caplog.records
    assert line.levelno == logging.INFO
    assert "value.deserializer" in line.getMessage()


def test_invalid_address_raises_with_the_name_of_its_property() -> None:
    with pytest.raises(
        ConfigurationError, match=r"^bootstrap\.servers: 'b' is not host:port"
    ):
        load_properties({**MINIMUM, "bootstrap.servers": "b"})


def test_name_of_librdkafka_is_accepted() -> None:
    properties = {"metadata.broker.list": "b:9092", "group.id": "billing"}
    arguments = load_properties({**properties, "fetch.wait.max.ms": "100"})

    assert (arguments["bootstrap_servers"], arguments["max_wait"]) == ("b:9092", 0.1)


def test_guide_has_every_property_with_its_reason() -> None:
    section = GUIDE.read_text().partition("## A properties file")[2]
    tables: dict[str, str] = {}
    for names, text in re.findall(r"^\| (`.*`) \| (.*) \|$", section, re.MULTILINE):
        tables |= dict.fromkeys(re.findall(r"`([a-z.]+)`", names), text)

    assert tables == {**REFUSED, **WITHOUT_EFFECT}
