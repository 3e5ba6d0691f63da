"""`sharecons produce` on the embedded broker."""

import fcntl
import os
import select
import signal
import subprocess

import pytest

from sharecons.cli.exit_codes import ExitCode
from sharecons.cli.produce.standard_input import CHUNK
from tests.broker.clients import new_name
from tests.cli.processes import end, on_terminal, read_until, start
from tests.cli.run_cli import run_cli
from tests.waiting import until_true


@pytest.fixture
def topic(broker):
    name = new_name("produce")
    broker.create_topic(name, partitions=2)
    return name


@pytest.fixture
def produce(broker):
    def run(*args, stdin=b""):
        where = ("--bootstrap-server", broker.bootstrap_servers)
        return run_cli("produce", *args, *where, stdin=stdin)

    return run


def values(broker, topic, partition=None):
    return [record.value for record in broker.records(topic, partition)]


def test_lines_become_records(broker, produce, topic):
    result = produce("--topic", topic, "--partition", "1", stdin=b"a\n\nb\r\nc")

    assert (0, "", "") == (result.code, result.out, result.err)
    assert [b"a", b"", b"b", b"c"] == values(broker, topic, 1)


def test_key_separator_and_headers(broker, produce, topic):
    header = ("--header", "origin=a=b", "--header", "empty=")
    result = produce(topic, "--key-separator", ": ", *header, stdin=b"k: v: w\n")

    assert 0 == result.code, result.err
    (record,) = broker.records(topic)
    assert (b"k", b"v: w") == (record.key, record.value)
    assert (("origin", b"a=b"), ("empty", b"")) == record.headers


def test_headers_of_a_line_are_before_headers_of_options(broker, produce, topic):
    produce(
        *(topic, "--header", "b=2", "--reader-property", "parse.headers=true"),
        stdin=b"a:1\tv\n",
    )

    (record,) = broker.records(topic)
    assert (("a", b"1"), ("b", b"2")) == record.headers


def test_properties_of_option_override_those_of_file(broker, produce, topic, tmp_path):
    file = tmp_path / "reader.properties"
    file.write_text("parse.key=true\nkey.separator=:\n")
    given = ("--reader-config", file, "--reader-property", "key.separator=\t")

    result = produce(topic, *given, stdin=b"a:b\tc\n")

    assert 0 == result.code, result.err
    assert [b"a:b"] == [record.key for record in broker.records(topic)]


def test_json_lines(broker, produce, topic):
    line = b'{"key": "k", "value": null, "headers": {"a": "1"}, "timestamp": 5}\n'
    result = produce(topic, "--json", "--header", "b=2", stdin=line)

    assert 0 == result.code, result.err
    (record,) = broker.records(topic)
    assert (b"k", None, 5) == (record.key, record.value, record.timestamp)
    assert (("a", b"1"), ("b", b"2")) == record.headers


def test_partition_that_does_not_exist_is_usage_error(produce, topic):
    result = produce(topic, "--partition", "2", stdin=b"a\n")

    assert ExitCode.USAGE == result.code
    assert "has no partition 2: it has 2" in result.err


def test_topic_that_does_not_exist_is_named_without_a_retry(broker, produce):
    broker.forget_requests()

    result = produce("missing", stdin=b"a\n")

    assert ExitCode.FAILED == result.code
    assert "topic 'missing': UNKNOWN_TOPIC_OR_PARTITION" in result.err
    # The topic, and then all topics, to find a similar name.
    assert 2 == sum("Metadata" == request.api for request in broker.requests)


def test_record_that_is_too_large_is_named_and_the_others_are_written(broker, produce):
    topic = new_name("small")
    broker.create_topic(topic, config={"max.message.bytes": "1000"})
    lines = b"a\n" + b"x" * 2000 + b"\nb\n"

    result = produce(topic, stdin=lines)

    assert ExitCode.FAILED == result.code
    assert "line 2: " in result.lines[0]
    assert "MESSAGE_TOO_LARGE" in result.lines[0]
    assert "sharecons produce: 1 of 3 lines failed: 2" == result.lines[1]
    assert [b"a", b"b"] == values(broker, topic)


def test_line_without_record_ends_reading(broker, produce, topic):
    result = produce(topic, "--json", stdin=b'{"value": "a"}\nno\n{"value": "b"}\n')

    assert ExitCode.FAILED == result.code
    assert "line 2: not JSON" in result.lines[0]
    assert "this line and later ones are not written" in result.lines[0]
    assert [b"a"] == values(broker, topic)


def test_rejected_principal_ends_reading(broker, produce, topic):
    with broker.faults.on("Produce", times=None).refuse("TOPIC_AUTHORIZATION_FAILED"):
        result = produce(topic, stdin=b"a\n" * 100)

    assert ExitCode.FORBIDDEN == result.code
    assert "line 1: " in result.lines[0]
    assert "100 of 100 lines failed: 1-100" in result.lines[-1]
    assert 11 == len(result.lines)


