"""Run kafka-share-groups and `sharecons groups` on one Kafka and compare them.

Rows are compared in the columns of Kafka's tool. If one tool fails, the other must fail
for the same reason; the exit code of Kafka's tool is 0 even then.

For commands that change something, each tool has its own groups, whose names end in -j
for Kafka's tool and in -o for sharecons.
"""

import re
from contextlib import ExitStack
from dataclasses import dataclass

import anyio
import pytest
from confluent_kafka import Consumer, ShareConsumer, TopicPartition

import sharecons
from tests.broker.clients import new_name
from tests.broker.java_tools import JavaTools
from tests.cli.run_cli import parse_tables, run_cli
from tests.kafka_plugin import VERSION
from tests.waiting import until_true

pytestmark = [pytest.mark.kafka, pytest.mark.slow("Kafka's Java tools start a JVM")]

since_4_4 = pytest.mark.skipif(VERSION < "4.4", reason="options of Kafka 4.4's tool")

GROUP_NOT_FOUND = "(?i)not found|GROUP_ID_NOT_FOUND|not a share group"
GROUP_NOT_EMPTY = "(?i)not empty|NON_EMPTY_GROUP"
NO_TOPIC = "(?i)UNKNOWN_TOPIC_OR_PARTITION|does not host this topic-partition"
NO_PARTITION = f"{NO_TOPIC}|(?i:partitions? .* not|is 0 to)"


@dataclass
class CommonNames:
    """The names of groups, topics and files that the commands use."""

    bootstrap_servers: str
    topic: str
    other: str
    busy: str
    classic: str
    stem: str
    file: str

    def fill_in(self, args, side):
        values = {
            "{t}": self.topic,
            "{u}": self.other,
            "{busy}": self.busy,
            "{classic}": self.classic,
            "{g}": f"{self.stem}-a-{side}",
            "{h}": f"{self.stem}-b-{side}",
            "{none}": f"{self.stem}-none",
            "{file}": self.file,
        }
        text = "\t".join(args.split())
        for placeholder, name in values.items():
            text = text.replace(placeholder, name)
        return text.split("\t")


@pytest.fixture(scope="module")
def names(kafka, tmp_path_factory):
    admin = kafka.admin
    topic, other = (admin.create_topic(n, new_name("same")) for n in (3, 2))
    for partition, count in ((0, 30), (1, 7)):
        admin.produce(topic, [b"x"] * count, partition=partition)
    admin.produce(other, [b"x"] * 5, partition=1)
    stem = new_name("same-group")
    where = kafka.bootstrap_servers
    file = tmp_path_factory.mktemp("offsets") / "offsets.csv"
    file.write_text(f"{topic},0,12\n{topic},1,1000\n{other},1,2\n")
    busy, classic = f"{stem}-busy", f"{stem}-classic"
    names = CommonNames(where, topic, other, busy, classic, stem, str(file))
    with ExitStack() as stack:
        _start_members(stack, kafka, names)
        _commit_classic(names)
        yield names
    anyio.run(_delete_groups, names)


async def _delete_groups(names):
    """Delete the groups of these tests from the Kafka."""
    groups = [names.fill_in(name, side)[0] for name in ("{g}", "{h}") for side in "jo"]
    async with sharecons.ShareGroupAdmin(
        bootstrap_servers=names.bootstrap_servers
    ) as admin:
        await admin.delete_share_groups(names.busy, names.classic, *groups)


def _start_members(stack, kafka, names):
    """Start two members of a group that acknowledge all records."""
    config = {
        "share.auto.offset.reset": "earliest",
        "share.heartbeat.interval.ms": 100,
        "share.assignment.interval.ms": 0,
    }
    kafka.admin.set_group_config(names.busy, config)
    settings = {
        "bootstrap.servers": names.bootstrap_servers,
        "group.id": names.busy,
        "log_level": 0,
    }
    consumers = []
    for name in ("first", "second"):
        consumer = ShareConsumer({**settings, "client.id": name})
        stack.callback(consumer.close)
        consumer.subscribe([names.topic])
        consumers.append(consumer)
    records = []

    def poll_all():
        for consumer in consumers:
            records.extend(consumer.poll(0.1))
        return len(records) >= 37

    until_true(poll_all, what="37 records")
    for consumer in consumers:
        consumer.commit_sync(20.0)

    until_true(lambda: anyio.run(_is_settled, names), what="two members without lag")


async def _is_settled(names):
    group = names.busy
    async with sharecons.ShareGroupAdmin(
        bootstrap_servers=names.bootstrap_servers
    ) as admin:
        found = (await admin.describe_share_groups(group))[group].value
        offsets = (await admin.list_share_group_offsets(group))[group].value.found
    return len(found.members) == 2 and 0 == sum(
        each.lag or 0 for each in offsets.values()
    )


