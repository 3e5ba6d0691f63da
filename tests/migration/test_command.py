"""`sharecons migrate` on the command line."""

import json
import uuid

import anyio
import pytest

from sharecons import ShareGroupAdmin, TopicPartition
from sharecons.cli.exit_codes import ExitCode
from tests.cli.run_cli import run_cli


@pytest.fixture
def topic(kafka):
    name = kafka.admin.create_topic(2)
    kafka.admin.produce(name, [b"%d" % n for n in range(100)], partition=0)
    return name


@pytest.fixture
def groups(kafka, topic):
    """Return a consumer group with offset 40, and the name of a new share group."""
    old, new = (f"{word}-{uuid.uuid4().hex[:12]}" for word in ("old", "new"))

    async def commit():
        async with ShareGroupAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:
            (
                await admin.alter_consumer_group_offsets(
                    old, {TopicPartition(topic, 0): 40}
                )
            ).check()

    anyio.run(commit)
    return old, new


@pytest.fixture
def migrate(kafka):
    def migrate(*arguments):
        at = ("--bootstrap-server", kafka.bootstrap_servers)
        return run_cli("migrate", *arguments, *at)

    return migrate


def test_migrate_without_execute_changes_nothing(kafka, migrate, groups):
    old, new = groups
    result = migrate(old, new)
    again = migrate(old, new, "--dry-run")

    async def list_groups():
        async with ShareGroupAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:
            return await admin.list_groups()

    assert ExitCode.SUCCESS == result.code == again.code
    assert result.out == again.out
    assert "--execute moves 1 partition." in result.out
    assert new not in anyio.run(list_groups).groups


def test_execute_with_json_returns_results(kafka, migrate, groups, topic):
    old, new = groups
    rows = json.loads(migrate(old, new, "--execute", "--json").out)
    again = json.loads(migrate(old, new, "--execute", "--json").out)
    back = json.loads(migrate(new, f"{old}-2", "--execute", "--json").out)

    first, second = rows
    assert (topic, 0, 40, None, 40) == (
        first["topic"],
        first["partition"],
        first["source_offset"],
        first["target_offset"],
        first["new_offset"],
    )
    assert (0, 0, "moved", None) == (
        first["twice"],
        first["missed"],
        first["result"],
        first["error"],
    )
    assert ("left", None) == (second["result"], second["new_offset"])
    assert ["there", "left"] == [row["result"] for row in again]
    assert first.keys() == second.keys()
    assert "moved" == back[0]["result"]


def test_report_is_a_table_with_notes(migrate, groups, topic):
    old, new = groups
    lines = migrate(old, new).out.splitlines()

    assert "TOPIC PARTITION SOURCE TARGET BEGINS TWICE MISSED REWOUND RESULT" == (
        " ".join(lines[0].split())
    )
    assert [topic, "0", "40", "-", "40", "0", "0", "0", "to", "move"] == (
        lines[1].split()
    )
    assert any(
        line.startswith(f"{topic}-1: the source has no position") for line in lines
    )
    assert (
        f"From consumer group '{old}' to share group '{new}': 0 offsets are "
        "delivered twice, 0 never." in lines
    )


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--topic", "no-such-topic"], "'no-such-topic'"),
        (["--to-consumer-group"], "it is a consumer group"),
    ],
)
def test_errors_are_one_line(migrate, groups, more, words):
    result = migrate(*groups, *more)

    assert ExitCode.FAILED == result.code
    (line,) = result.lines
    assert words in line


def test_unknown_partition_is_reported_and_the_others_are_moved(migrate, groups, topic):
    result = migrate(*groups, "--topic", f"{topic}:0,9", "--execute")

    assert ExitCode.FAILED == result.code
    (line,) = result.lines
    assert f"{topic}-9" in line
    assert "Moved: 1 of 1 partition." in result.out


def test_invalid_options_are_rejected(migrate, groups):
    for more in (["--execute", "--dry-run"], ["--topic", "t:x"], ["--missing", "?"]):
        assert ExitCode.USAGE == migrate(*groups, *more).code


def test_partition_without_a_position_needs_the_missing_option(migrate, groups, topic):
    old, new = groups
    undecided = migrate(old, new, "--execute")
    decided = migrate(old, new, "--execute", "--missing", "leave")

    assert ExitCode.FAILED == undecided.code
    (line,) = undecided.lines
    assert f"{topic}-1" in line
    assert "--missing" in line
    assert "Moved: 1 of 1 partition." in undecided.out
    assert ExitCode.SUCCESS == decided.code
    assert ExitCode.SUCCESS == migrate(old, new).code
