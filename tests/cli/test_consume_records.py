"""`sharecons consume` on the embedded broker."""

import fcntl
import json
import os
import signal
import struct
import sys
import termios
import time

import pytest

from sharecons.cli.exit_codes import ExitCode
from sharecons.testing import EmbeddedBroker
from tests.broker.clients import new_name
from tests.cli.processes import end, on_terminal, read_until, start
from tests.cli.run_cli import run_cli
from tests.cli.unsafe_characters import unsafe_characters
from tests.waiting import until_true

SILENCE = ("--timeout-ms", "2500")


@pytest.fixture
def topic(broker):
    name = new_name("consume")
    broker.create_topic(name)
    return name


@pytest.fixture
def group(broker):
    name = new_name("consumers")
    broker.set_group_config(name, {"share.auto.offset.reset": "earliest"})
    return name


@pytest.fixture
def consume(broker, topic, group):
    def run(*args):
        where = ("--bootstrap-server", broker.bootstrap_servers)
        return run_cli("consume", "--topic", topic, "--group", group, *args, *where)

    return run


def summary(count):
    return f"Processed a total of {count} messages"


def states(broker, group, topic):
    """Return the states of all offsets, by name."""
    partition = broker.group(group).partition(topic)
    done = [(offset, "done") for offset in range(partition.start_offset)]
    open_ = [(each.offset, str(each.state)) for each in partition.in_flight]
    return dict(done + open_)


@pytest.mark.slow("starts processes")
def test_records_are_written_and_accepted(broker, topic, group, consume):
    broker.produce(topic, ["a", "b", None])

    first = consume(*SILENCE)
    again = consume("--timeout-ms", "1000")

    assert (0, "a\nb\nnull\n") == (first.code, first.out)
    assert [summary(3)] == first.lines
    assert (0, "", [summary(0)]) == (again.code, again.out, again.lines)
    assert () == broker.group(group).members


def test_several_topics_are_consumed(broker, topic, group):
    other = new_name("consume")
    broker.create_topic(other)
    broker.produce(topic, ["a"])
    broker.produce(other, ["b"])
    where = ("--bootstrap-server", broker.bootstrap_servers)

    names = (topic, "--topic", other, "--group", group)
    result = run_cli("consume", *names, "--max-messages", "2", *where)

    assert (0, ["a", "b"]) == (result.code, sorted(result.out.split()))


def test_from_beginning_sets_the_start_of_a_new_group(broker, topic):
    broker.produce(topic, ["a"])
    where = ("--bootstrap-server", broker.bootstrap_servers)
    names = ("consume", topic, "--group", new_name("new"))

    result = run_cli(*names, "--from-beginning", "--max-messages", "1", *where)

    assert (0, "a\n") == (result.code, result.out)


@pytest.mark.slow("starts a process")
@pytest.mark.parametrize("limit", [1, 2, 8])
def test_each_run_with_a_limit_consumes_the_next_records(
    broker, topic, group, consume, limit
):
    # In one batch: a consumer without an exact limit acquires all of them, five times.
    broker.produce(topic, [str(number) for number in range(100)])

    found = []
    for _ in range(8):
        result = consume("--max-messages", limit, "--json", *SILENCE)
        assert [summary(limit)] == result.lines
        found += map(json.loads, result.out.splitlines())

    assert list(range(8 * limit)) == [each["offset"] for each in found]
    assert max(each["delivery_count"] for each in found) <= 3


@pytest.mark.parametrize(
    ("action", "state", "next_value"),
    [("--reject", "done", "b"), ("--release", "available", "a")],
)
def test_records_are_rejected_or_released(
    broker, topic, group, consume, action, state, next_value
):
    broker.produce(topic, ["a", "b"])

    result = consume(action, "--max-messages", "1")

    assert (0, "a\n") == (result.code, result.out)
    assert state == states(broker, group, topic)[0]
    later = consume("--max-messages", "1")
    assert next_value == later.out.strip()


def test_record_that_cannot_be_deserialized_ends_and_is_released(
    broker, topic, group, consume
):
    broker.produce(topic, [struct.pack(">q", 1), b"no", struct.pack(">q", 2)])

    result = consume("--value-deserializer", "long", *SILENCE)

    assert (ExitCode.FAILED, "1\n") == (result.code, result.out)
    assert summary(1) == result.lines[0]
    assert f"{topic}-0@1: value: long needs 8 bytes, not 2" in result.lines[1]
    assert "the record is released" in result.lines[1]
    assert {0: "done", 1: "available", 2: "available"} == states(broker, group, topic)


