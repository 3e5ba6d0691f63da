"""Run Kafka's console tools and `sharecons produce` and `consume`, and compare them.

Producers get the same lines and options; their records must be equal. Consumers read
the same records with the same options, in groups of their own; their output must be
equal, byte by byte.
"""

import json
import struct
import subprocess
from typing import NamedTuple

import pytest

from tests.broker.clients import new_name
from tests.broker.java_tools import TIMEOUT, JavaTools
from tests.cli.run_cli import run_cli

pytestmark = [pytest.mark.kafka, pytest.mark.slow("Kafka's Java tools start a JVM")]

KEY = "--reader-property parse.key=true"
HEADERS = "--reader-property parse.headers=true"
LENIENT = "--reader-property ignore.error=true"
NULL = "--reader-property null.marker=NULL"

PRODUCED = {
    "values": ("", "one\n\ntwo\r\nthree\rlast \u00e9\U0001f600"),
    "nothing": ("", ""),
    "keys": (KEY, "k\tv\n\tempty key\nk\t\nk\ta\tb\n"),
    "separators": (
        f"{KEY} {HEADERS} --reader-property key.separator=:: "
        "--reader-property headers.delimiter=! "
        "--reader-property headers.separator=; "
        "--reader-property headers.key.separator==",
        "a=1;b=2!k::v\nc=!::v::w\n",
    ),
    "headers": (HEADERS, "a:1,b:2\tv\na:,a:x:y\tv\na:1,,\tv\n,\tv\n"),
    "headers and keys": (f"{HEADERS} {KEY}", "a:1\tk\tv\n"),
    "nulls": (
        f"{HEADERS} {KEY} {NULL}",
        "a:NULL,b:1\tNULL\tNULL\nNULL\tk\tv\na:1\tk\tNULLx\n",
    ),
    "missing parts": (
        f"{HEADERS} {KEY} {LENIENT}",
        "only\none\ttwo\na,b:1\tk\tv\nx:y\tz\n",
    ),
    "compressed": ("--compression-codec zstd", "one\ntwo\n"),
}

NOT_PRODUCED = {
    "no key": (KEY, "k\tv\nnone\nk\tlater\n"),
    "no headers": (HEADERS, "a:1\tv\nnone\na:1\tlater\n"),
    "no header key separator": (HEADERS, "a:1\tv\nb\tv\n"),
    "empty headers": (HEADERS, "a:1\tv\n\tv\n"),
    "null as header name": (f"{HEADERS} {NULL}", "a:1\tv\nNULL:1\tv\n"),
}

INVALID = {
    "equal separators": "--reader-property headers.separator=:",
    "null marker is a separator": "--reader-property null.marker=,",
    "unknown codec": "--compression-codec lzma",
}

CONSUMED = {
    "values": "",
    "all columns": "print.timestamp=true print.partition=true print.offset=true "
    "print.delivery=true print.epoch=true print.headers=true print.key=true",
    "first and last column": "print.offset=true print.epoch=true print.value=false",
    "separators": "print.key=true print.headers=true key.separator=| "
    "line.separator=; headers.separator=& null.literal=-",
    "no value": "print.key=true print.value=FALSE",
    "nothing": "print.value=false",
}

# Before Java 19, some other numbers have more digits than needed.
NUMBERS = (0.0, -0.0, 1.0, -1.5, 0.001, 0.00099, 123456.75, 1e7, 1e10, 1e-7, 1e300)
SPECIAL = (float("nan"), float("inf"), -float("inf"))


@pytest.fixture(scope="module")
def java(kafka):
    return JavaTools(kafka.bootstrap_servers)


def run_java(java, tool, *args, stdin=b""):
    ended = java.ended(tool, *args, stdin=stdin)
    return ended.returncode, ended.stdout, ended.stderr.decode()


def contents(kafka, topic):
    """Return the keys, values and headers of a topic."""
    where = ("--bootstrap-server", kafka.bootstrap_servers)
    result = run_cli("peek", topic, "--json", "--max", 1000, *where)
    assert 0 == result.code, result.err
    return [
        (each["key"], each["value"], each["headers"]) for each in json.loads(result.out)
    ]


class Produced(NamedTuple):
    """The end of a producer, and the records that it wrote."""

    code: int
    errors: str
    records: list


class Consumed(NamedTuple):
    """The end of a consumer, and what it printed."""

    code: int
    out: bytes
    errors: str


def produce_both(kafka, java, args, lines):
    """Produce lines with each tool; return their results.

    The first is the result of Kafka's tool.
    """
    topics = [kafka.admin.create_topic(1, new_name("produced")) for _ in range(2)]
    code, _, errors = run_java(
        java,
        "kafka-console-producer",
        *("--topic", topics[0], *args),
        stdin=lines.encode(),
    )
    java_result = Produced(code, errors, contents(kafka, topics[0]))
    result = run_cli(
        *("produce", "--topic", topics[1], *args),
        *("--bootstrap-server", kafka.bootstrap_servers),
        stdin=lines.encode(),
    )
    return java_result, Produced(result.code, result.err, contents(kafka, topics[1]))


@pytest.mark.parametrize(("args", "lines"), PRODUCED.values(), ids=PRODUCED.keys())
def test_produced_records_are_equal(kafka, java, args, lines):
    java_result, own = produce_both(kafka, java, args.split(), lines)

    assert (0, "") == (own.code, own.errors)
    assert 0 == java_result.code, java_result.errors
    assert java_result.records == own.records
    assert bool(lines) == bool(own.records)


