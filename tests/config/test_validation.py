"""Validation of a client's arguments, before anything is started."""

from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import pytest

from sharecons import (
    Error,
    Security,
    ShareConsumer,
    ShareGroupAdmin,
    TopicPartition,
    load_security,
)
from sharecons.config.validation import (
    check_offset_reset,
    member_id_of,
    parse_bootstrap,
)
from sharecons.errors import ConfigurationError
from sharecons.protocol.partitions import Endpoint
from sharecons.testing import EmbeddedBroker

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
    ("values", "view"),
    ("values", memoryview),
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
    ("enable_metrics_push", "false"),
    ("enable_metrics_push", 0),
    ("member_id", ""),
    ("member_id", 7),
    ("on_acknowledged", "print"),
    ("key_deserializer", "utf-8"),
    ("value_deserializer", b""),
    ("bootstrap_servers", "a\ud800:9092"),
    ("bootstrap_servers", "a..b:9092"),
    ("bootstrap_servers", "a\0b:9092"),
    ("bootstrap_servers", "a" * 64 + ":9092"),
    ("client_id", None),
    ("client_id", b"reader"),
    ("client_rack", ""),
    ("client_rack", 3),
    ("auto_offset_reset", 5),
    ("auto_offset_reset", b"earliest"),
    ("acquire_mode", []),
    ("security", {}),
    ("security", "SASL_SSL"),
    ("security", {"security.protocol": "SSL"}),
    ("network", "tcp"),
    ("network", {}),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_error_names_the_argument_and_the_value(name: str, value: Any) -> None:
    arguments = {"group_id": "billing", name: value}
    with pytest.raises(ConfigurationError) as refused:
        ShareConsumer("orders", **arguments)

    assert str(refused.value).startswith(name)
    assert described(name, value) in str(refused.value)


def described(name: str, value: Any) -> str:
    """Return how the message shows a wrong value."""
    if name == "security":
        return f", not a {type(value).__name__}"  # the value can be a secret
    if name != "bootstrap_servers":
        return f", not {value!r}"
    if value in ("", ", ,", []):
        return " is empty"
    if isinstance(value, str):
        return f": {value.split(',')[-1]!r} "  # the wrong one of several
    return f", not {value!r}"


@pytest.mark.parametrize("topics", [("",), (" ",), (None,), (b"orders",), (1,)])
def test_invalid_topics_are_rejected(topics: Any) -> None:
    with pytest.raises(
        ConfigurationError, match="topics must be non-empty topic names"
    ):
        ShareConsumer(*topics, group_id="billing")


def test_duplicate_topics_are_rejected() -> None:
    with pytest.raises(ConfigurationError, match="contain duplicates: a, b$"):
        ShareConsumer("b", "a", "c", "a", "b", group_id="billing")


def test_error_is_a_configuration_error_and_a_value_error() -> None:
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
def test_offset_reset_that_kafka_allows_is_returned(reset: str | None) -> None:
    assert check_offset_reset(reset) == reset


def test_member_id_of_a_name_is_stable() -> None:
    assert member_id_of("pod-7") == member_id_of("pod-7")
    assert member_id_of("pod-7") != member_id_of("pod-8")


def test_member_id_without_a_name_is_new() -> None:
    assert member_id_of(None) != member_id_of(None)


def test_member_id_that_is_a_kafka_uuid_is_unchanged() -> None:
    made = member_id_of("pod-7")
    assert len(made) == 22
    assert member_id_of(made) == made
    assert member_id_of(made + "=") != made
    assert member_id_of("-" * 21 + "ä") != "-" * 21 + "ä"


def test_member_id_is_known_before_the_consumer_is_entered() -> None:
    consumer = ShareConsumer("orders", group_id="billing", member_id="pod-7")
    assert consumer.member_id == member_id_of("pod-7")
    assert repr(consumer) == "<ShareConsumer new, group 'billing', topics: orders>"


LONE_SURROGATE = "billing\udcff"
TOO_LONG = "é" * 16_384  # 32,768 bytes: one more than the maximum of a Kafka string
STRINGS = ("group_id", "client_id", "member_id", "client_rack")