def _commit_classic(names):
    settings = {"bootstrap.servers": names.bootstrap_servers, "group.id": names.classic}
    consumer = Consumer(settings)
    consumer.commit(offsets=[TopicPartition(names.topic, 0, 3)], asynchronous=False)
    consumer.close()


@pytest.fixture(autouse=True)
def fresh(names):
    """Create the groups that commands change, before each test."""

    async def prepare():
        async with sharecons.ShareGroupAdmin(
            bootstrap_servers=names.bootstrap_servers
        ) as admin:
            for side in ("j", "o"):
                (g,), (h,) = (names.fill_in(name, side) for name in ("{g}", "{h}"))
                await admin.delete_share_groups(g, h)
                await _set_start_offsets(
                    admin, g, {(names.topic, 0): 10, (names.topic, 1): 2}
                )
                await _set_start_offsets(
                    admin, h, {(names.topic, 0): 5, (names.other, 1): 1}
                )

    anyio.run(prepare)


async def _set_start_offsets(admin, group, offsets):
    start = {sharecons.TopicPartition(*key): offset for key, offset in offsets.items()}
    (await admin.alter_share_group_offsets(group, start)).check()


def run_java(names, *args):
    """Run Kafka's tool; return its exit code and its output."""
    ended = JavaTools(names.bootstrap_servers).ended("kafka-share-groups", *args)
    return ended.returncode, (ended.stdout + ended.stderr).decode()


QUERIES = {
    "states of all groups": "--list --state",
    "states of empty groups": "--list --state Empty",
    "states of stable groups, in small letters": "--list --state stable",
    "states of groups in two states": "--list --state Empty,Stable",
    "states of dead groups": "--list --state Dead",
    "a group": "--describe --group {busy}",
    "offsets": "--describe --group {g} --offsets",
    "offsets, verbose": "--describe --group {g} --offsets --verbose",
    "offsets of two groups": "--describe --group {g} --group {h}",
    "offsets of all groups": "--describe --all-groups",
    "members": "--describe --group {busy} --members",
    "members, verbose": "--describe --members --verbose --group {busy}",
    "members of an empty group": "--describe --group {g} --members",
    "members of all groups": "--describe --all-groups --members",
    "the state": "--describe --group {busy} --state",
    "the state, verbose": "--describe --group {busy} --state --verbose",
    "the state of an empty group": "--describe --state --group {g}",
    "states of two groups": "--describe --state --group {g} --group {busy}",
    "a reset to the beginning, dry": "--reset-offsets --group {g} --topic {t}"
    " --to-earliest --dry-run",
    "a reset to the end, dry": "--reset-offsets --group {g} --topic {t}"
    " --to-latest --dry-run",
    "a reset of all topics, dry": "--reset-offsets --group {h} --all-topics"
    " --to-latest --dry-run",
    "a reset of partitions, dry": "--reset-offsets --group {g} --topic {t}:0,2"
    " --to-latest --dry-run",
    "a reset of two topics, dry": "--reset-offsets --group {g} --topic {t}:1"
    " --topic {u} --to-latest --dry-run",
    "a reset of a topic that the group never read, dry": "--reset-offsets --group {g}"
    " --topic {u} --to-earliest --dry-run",
    "a reset to a time before all records, dry": "--reset-offsets --group {g}"
    " --topic {t}:0,1 --to-datetime 2001-01-01T00:00:00.000 --dry-run",
    "a reset to a time after all records, dry": "--reset-offsets --group {g}"
    " --topic {t} --to-datetime 2101-01-01T00:00:00.000+02:00 --dry-run",
    "a reset of a group that is not there, dry": "--reset-offsets --group {none}"
    " --topic {t} --to-latest --dry-run",
    "a reset to the beginning": "--reset-offsets --group {g} --topic {t}"
    " --to-earliest --execute",
    "a reset of all topics": "--reset-offsets --group {h} --all-topics"
    " --to-latest --execute",
    "a reset of a partition": "--reset-offsets --execute --to-latest --group {g}"
    " --topic {t}:1",
    "offsets deleted": "--delete-offsets --group {h} --topic {u}",
    "offsets of two topics deleted": "--delete-offsets --group {h} --topic {u}"
    " --topic {t}",
}