def test_record_that_cannot_be_deserialized_is_rejected_on_demand(
    broker, topic, group, consume
):
    broker.produce(topic, [struct.pack(">q", 1), b"no", struct.pack(">q", 2)])
    given = ("--value-deserializer", "long", "--reject-message-on-error")

    result = consume(*given, "--max-messages", "3")

    assert (0, "1\n2\n") == (result.code, result.out)
    assert "the record is rejected" in result.lines[0]
    assert summary(3) == result.lines[1]
    assert 3 == broker.group(group).partition(topic).start_offset


@pytest.mark.slow("starts a process")
def test_damaged_batch_ends_or_is_passed_over(broker, topic, group, consume):
    broker.produce(topic, ["damaged"])
    broker.produce(topic, ["intact"])
    broker.corrupt_batch(topic, 0, 0)

    ended = consume(*SILENCE)
    passed = consume("--reject-message-on-error", "--max-messages", "1")

    assert ExitCode.FAILED == ended.code
    assert f"{topic}-0" in ended.lines[-1]
    assert "Traceback" not in ended.err
    assert (0, "intact\n") == (passed.code, passed.out)


def test_forbidden_group_is_named(broker, consume):
    with broker.faults.on("ShareGroupHeartbeat", times=None).refuse(
        "GROUP_AUTHORIZATION_FAILED"
    ):
        result = consume(*SILENCE)

    assert ExitCode.FORBIDDEN == result.code
    assert "GROUP_AUTHORIZATION_FAILED" in result.err
    assert "Traceback" not in result.err


def test_lost_acknowledgements_are_reported(broker, topic, consume, caplog):
    broker.produce(topic, ["a"])
    lost = ("ShareAcknowledge", "ShareFetch")
    # Later fetches carry acknowledgements as well; only the first one succeeds.
    with (
        broker.faults.on(lost[0], times=None).refuse("INVALID_RECORD_STATE"),
        broker.faults.on(lost[1], times=None, after=1).refuse("INVALID_RECORD_STATE"),
    ):
        result = consume("--max-messages", "1")

    assert "a\n" == result.out
    assert [summary(1)] == result.lines
    assert f"positions={topic}-0@0 error=INVALID_RECORD_STATE" in caplog.text


@pytest.mark.slow("starts a process")
def test_broken_pipe_releases_unwritten_records(broker, topic, group):
    count = 200
    broker.produce(topic, [b"%03d" % n + b"x" * 4093 for n in range(count)])
    with start(broker, "consume", topic, "--group", group) as process:
        assert b"000x" == process.stdout.readline()[:4]
        process.stdout.close()
        process.wait(20)

        assert (141, b"") == (process.returncode, process.stderr.read())
    found = states(broker, group, topic)
    written = [offset for offset, state in found.items() if state == "done"]
    assert list(range(len(written))) == written
    # A pipe holds 64 KiB, and the reader's buffer a few more.
    assert 1 <= len(written) <= 40
    assert "acquired" not in found.values()
    assert () == broker.group(group).members


@pytest.mark.slow("starts a process")
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has it")
def test_full_disk_is_one_error_line_and_accepts_nothing(broker, topic, group, consume):
    broker.produce(topic, ["a", "b"])
    with open("/dev/full", "w") as full:
        with start(broker, "consume", topic, "--group", group, stdout=full) as process:
            code, _, lines = end(process)

    assert 1 == code
    error = "sharecons: cannot write to standard output: No space left on device"
    assert [error] == lines
    assert "a\nb\n" == consume("--max-messages", "2").out


@pytest.mark.slow("starts a process")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_signal_leaves_the_group_and_ends_with_the_summary(
    broker, topic, group, number, code
):
    broker.produce(topic, ["a", "b"])
    with start(broker, "consume", topic, "--group", group) as process:
        assert b"a\nb\n" == process.stdout.readline() + process.stdout.readline()
        process.send_signal(number)

        assert (code, b"", [summary(2)]) == end(process)
    assert () == broker.group(group).members
    assert 2 == broker.group(group).partition(topic).start_offset


PIPE_SIZE = 4096
LINE_SIZE = 3000


def shrink_pipe(process):
    """Reduce the pipe from a process to PIPE_SIZE bytes, one line."""
    fcntl.fcntl(process.stdout.fileno(), fcntl.F_SETPIPE_SZ, PIPE_SIZE)