@pytest.mark.parametrize("name", STRINGS)
def test_lone_surrogate_in_a_string_is_rejected_with_its_index(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{name} .*surrogate at index 7"):
        ShareConsumer("orders", **{"group_id": "billing", name: LONE_SURROGATE})


@pytest.mark.parametrize("name", STRINGS)
def test_string_longer_than_32767_bytes_is_rejected(name: str) -> None:
    refused = f"^{name} must be at most 32,767 bytes in UTF-8, not 32,768"
    with pytest.raises(ConfigurationError, match=refused):
        ShareConsumer("orders", **{"group_id": "billing", name: TOO_LONG})
    ShareConsumer("orders", **{"group_id": "billing", name: TOO_LONG[:-1]})


async def coroutine_function(_: object) -> None: ...


async def async_generator(_: object) -> AsyncIterator[int]:
    yield 1


def generator(_: object) -> Iterator[int]:
    yield 1


class AsyncCallable:
    async def __call__(self, _: object) -> None: ...

    async def method(self, _: object) -> None: ...


class AsyncGeneratorCallable:
    async def __call__(self, _: object) -> AsyncIterator[int]:
        yield 1


ASYNC = [
    coroutine_function,
    partial(coroutine_function),
    partial(partial(coroutine_function)),
    AsyncCallable(),
    partial(AsyncCallable()),
    AsyncCallable().method,
    partial(AsyncCallable().method),
    async_generator,
    partial(async_generator),
    AsyncGeneratorCallable(),
]


@pytest.mark.parametrize("function", ASYNC)
@pytest.mark.parametrize(
    "name", ["on_acknowledged", "key_deserializer", "value_deserializer"]
)
def test_async_callable_is_rejected(name: str, function: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"^{name} must be a plain function"):
        ShareConsumer("orders", group_id="billing", **{name: function})


@pytest.mark.parametrize("function", [generator, partial(generator)])
def test_generator_function_as_callback_is_rejected(function: Any) -> None:
    with pytest.raises(ConfigurationError, match="^on_acknowledged .*runs nothing"):
        ShareConsumer("orders", group_id="billing", on_acknowledged=function)
    ShareConsumer("orders", group_id="billing", value_deserializer=function)


@pytest.mark.parametrize(
    "function", [print, str, partial(print), [].append, AsyncCallable]
)
def test_plain_callable_is_accepted(function: Any) -> None:
    ShareConsumer("orders", group_id="billing", on_acknowledged=function)


ILLEGAL_TOPICS = [
    (".", "cannot be"),
    ("..", "cannot be"),
    ("a" * 250, "250 characters, Kafka allows 249"),
    ("a b", "can contain only ASCII"),
    ("a/b", "can contain only ASCII"),
    ("^orders", "can contain only ASCII"),
    ("orders\n", "can contain only ASCII"),
    ("bestätigt", "can contain only ASCII"),
    (LONE_SURROGATE, "surrogate at index 7"),
    (TOO_LONG, "at most 32,767 bytes"),
]


@pytest.mark.parametrize(("topic", "rule"), ILLEGAL_TOPICS)
def test_topic_name_that_kafka_does_not_allow_is_rejected(
    topic: str, rule: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"^topics.*{rule}"):
        ShareConsumer("orders", topic, group_id="billing")


@pytest.mark.anyio
async def test_subscribe_accepts_names_and_lists_of_names(
    share_broker: EmbeddedBroker,
) -> None:
    servers = share_broker.bootstrap_servers
    async with ShareConsumer(
        ["orders", "refunds"], group_id="billing", bootstrap_servers=servers
    ) as consumer:
        assert consumer.subscription == ("orders", "refunds")
        consumer.subscribe(["orders"], "returns")
        assert consumer.subscription == ("orders", "returns")
        with pytest.raises(ConfigurationError, match="contain duplicates: orders"):
            consumer.subscribe(("orders", "refunds"), "orders")
        with pytest.raises(ConfigurationError, match="b'orders'"):
            consumer.subscribe([b"orders"])  # type: ignore[list-item]
        with pytest.raises(ConfigurationError, match="can contain only ASCII"):
            consumer.subscribe("orders", "a b")
        assert consumer.subscription == ("orders", "returns")
        consumer.subscribe([])
        assert consumer.subscription == ()


@pytest.mark.parametrize("topic", ["a" * 249, "...", "-", "A.b_c-9"])
def test_topic_name_that_kafka_allows_is_accepted(topic: str) -> None:
    assert ShareConsumer(topic, group_id="billing").subscription == (topic,)


@pytest.mark.parametrize(("topic", "rule"), ILLEGAL_TOPICS)
@pytest.mark.anyio
async def test_admin_rejects_illegal_topic_names(topic: str, rule: str) -> None:
    admin = ShareGroupAdmin(bootstrap_servers="localhost:1")
    partition = TopicPartition(topic, 0)
    for call in (
        lambda: admin.describe_topics(topic),
        lambda: admin.delete_share_group_offsets("billing", [topic]),
        lambda: admin.alter_share_group_offsets("billing", {partition: 0}),
        lambda: admin.list_offsets([partition]),
        lambda: admin.read_state("billing", [partition]),
    ):
        with pytest.raises(ConfigurationError, match=rule):
            await call()


@pytest.mark.parametrize("text", [LONE_SURROGATE, TOO_LONG])
@pytest.mark.anyio
async def test_admin_rejects_invalid_strings(text: str) -> None:
    with pytest.raises(ConfigurationError, match="^client_id"):
        ShareGroupAdmin(bootstrap_servers="localhost:1", client_id=text)
    admin = ShareGroupAdmin(bootstrap_servers="localhost:1")
    for call in (
        lambda: admin.describe_share_groups(text),
        lambda: admin.delete_share_groups(text),
        lambda: admin.list_groups(states=[text]),
        lambda: admin.list_consumer_group_offsets(text),
        lambda: admin.describe_broker_configs(text),
        lambda: admin.alter_group_configs(text, {}),
        lambda: admin.alter_group_configs("billing", {text: "1"}),
        lambda: admin.alter_group_configs("billing", {"share.auto.offset.reset": text}),
    ):
        with pytest.raises(ConfigurationError, match=r"surrogate|at most"):
            await call()


@pytest.mark.parametrize("part", ["username", "password"])
def test_lone_surrogate_in_credentials_is_rejected_and_not_shown(part: str) -> None:
    login = {"username": "alice", "password": "secret", part: LONE_SURROGATE}
    with pytest.raises(ConfigurationError, match=f"^{part} .*index 7") as refused:
        Security.sasl("PLAIN", **login)
    assert "billing" not in str(refused.value)


def test_invalid_unicode_in_credential_properties_is_rejected() -> None:
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": LONE_SURROGATE,
    }
    with pytest.raises(ConfigurationError, match=r"^sasl\.password: .*surrogate"):
        load_security(properties)
