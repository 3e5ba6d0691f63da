"""Validation of a producer's arguments, before anything is sent."""

from typing import Any

import pytest

from sharecons import Producer, ProducerRecord
from sharecons.errors import ConfigurationError
from sharecons.producer.records import check_record

WRONG = [
    ("bootstrap_servers", ""),
    ("bootstrap_servers", None),
    ("client_id", None),
    ("client_id", b"writer"),
    ("compression", "brotli"),
    ("compression", None),
    ("compression", 4),
    ("delivery_timeout", 0),
    ("delivery_timeout", float("inf")),
    ("delivery_timeout", None),
    ("connect_timeout", 0),
    ("connect_timeout", "10"),
    ("request_timeout", 0),
    ("request_timeout", 1e6),
    ("request_timeout", True),
    ("max_buffered_bytes", 0),
    ("max_buffered_bytes", 1.5),
    ("max_buffered_bytes", (1 << 30) + 1),
    ("security", {}),
    ("network", "tcp"),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_wrong_argument_is_named(name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError) as rejected:
        Producer(**{name: value})

    assert str(rejected.value).startswith(name)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("topic", "", "topic: topic name '' can"),
        ("topic", "a b", "topic: topic name 'a b' can"),
        ("topic", None, "topic must be a str, not None"),
        ("value", "tea", r"value must be bytes or None, not str; encode it: .encode\("),
        ("value", memoryview(b"tea"), r"not memoryview; copy it: bytes\("),
        ("value", {"a": 1}, "value must be bytes or None, not dict"),
        ("key", 7, "key must be bytes or None, not int"),
        ("headers", "trace", "headers must be pairs of a name and bytes, not str"),
        ("headers", None, "headers must be pairs of a name and bytes, not NoneType"),
        ("headers", [("trace",)], r"headers must be pairs .* not \('trace',\)"),
        ("headers", {"trace": b"1"}, "headers must be pairs .* not 'trace'"),
        ("headers", [(b"trace", b"1")], "the name of a header must be a str, not b'"),
        ("headers", [("a\ud800", b"1")], "the name of a header must be valid Unicode"),
        ("headers", [("trace", "1")], "header 'trace' must be bytes or None, not str"),
        ("partition", -1, "partition must be between 0"),
        ("partition", 1.0, "partition must be a whole number"),
        ("timestamp", -1, "timestamp must be between 0"),
        ("timestamp", 1.5, "timestamp must be a whole number"),
    ],
)
def test_wrong_field_of_a_record_is_named(name: str, value: Any, text: str) -> None:
    fields: dict[str, Any] = {"topic": "orders", "value": b"", name: value}

    with pytest.raises(ConfigurationError, match=text):
        check_record(ProducerRecord(**fields), 0)


def test_headers_of_a_consumed_record_are_accepted() -> None:
    headers = (("not utf-8 \udcff", b"1"), ("empty", None))

    record = check_record(ProducerRecord("orders", b"", headers=headers), 0)

    assert headers == record.headers