def is_pipe_full(process):
    """Return whether the pipe from a process has no room for another line."""
    size = fcntl.ioctl(process.stdout.fileno(), termios.FIONREAD, b"\0" * 4)
    return PIPE_SIZE - LINE_SIZE < int.from_bytes(size, sys.byteorder)


@pytest.mark.slow("starts a process")
@pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="Linux has it")
def test_signal_ends_command_whose_output_is_not_read(broker, topic, group):
    values = [b"%d" % n + b"x" * LINE_SIZE for n in range(20)]
    with start(broker, "consume", topic, "--group", group) as process:
        shrink_pipe(process)
        broker.produce(topic, values)
        until_true(lambda: is_pipe_full(process), what="the pipe is full")
        process.send_signal(signal.SIGTERM)

        assert 143 == process.wait(15)
        assert () == broker.group(group).members
        written = process.stdout.read().count(b"\n")
    found = states(broker, group, topic)
    assert written == list(found.values()).count("done")
    never_acquired = 20 - len(found)
    released = list(found.values()).count("available")
    assert 20 - written == released + never_acquired


@pytest.mark.slow("starts a process")
@pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="Linux has it")
def test_member_with_unread_output_sends_heartbeats(broker, topic, group):
    with start(broker, "consume", topic, "--group", group) as process:
        shrink_pipe(process)
        broker.produce(topic, [b"x" * LINE_SIZE] * 20)
        until_true(lambda: is_pipe_full(process), what="the pipe is full")
        broker.forget_requests()

        def heartbeats():
            return sum(r.api == "ShareGroupHeartbeat" for r in broker.requests)

        until_true(lambda: heartbeats() >= 2, what="two heartbeats")
        assert 1 == len(broker.group(group).members)


@pytest.mark.slow("starts a process")
@pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="Linux has it")
def test_record_whose_lock_has_ended_is_not_written():
    shortest = {"group.share.min.record.lock.duration.ms": "1000"}
    lock = {"share.record.lock.duration.ms": "1000"}
    with EmbeddedBroker(topics={"jobs": 1}, settings=shortest) as broker:
        broker.set_group_config("g", {"share.auto.offset.reset": "earliest", **lock})
        with start(broker, "consume", "jobs", "--group", "g") as process:
            shrink_pipe(process)
            broker.produce("jobs", [b"%02d" % n + b"x" * LINE_SIZE for n in range(20)])
            until_true(lambda: is_pipe_full(process), what="the pipe is full")
            time.sleep(1.5)  # real time: the command measures the lock of 1 s
            lines = [process.stdout.readline()[:2]]
            while lines[-1] != b"19":
                lines.append(process.stdout.readline()[:2])
            process.send_signal(signal.SIGTERM)
            _, _, errors = end(process)

    # Only the record that was being written when its lock ended is there twice.
    assert [b"00", b"01", *(b"%02d" % n for n in range(1, 20))] == lines
    (failed,) = [line for line in errors if line.startswith("acknowledgements failed")]
    assert "positions=jobs-0@1 error=INVALID_RECORD_STATE" in failed
    # Records behind it waited beyond their locks, and are written once they come again.
    ended = [line for line in errors if line.startswith("acquisition locks ended")]
    assert 1 <= len(ended) <= 2
    assert summary(21) == errors[-1]
    assert len(errors) == len(ended) + 2


ATTACK = "\x1b]0;pwned\x07\x1b[2J\u202e\u200b".encode() + b"\xff\x9b31m"


@pytest.mark.slow("starts a process")
def test_terminal_gets_escaped_text_and_a_pipe_bytes(broker, topic, group):
    broker.produce(topic, [ATTACK], keys=[ATTACK], headers=[("h", ATTACK)])
    columns = ("print.key=true", "print.headers=true")
    given = [w for each in columns for w in ("--formatter-property", each)]
    name = ("consume", topic, "--group")
    limit = ("--max-messages", "1", *given)
    with on_terminal(broker, *name, group, *limit) as (process, terminal):
        shown = read_until(terminal, b"\n").decode()
        assert 0 == process.wait(20)
    other = (new_name("other"), "--from-beginning")
    with start(broker, *name, *other, *limit) as process:
        code, out, _ = end(process)

    assert set() == unsafe_characters(shown.replace("\r\n", "\n").replace("\t", ""))
    assert 3 == shown.count(r"\x1b]0;pwned\x07")
    assert (0, b"h:" + b"\t".join([ATTACK] * 3) + b"\n") == (code, out)