@pytest.mark.parametrize(
    ("args", "lines"), NOT_PRODUCED.values(), ids=NOT_PRODUCED.keys()
)
def test_line_without_record_stops_both(kafka, java, args, lines):
    java_result, own = produce_both(kafka, java, args.split(), lines)

    assert (1, 1) == (java_result.code, own.code)
    assert "line 2: " in own.errors
    assert java_result.records == own.records
    assert 1 == len(own.records)


@pytest.mark.parametrize("args", INVALID.values(), ids=INVALID.keys())
def test_invalid_options_are_rejected_by_both(kafka, java, args):
    java_result, own = produce_both(kafka, java, args.split(), "a\n")

    assert (1, 2) == (java_result.code, own.code)
    assert ([], []) == (java_result.records, own.records)


def consume_both(kafka, java, topic, count, args, *, extra=()):
    """Consume a topic with each tool, in one group each; return their results.

    The first is the result of Kafka's tool.
    """
    groups = [new_name("consuming") for _ in range(2)]
    config = {
        "share.auto.offset.reset": "earliest",
        "share.heartbeat.interval.ms": 100,
        "share.assignment.interval.ms": 0,
    }
    for group in groups:
        kafka.admin.set_group_config(group, config)
    limits = ("--max-messages", str(count), "--timeout-ms", "20000")
    args = ("--topic", topic, *limits, *args)
    java_result = run_java(
        java, "kafka-console-share-consumer", "--group", groups[0], *args
    )
    # In a separate process, because its output is compared byte by byte.
    where = ("--bootstrap-server", kafka.bootstrap_servers)
    ended = subprocess.run(
        ["python", "-m", "sharecons", "consume", "--group", groups[1], *args, *where],
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
    )
    own = Consumed(ended.returncode, ended.stdout, ended.stderr.decode())
    return Consumed(*java_result), own


def properties(text):
    return [word for each in text.split() for word in ("--formatter-property", each)]


@pytest.fixture(scope="module")
def records(kafka):
    """Return a topic with records of all kinds, and their number."""
    topic = kafka.admin.create_topic(1, new_name("consumed"))
    headers = [("a", b"1"), ("a", b"\xff"), ("b", None), ("\u00e9", b"")]
    values = [
        b"plain",
        b"",
        None,
        b"\xff\x00\x1b[31m",
        b"two\nlines",
        "\u00e9".encode(),
    ]
    kafka.admin.produce(topic, values)
    kafka.admin.produce(topic, values, keys=values, headers=headers)
    return topic, 2 * len(values)


@pytest.mark.parametrize("given", CONSUMED.values(), ids=CONSUMED.keys())
def test_consumed_output_is_equal(kafka, java, records, given):
    topic, count = records
    java_result, own = consume_both(kafka, java, topic, count, properties(given))

    assert java_result[:2] == own[:2], (java_result.errors, own.errors)
    assert 0 == own.code
    summary = f"Processed a total of {count} messages"
    assert summary in java_result.errors.splitlines()
    assert [summary] == own.errors.splitlines()


@pytest.mark.parametrize(
    ("name", "layout", "numbers"),
    [
        ("Double", ">d", NUMBERS + SPECIAL),
        ("Float", ">f", (*NUMBERS[:-1], 0.1, 16777216.0, *SPECIAL)),
        ("Long", ">q", (0, -1, 1 << 62)),
        ("Integer", ">i", (0, -1, 1 << 30)),
        ("Short", ">h", (0, -1, 1 << 14)),
        ("Boolean", ">b", (0, 1)),
    ],
)
def test_deserialized_numbers_are_equal(kafka, java, name, layout, numbers):
    topic = kafka.admin.create_topic(1, new_name("numbers"))
    kafka.admin.produce(topic, [struct.pack(layout, number) for number in numbers])
    deserializer = f"org.apache.kafka.common.serialization.{name}Deserializer"

    java_result, own = consume_both(
        kafka, java, topic, len(numbers), ["--value-deserializer", deserializer]
    )

    assert java_result[:2] == own[:2], (java_result.errors, own.errors)
    assert len(numbers) == len(own.out.splitlines())


def test_record_that_cannot_be_deserialized_is_rejected_by_both(kafka, java):
    topic = kafka.admin.create_topic(1, new_name("numbers"))
    kafka.admin.produce(topic, [struct.pack(">q", 1), b"short", struct.pack(">q", 2)])
    deserializer = "org.apache.kafka.common.serialization.LongDeserializer"
    args = ["--value-deserializer", deserializer, "--reject-message-on-error"]

    java_result, own = consume_both(kafka, java, topic, 3, args)

    assert (0, b"1\n2\n") == own[:2], own.errors
    assert java_result[:2] == own[:2]
    assert "Processed a total of 3 messages" in java_result.errors
    assert "Processed a total of 3 messages" in own.errors


def test_consumed_lines_are_produced_again(kafka):
    first, second = (kafka.admin.create_topic(1, new_name("again")) for _ in range(2))
    group = new_name("again-group")
    kafka.admin.produce(
        first,
        [b"\xff\x00", None, b"v"],
        keys=[b"k", None, b"\xfe"],
        headers=[("h", None), ("h", b"\xff")],
    )
    where = ("--bootstrap-server", kafka.bootstrap_servers)

    consumed = run_cli(
        *("consume", first, "--group", group, "--from-beginning", "--json"),
        *("--max-messages", "3", "--timeout-ms", "20s", *where),
    )
    produced = run_cli("produce", second, "--json", *where, stdin=consumed.out.encode())

    assert (0, 0, "") == (consumed.code, produced.code, produced.err)
    assert 3 == len(contents(kafka, second))
    assert contents(kafka, first) == contents(kafka, second)
