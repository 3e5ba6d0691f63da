"""`sharecons groups inspect`, `peek` and `preflight` on the command line."""

import json
import re
import subprocess
import sys

import anyio
import pytest

from sharecons import ShareGroupAdmin, TopicPartition
from sharecons.cli import main
from sharecons.testing import EmbeddedBroker
from tests.guides import Guide
from tests.kafka_plugin import Admin
from tests.scenarios.queue import Queue, take


@pytest.fixture(scope="module")
def broker():
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture(scope="module")
def queue(broker):
    """Ten records, of which the second is acknowledged and the third rejected."""
    queue = Queue(Admin(broker.bootstrap_servers))
    queue.produce([b'{"n": %d}' % number for number in range(10)])

    async def work():
        async with queue.consumer(acknowledgement="explicit") as consumer:
            records = await take(aiter(consumer), 3)
            records[1].accept()
            records[2].reject()
            await consumer.commit(timeout=10)

    anyio.run(work)
    return queue


@pytest.fixture
def run(broker, capsys):
    def run(*arguments, at=broker.bootstrap_servers):
        code = main([*arguments, "--bootstrap-server", at])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def test_inspect_of_a_group_of_another_type_says_its_type(run, queue):
    async def create():
        offsets = {TopicPartition(queue.topic, 0): 0}
        async with ShareGroupAdmin(
            bootstrap_servers=queue.admin.bootstrap_servers
        ) as admin:
            (await admin.alter_consumer_group_offsets("classic", offsets)).check()

    anyio.run(create)

    code, out, err = run("groups", "inspect", "classic")

    assert (1, "") == (code, out)
    assert "not a share group); it is a classic group" in err


def test_inspect_shows_counts_bar_and_finding(run, queue):
    code, out, err = run("groups", "inspect", queue.group)

    assert (0, "") == (code, err)
    assert f"group {queue.group}: Empty, 0 members; window: 2,000 offsets" in out
    (row,) = (line for line in out.splitlines() if line.startswith(queue.topic + " "))
    assert ["0", "0", "10", "1", "1"] == row.split()[1:6]
    assert f"{queue.topic}-0: STALLED: the group has no members" in out
    assert f"{queue.topic}-0: NOTE: 1 offset archived before the delivery" in out
    assert "a bar is 10 offsets wide" in out
    assert "which offsets before START were archived is no longer stored" in out


def test_inspect_lists_offsets(run, queue):
    code, out, _ = run("groups", "inspect", queue.group, "--offsets")
    rows = [line.split() for line in out.splitlines() if line.startswith(queue.topic)]

    assert 0 == code
    assert ["1", "1", "1", "acknowledged", "1"] == rows[1][2:]
    assert ["2", "2", "1", "archived", "1"] == rows[2][2:]


def test_inspect_gives_json(run, queue):
    code, out, _ = run("groups", "inspect", queue.group, "--json")
    (found,) = json.loads(out)

    assert 0 == code
    assert (queue.topic, 0, 0, 10, 1, 1) == tuple(
        found[name]
        for name in (
            "topic",
            "partition",
            "start_offset",
            "end_offset",
            "acknowledged",
            "archived",
        )
    )
    assert 0 == found["oldest_offset"]
    assert "no_members" == found["findings"][0]["reason"]
    assert 10 == sum(
        each["last_offset"] - each["first_offset"] + 1 for each in found["ranges"]
    )


def test_check_exits_with_1_if_a_partition_is_stalled(run, queue):
    code, _, _ = run("groups", "inspect", queue.group, "--check")

    assert 1 == code


@pytest.mark.parametrize(
    ("option", "start"), [("--html", "<!DOCTYPE html>"), ("--svg", "<svg ")]
)
def test_picture_is_written(run, queue, tmp_path, option, start):
    path = tmp_path / "inside"
    code, _, _ = run("groups", "inspect", queue.group, option, str(path))

    assert 0 == code
    assert path.read_text().startswith(start)


def test_unwritable_page_is_one_error_line(run, queue, tmp_path):
    path = tmp_path / "nowhere" / "inside.html"
    code, _, err = run("groups", "inspect", queue.group, "--html", str(path))

    assert 2 == code
    assert re.fullmatch(r"sharecons groups inspect: cannot write the picture.*\n", err)


def test_peek_shows_lines(run, queue):
    code, out, _ = run("peek", queue.topic, "--max", "2")

    assert 0 == code
    first, second = out.splitlines()
    assert first.startswith(f"{queue.topic}-0@0  ")
    assert second.endswith('key=null  value={"n": 1}')


