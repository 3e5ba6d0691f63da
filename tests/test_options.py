"""A consumer's arguments: what makes no sense is refused before anything starts."""

from typing import Any

import pytest

from sharecons import Error, ShareConsumer
from sharecons.errors import ConfigurationError
from sharecons.options import member_id_of, parse_bootstrap
from sharecons.protocol.values import Endpoint

WRONG = [
    ("group_id", ""),
    ("group_id", "  "),
    ("group_id", None),
    ("bootstrap_servers", ""),
    ("bootstrap_servers", []),
    ("bootstrap_servers", ", ,"),
    ("bootstrap_servers", None),
    ("bootstrap_servers", 9092),
    ("bootstrap_servers", [9092]),
    ("bootstrap_servers", b"localhost:9092"),
    ("bootstrap_servers", "localhost"),
    ("bootstrap_servers", "localhost:"),
    ("bootstrap_servers", "localhost:kafka"),
    ("bootstrap_servers", "localhost:0"),
    ("bootstrap_servers", "localhost:65536"),
    ("bootstrap_servers", ":9092"),
    ("bootstrap_servers", "::1:9092"),
    ("bootstrap_servers", "a:1,b"),
    ("acknowledgement", "Implicit"),
    ("acknowledgement", None),
    ("acquire_mode", "records"),
    ("auto_offset_reset", "earlier"),
    ("auto_offset_reset", "by_duration:"),
    ("auto_offset_reset", "by_duration:1h"),
    ("auto_offset_reset", "earliest "),
    ("max_records", 0),
    ("max_records", -1),
    ("max_records", 1 << 31),
    ("max_records", 1.5),
    ("max_records", True),
    ("max_records", "500"),
    ("min_bytes", -1),
    ("max_bytes", 0),
    ("max_bytes", 1 << 31),
    ("max_wait", -0.1),
    ("max_wait", float("nan")),
    ("max_wait", float("inf")),
    ("max_wait", None),
    ("connect_timeout", 0),
    ("request_timeout", 0),
    ("request_timeout", 1e6),
    ("member_id", ""),
    ("member_id", 7),
    ("on_acknowledged", "print"),
    ("key_deserializer", "utf-8"),
    ("value_deserializer", b""),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_refusal_names_the_argument_and_what_was_given(name: str, value: Any) -> None:
    arguments = {"group_id": "billing", name: value}
    with pytest.raises(ConfigurationError) as refused:
        ShareConsumer("orders", **arguments)

    text = str(refused.value)
    assert text.startswith(name)
    # Of several addresses the wrong one is shown.
    shown = value.split(",")[-1] if isinstance(value, str) else value
    assert repr(shown) in text or repr(value) in text or "is empty" in text


@pytest.mark.parametrize("topics", [("",), (" ",), (None,), (b"orders",), (1,)])
def test_topics_are_names(topics: Any) -> None:
    with pytest.raises(ConfigurationError, match="topics must be names"):
        ShareConsumer(*topics, group_id="billing")


def test_topics_are_given_once() -> None:
    with pytest.raises(ConfigurationError, match="given twice: a, b$"):
        ShareConsumer("b", "a", "c", "a", "b", group_id="billing")


def test_refusal_is_ours_and_a_value_error() -> None:
    with pytest.raises(ValueError, match="group_id") as refused:
        ShareConsumer("orders", group_id="")
    assert isinstance(refused.value, Error)


@pytest.mark.parametrize(
    ("servers", "endpoints"),
    [
        ("localhost:9092", [("localhost", 9092)]),
        (" a:1 , b:2,", [("a", 1), ("b", 2)]),
        (["a:1", "b:2,c:3"], [("a", 1), ("b", 2), ("c", 3)]),
        (("10.0.0.1:9092",), [("10.0.0.1", 9092)]),
        ("[::1]:9092", [("::1", 9092)]),
        ("[fe80::1%eth0]:9092", [("fe80::1%eth0", 9092)]),
        ("PLAINTEXT://kafka-1.example:9092", [("kafka-1.example", 9092)]),
    ],
)
def test_addresses(servers: Any, endpoints: list[tuple[str, int]]) -> None:
    assert parse_bootstrap(servers) == [Endpoint(*each) for each in endpoints]


@pytest.mark.parametrize(
    "reset",
    [None, "earliest", "latest", "by_duration:PT1H", "by_duration:P2DT3H4M"],
)
def test_offset_resets(reset: str | None) -> None:
    ShareConsumer("orders", group_id="billing", auto_offset_reset=reset)


def test_member_id_of_a_name_is_always_the_same() -> None:
    assert member_id_of("pod-7") == member_id_of("pod-7")
    assert member_id_of("pod-7") != member_id_of("pod-8")


def test_member_id_without_a_name_is_always_another() -> None:
    assert member_id_of(None) != member_id_of(None)


def test_member_id_that_is_a_kafka_uuid_is_taken_as_it_is() -> None:
    made = member_id_of("pod-7")
    assert len(made) == 22
    assert member_id_of(made) == made
    assert member_id_of(made + "=") != made
    assert member_id_of("-" * 21 + "ä") != "-" * 21 + "ä"


def test_member_id_shows_before_the_consumer_is_entered() -> None:
    consumer = ShareConsumer("orders", group_id="billing", member_id="pod-7")
    assert consumer.member_id == member_id_of("pod-7")
    assert repr(consumer) == "<ShareConsumer new, group 'billing', topics: orders>"