QUERIES_SINCE_4_4 = {
    "a reset to an offset, dry": "--reset-offsets --group {g} --topic {t}"
    " --to-offset 5 --dry-run",
    "a reset to a negative offset, dry": "--reset-offsets --group {g} --topic {t}"
    " --to-offset -1 --dry-run",
    "a reset to the current offsets, dry": "--reset-offsets --group {g} --topic {t}"
    " --to-current --dry-run",
    "a reset of a topic without current offsets, dry": "--reset-offsets --group {g}"
    " --topic {u} --to-current --dry-run",
    "a reset to offsets of a file, dry": "--reset-offsets --group {g}"
    " --from-file {file} --dry-run",
    "a reset to an offset": "--reset-offsets --group {g} --topic {t}:0"
    " --to-offset 7 --execute",
    "a reset to the current offsets": "--reset-offsets --group {h} --all-topics"
    " --to-current --execute",
    "a reset to offsets of a file": "--reset-offsets --group {g}"
    " --from-file {file} --execute",
}

EMPTY_RESULTS = ("--list --state Dead", QUERIES["members of an empty group"])
"""Commands for which neither tool shows rows."""

FAILURES = {
    "describing a group that is not there": (
        "--describe --group {none}",
        GROUP_NOT_FOUND,
    ),
    "its members": ("--describe --group {none} --members", GROUP_NOT_FOUND),
    "its state": ("--describe --group {none} --state", GROUP_NOT_FOUND),
    "deleting it": ("--delete --group {none}", GROUP_NOT_FOUND),
    "deleting its offsets": (
        "--delete-offsets --group {none} --topic {t}",
        GROUP_NOT_FOUND,
    ),
    "describing a consumer group": ("--describe --group {classic}", GROUP_NOT_FOUND),
    "deleting a consumer group": ("--delete --group {classic}", GROUP_NOT_FOUND),
    "deleting a group with members": ("--delete --group {busy}", GROUP_NOT_EMPTY),
    "deleting offsets of one": (
        "--delete-offsets --group {busy} --topic {t}",
        GROUP_NOT_EMPTY,
    ),
    "resetting one": (
        "--reset-offsets --group {busy} --all-topics --to-latest --execute",
        GROUP_NOT_EMPTY,
    ),
    "resetting one, dry": (
        "--reset-offsets --group {busy} --all-topics --to-latest --dry-run",
        GROUP_NOT_EMPTY,
    ),
    "resetting a topic that is not there": (
        "--reset-offsets --group {g} --topic {none} --to-latest --execute",
        NO_TOPIC,
    ),
    "resetting a partition that is not there": (
        "--reset-offsets --group {g} --topic {t}:0,9 --to-latest --execute",
        NO_PARTITION,
    ),
    "deleting offsets of a topic that is not there": (
        "--delete-offsets --group {g} --topic {none}",
        NO_TOPIC,
    ),
}

USAGE_ERRORS = {
    "no action": "--group {g}",
    "two actions": "--list --describe --group {g}",
    "listing a group": "--list --group {g}",
    "a state that there is not": "--list --state Bogus",
    "members listed": "--list --members",
    "describing nothing": "--describe",
    "two views": "--describe --group {g} --members --state",
    "describing with a state's value": "--describe --group {g} --state Empty",
    "describing one group and all": "--describe --group {g} --all-groups",
    "deleting nothing": "--delete",
    "deleting with a topic": "--delete --group {g} --topic {t}",
    "deleting offsets of no topic": "--delete-offsets --group {g}",
    "resetting no group": "--reset-offsets --topic {t} --to-latest --execute",
    "resetting no topic": "--reset-offsets --group {g} --to-latest --execute",
    "resetting to nowhere": "--reset-offsets --group {g} --topic {t} --execute",
    "resetting to two places": "--reset-offsets --group {g} --topic {t} --to-latest"
    " --to-earliest --execute",
    "resetting neither dry nor not": "--reset-offsets --group {g} --topic {t}"
    " --to-latest",
    "resetting both dry and not": "--reset-offsets --group {g} --topic {t}"
    " --to-latest --dry-run --execute",
    "resetting two groups": "--reset-offsets --group {g} --group {h} --topic {t}"
    " --to-latest --dry-run",
    "resetting all groups": "--reset-offsets --all-groups --topic {t}"
    " --to-latest --dry-run",
    "exporting neither dry nor not": "--reset-offsets --group {g} --topic {t}"
    " --to-latest --export",
    "deleting offsets of two groups": "--delete-offsets --group {g} --group {h}"
    " --topic {t}",
    "resetting to no time": "--reset-offsets --group {g} --topic {t}"
    " --to-datetime today --dry-run",
    "resetting to the offsets of a file and the end": "--reset-offsets --group {g}"
    " --from-file {file} --to-latest --dry-run",
    "resetting to the offsets of a file and a topic": "--reset-offsets --group {g}"
    " --topic {t} --from-file {file} --dry-run",
    "resetting to an offset that is no number": "--reset-offsets --group {g}"
    " --topic {t} --to-offset x --dry-run",
    "resetting a partition that is no number": "--reset-offsets --group {g}"
    " --topic {t}:x --to-latest --execute",
    "an option that there is not": "--list --bogus",
    "an abbreviated option": "--desc --group {g}",
}