@pytest.mark.parametrize(
    ("where", "offsets"),
    [
        ("earliest", [0, 1]),
        ("latest", [9]),
        ("8", [8, 9]),
        ("-1", [9]),
        ("1999-01-01", [0, 1]),
    ],
)
def test_peek_starts_at_the_given_position(run, queue, where, offsets):
    code, out, _ = run("peek", queue.topic, "--from", where, "--max", "2", "--json")

    assert 0 == code
    assert offsets == [each["offset"] for each in json.loads(out)]


def test_peek_parses_json(run, queue):
    _, out, _ = run("peek", queue.topic, "--max", "1", "--json", "--format", "json")

    assert {"n": 0} == json.loads(out)[0]["value"]


def test_peek_escapes_bytes(run, broker):
    broker.create_topic("wild")
    broker.produce("wild", [b"\xff\x1b[31m\n"], headers=[("h", None)])
    _, out, _ = run("peek", "wild")
    _, made, _ = run("peek", "wild", "--json")
    _, printed, _ = run("peek", "wild", "--format", "hex")

    assert out.endswith("headers={h=null}  value=\\xff\\x1b[31m\\n\n")
    assert {"hex": "ff1b5b33316d0a"} == json.loads(made)[0]["value"]
    assert "value=ff1b5b33316d0a" in printed


def test_preflight_prints_a_line_per_check(run, queue):
    code, out, _ = run("preflight", "--topic", queue.topic, "--group", queue.group)

    assert 0 == code
    assert {"ok", "warn"} >= {line.split()[0] for line in out.splitlines()}
    assert f"ok    topic {queue.topic}: 1 partition" in out


def test_preflight_prints_the_lines_of_the_page_about_versions(run):
    with EmbeddedBroker(topics={"orders": 6}) as new:
        arguments = ("preflight", "--topic", "orders", "--group", "billing")
        _, out, _ = run(*arguments, at=new.bootstrap_servers)

    page = Guide("which-kafka.md").text.partition("Kafka 4.4.0, new")[2]
    shown = re.findall("^    ((?:ok|warn) .*)$", page, re.MULTILINE)
    # The cluster id, and Kafka 4.4 in place of 4.3.
    differing = {line.split(":")[0] for line in {*shown} ^ {*out.splitlines()}}
    assert 10 == len(shown)
    assert {
        "ok    cluster",
        "ok    share.version",
        "ok    dead letters of billing",
    } == (differing)


def test_preflight_fails_for_an_unknown_topic(run, queue):
    code, out, _ = run("preflight", "--topic", "nix", "--json")

    assert 1 == code
    (failed,) = (each for each in json.loads(out) if each["verdict"] == "fail")
    assert "topic nix" == failed["check"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("groups", "inspect", "unknown"), 1, "GROUP_ID_NOT_FOUND"),
        (("peek", "nix"), 1, "UNKNOWN_TOPIC_OR_PARTITION"),
        (("peek", "nix", "--from", "soon"), 2, "neither earliest, latest, an offset"),
        (("groups", "inspect", "g", "--topic", "t:x"), 2, "neither TOPIC nor"),
        (
            ("groups", "inspect", "g", "--watch", "--svg", "x"),
            2,
            "--watch cannot be combined",
        ),
    ],
)
def test_errors_are_one_line_and_an_exit_code(run, arguments, code, words):
    found, out, err = run(*arguments)

    assert (code, "") == (found, out)
    assert 1 == err.count("\n")
    assert words in err


@pytest.mark.parametrize(
    "arguments", [("groups", "inspect", "g"), ("peek", "t"), ("preflight",)]
)
def test_unreachable_cluster_is_one_error_line(run, arguments):
    code, out, err = run(*arguments, "--timeout", "100", at="localhost:1")

    assert (3, "", 1) == (code, out, err.count("\n"))


@pytest.mark.slow("watches in real time")
def test_watch_without_a_terminal_writes_lines(broker, queue):
    arguments = ("groups", "inspect", queue.group, "--watch", "0.1", "--json")
    where = ("--bootstrap-server", broker.bootstrap_servers)
    with subprocess.Popen(
        [sys.executable, "-m", "sharecons", *arguments, *where],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        lines = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.terminate()

    assert {queue.topic} == {line["topic"] for line in lines}
    assert lines[0]["at"] < lines[1]["at"] < lines[2]["at"]
