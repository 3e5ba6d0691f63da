"""Records to lines; tests/cli/test_console_same_as_java.py has more."""

import json

import pytest

from sharecons import TimestampType
from sharecons.cli.consume.deserializers import DeserializeError, find_deserializer
from sharecons.cli.consume.formatter import RecordFormat, format_json
from sharecons.errors import ConfigurationError
from sharecons.testing import make_record
from tests.cli.unsafe_characters import unsafe_characters

ATTACK = "\x1b]0;pwned\x07\x1b[2J\u202e\u200b\r\n".encode() + b"\xff\x9b"


def record(value=b"v", key=b"k", headers=(("h", b"1"),)):
    return make_record(
        value,
        key=key,
        headers=headers,
        topic="t",
        partition=1,
        offset=7,
        timestamp=1234,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        delivery_count=2,
    )


def test_bytes_are_written_unchanged_to_a_pipe():
    properties = {"print.key": "true", "print.headers": "true"}
    line = RecordFormat(properties).format(record(ATTACK, ATTACK, (("h", ATTACK),)))

    assert b"h:" + ATTACK + b"\t" + ATTACK + b"\t" + ATTACK + b"\n" == line


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp1252"])
def test_bytes_are_escaped_on_a_terminal(encoding):
    properties = {"print.key": "true", "print.headers": "true", "key.separator": "|"}
    name = ATTACK.decode("utf-8", "surrogateescape")
    hostile = record(ATTACK, ATTACK, ((name, ATTACK),))

    line = RecordFormat(properties, encoding).format(hostile).decode(encoding)

    assert set() == unsafe_characters(line)
    assert 1 == line.count("\n")
    assert 4 == line.count(r"\x1b]0;pwned\x07")


def test_log_append_time_is_named():
    properties = {"print.timestamp": "true", "print.value": "false"}

    assert b"LogAppendTime:1234\n" == RecordFormat(properties).format(record())


def test_json_line_is_ascii_and_complete():
    line = format_json(record(ATTACK))

    assert line.isascii()
    assert set() == unsafe_characters(line.decode())
    assert {
        "topic": "t",
        "partition": 1,
        "offset": 7,
        "timestamp": 1234,
        "timestamp_type": "log_append_time",
        "key": "k",
        "value": {"hex": ATTACK.hex()},
        "headers": [{"name": "h", "value": "1"}],
        "delivery_count": 2,
    } == json.loads(line)


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("string", b"a\xff", "a\ufffd"),
        ("uuid", b"00000000-0000-0000-0000-00000000000A", None),
        ("float", bytes.fromhex("00000001"), "1.4E-45"),
        ("float", bytes.fromhex("7f7fffff"), "3.4028235E38"),
        ("float", bytes.fromhex("7f800000"), "Infinity"),
        ("float", bytes.fromhex("7fc00000"), "NaN"),
        ("double", bytes.fromhex("0000000000000001"), "4.9E-324"),
        ("double", bytes.fromhex("40fe240c9fbe76c9"), "123456.789"),
    ],
)
def test_deserializers_write_text(name, data, text):
    expected = data.decode().lower() if text is None else text

    assert expected == find_deserializer(name)(data)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("long", b"1234567", "long needs 8 bytes, not 7"),
        ("integer", b"", "integer needs 4 bytes, not 0"),
        ("boolean", b"\2", "boolean needs one byte"),
        ("uuid", b"\xff", "uuid needs the text"),
        ("uuid", b"1234", "uuid needs the text"),
    ],
)
def test_data_of_another_type_is_an_error(name, data, message):
    with pytest.raises(DeserializeError, match=message):
        find_deserializer(name)(data)


def test_null_is_not_deserialized():
    given = {"value.deserializer": "long", "null.literal": "-"}

    assert b"-\n" == RecordFormat(given).format(record(None))


def test_part_that_cannot_be_deserialized_is_named():
    for name, part in (("key", "key"), ("value", "value"), ("headers", "header")):
        given = {
            f"{name}.deserializer": "long",
            "print.key": "true",
            "print.headers": "true",
        }
        with pytest.raises(DeserializeError, match=f"{part}: long needs 8 bytes"):
            RecordFormat(given).format(record())


def test_unknown_deserializer_is_named():
    with pytest.raises(ConfigurationError, match="'AvroDeserializer'; known are str"):
        RecordFormat({"value.deserializer": "AvroDeserializer"})