def test_unconfirmed_lines_are_reported(broker, produce, topic):
    with broker.faults.on("Produce", times=None).refuse("NOT_ENOUGH_REPLICAS"):
        result = produce(topic, "--timeout", "100", stdin=b"a\nb\n")

    assert ExitCode.UNREACHABLE == result.code
    assert "might have been written" in result.lines[0]
    assert "2 of 2 lines failed: 1-2" in result.lines[-1]


@pytest.mark.slow("lost responses are sent again after a timeout")
def test_order_survives_lost_responses(broker, produce, topic):
    lines = [b"%d" % number for number in range(20_000)]
    broker.faults.on("Produce", times=3).cut(after=True)

    result = produce(topic, "--partition", "0", stdin=b"\n".join(lines))

    assert (0, "") == (result.code, result.err)
    assert lines == values(broker, topic, 0)


@pytest.mark.slow("starts a process")
def test_line_of_a_pipe_is_written_before_the_pipe_ends(broker, topic):
    with start(broker, "produce", topic) as process:
        process.stdin.write(b"first\nla")
        process.stdin.flush()
        until_true(lambda: [b"first"] == values(broker, topic))
        result = end(process, b"st\n")

    assert (0, b"", []) == result
    assert [b"first", b"last"] == sorted(values(broker, topic))


LINE = b"x" * 99 + b"\n"
FOUR_READS = LINE * (4 * CHUNK // len(LINE))


@pytest.mark.slow("starts a process")
@pytest.mark.parametrize("content", [b"", FOUR_READS], ids=["empty", "four reads"])
def test_regular_file_is_read_to_its_end(broker, topic, tmp_path, content):
    path = tmp_path / "lines"
    path.write_bytes(content)
    with (
        path.open("rb") as file,
        start(broker, "produce", topic, stdin=file) as process,
    ):
        assert (0, b"", []) == end(process)

    assert content.count(b"\n") == len(values(broker, topic))


@pytest.mark.slow("starts a process")
def test_closed_stdin_is_one_error_line(broker, topic):
    closed = {"preexec_fn": lambda: os.close(0), "stdin": None}
    with start(broker, "produce", topic, **closed) as process:
        result = end(process)

    assert (1, b"") == result[:2]
    assert ["sharecons produce: standard input is closed"] == result[2]


@pytest.mark.slow("starts a process")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_signal_ends_after_the_lines_that_were_read(broker, topic, number, code):
    with start(broker, "produce", topic) as process:
        process.stdin.write(b"a\nb\nhalf")
        process.stdin.flush()
        until_true(lambda: 2 == len(values(broker, topic)))
        process.send_signal(number)
        process.wait(20)

        assert code == process.returncode
        assert b"" == process.stderr.read()
    assert {b"a", b"b"} == set(values(broker, topic))


def is_sent(broker):
    return any("Produce" == request.api for request in broker.requests)


@pytest.mark.slow("starts a process")
def test_signal_waits_for_confirmations_and_a_second_one_does_not(broker, topic):
    stalled = broker.faults.on("Produce", times=None).stall()
    broker.forget_requests()
    with stalled, start(broker, "produce", topic) as process:
        process.stdin.write(b"a\n")
        process.stdin.flush()
        until_true(lambda: is_sent(broker), what="the request")
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.send_signal(signal.SIGINT)

        code, _, lines = end(process)

    assert 130 == code
    assert 1 == len(lines)
    assert "might have been written" in lines[0]


def is_writable(fd, within):
    """Wait until a pipe accepts bytes; return False after `within` seconds."""
    return bool(select.select([], [fd], [], within)[1])


@pytest.mark.slow("starts a process")
def test_stalled_broker_stops_reading(broker, topic):
    block = (b"x" * 100_000 + b"\n") * 10
    limit = 64 << 20
    broker.forget_requests()
    with (
        broker.faults.on("Produce", times=None).stall(),
        start(broker, "produce", topic) as process,
    ):
        process.stdin.write(b"first\n")
        process.stdin.flush()
        until_true(lambda: is_sent(broker), what="the first request")
        fd = process.stdin.fileno()
        fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NONBLOCK)
        written = 0
        while written < limit and is_writable(fd, within=3):
            written += os.write(fd, block[written % len(block) :])

    assert 30 << 20 < written < limit


@pytest.mark.slow("starts a process")
def test_terminal_has_a_prompt(broker, topic):
    with on_terminal(broker, "produce", topic) as (process, terminal):
        assert b">" == read_until(terminal, b">")
        os.write(terminal, b"typed\n")
        assert b"typed\r\n>" == read_until(terminal, b">")
        until_true(lambda: [b"typed"] == values(broker, topic))
        os.write(terminal, b"\x04")  # the end, Ctrl-D

        assert 0 == process.wait(20)