TOPIC_AND_ALL = "--reset-offsets --group {g} --topic {t} --all-topics --to-latest"


def run_both(names, args):
    """Run both tools; return exit code and output of Kafka's, and our result."""
    code, java_output = run_java(names, *names.fill_in(args, "j"))
    return (code, java_output), run_cli(
        "groups",
        "--bootstrap-server",
        names.bootstrap_servers,
        *names.fill_in(args, "o"),
    )


def own_rows(names, text):
    """Return the rows of this test's groups, without the differences of the tools.

    Rows about topics have no group. Kafka's tool has another word for deleted.
    """
    found = []
    for row in parse_tables(text):
        if not row.get("GROUP", names.stem).startswith(names.stem):
            continue
        row = {key: re.sub("-[jo]$", "", value) for key, value in row.items()}
        row["ASSIGNMENT"] = row.get("ASSIGNMENT", "-")
        if "STATUS" in row:
            row["STATUS"] = row["STATUS"].replace("Successful", "deleted")
        found.append(row)
    return found


def sorted_values(found, columns):
    return sorted([row.get(column, "-") for column in columns] for row in found)


@pytest.mark.parametrize("args", QUERIES.values(), ids=QUERIES.keys())
def test_query_has_same_rows(names, args):
    (_, java_output), result = run_both(names, args)

    assert 0 == result.code, result.err
    java_rows, own = own_rows(names, java_output), own_rows(names, result.out)
    assert bool(java_rows) == (args not in EMPTY_RESULTS), java_output
    columns = java_rows[0] if java_rows else ()
    assert sorted_values(java_rows, columns) == sorted_values(own, columns)


@since_4_4
@pytest.mark.parametrize(
    "args", QUERIES_SINCE_4_4.values(), ids=QUERIES_SINCE_4_4.keys()
)
def test_query_since_4_4_has_same_rows(names, args):
    test_query_has_same_rows(names, args)


@since_4_4
def test_export_has_same_lines(names):
    args = "--reset-offsets --group {g} --from-file {file} --export --dry-run"
    (_, java_output), result = run_both(names, args)

    lines = [line for line in java_output.splitlines() if line.count(",") == 2]
    assert 3 == len(lines), java_output
    assert sorted(lines) == result.out.splitlines()


def test_every_option_of_kafkas_tool_exists(names):
    _, java_output = run_java(names, "--help")
    options = set(re.findall(r"^(--[a-z][a-z-]*)", java_output, re.MULTILINE))
    own = set(re.findall(r"--[a-z-]+", run_cli("groups", "--help").out))

    assert {"--reset-offsets", "--to-datetime", "--timeout"} <= options
    assert options - own == set()


def test_list_has_same_names(names):
    (_, java_output), result = run_both(names, "--list")

    assert 0 == result.code
    java_rows = {name for name in java_output.split() if name.startswith(names.stem)}
    assert 5 == len(java_rows)
    assert java_rows == {n for n in result.out.split() if n.startswith(names.stem)}


def test_delete_has_same_effect(names):
    (_, java_output), result = run_both(names, "--delete --group {g} --group {h}")

    assert "was successful" in java_output
    assert 0 == result.code
    _, left = run_java(names, "--list")
    assert [names.busy] == [n for n in left.split() if n.startswith(names.stem)]


def test_reset_has_same_effect(names):
    args = "--reset-offsets --group {g} --topic {t} --to-latest --execute"
    run_both(names, args)

    _, java_output = run_java(
        names, "--describe", *names.fill_in("--group {g} --group {g}", "j")
    )
    _, own = run_java(names, "--describe", *names.fill_in("--group {g}", "o"))
    assert 3 == len(parse_tables(own))
    assert own_rows(names, own) == own_rows(names, java_output)


@pytest.mark.parametrize(("args", "why"), FAILURES.values(), ids=FAILURES.keys())
def test_failure_has_same_reason(names, args, why):
    (_, java_output), result = run_both(names, args)

    assert re.search(why, java_output), java_output
    assert 1 == result.code
    lines = [line for line in result.lines if not line.startswith("note: ")]
    assert 1 == len(lines), result.err
    assert re.search(why, lines[0])
    assert "Traceback" not in result.err


@pytest.mark.parametrize("args", USAGE_ERRORS.values(), ids=USAGE_ERRORS.keys())
def test_usage_error_is_the_same(names, args):
    (code, java_output), result = run_both(names, args)

    assert code or "Error: " in java_output, java_output
    assert 2 == result.code
    assert 1 == len(result.lines), result.err


@since_4_4
def test_usage_error_since_4_4_is_the_same(names):
    test_usage_error_is_the_same(names, f"{TOPIC_AND_ALL} --dry-run")
