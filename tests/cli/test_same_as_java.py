"""The same questions to kafka-share-groups and to `sharecons groups`, on one Kafka.

Facts are compared row by row, in Java's columns. Where something is refused, both must
refuse it, and for the same reason; Java's exit code is 0 all the same, ours is not.

A question that changes something is asked by each of its own group, the one's name
ending in -j, the other's in -o.
"""

import re
from contextlib import ExitStack
from dataclasses import dataclass

import anyio
import pytest
from confluent_kafka import Consumer, ShareConsumer, TopicPartition

import sharecons as ours
from tests.broker.clients import new_name, until
from tests.cli.java_share_groups import JavaShareGroups
from tests.cli.run_cli import parse_tables, run_cli
from tests.kafka_plugin import VERSION

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

since_4_4 = pytest.mark.skipif(VERSION < "4.4", reason="options of Kafka 4.4's tool")

GROUP_NOT_FOUND = "(?i)not found|GROUP_ID_NOT_FOUND|not a share group"
GROUP_NOT_EMPTY = "(?i)not empty|NON_EMPTY_GROUP"
NO_TOPIC = "(?i)UNKNOWN_TOPIC_OR_PARTITION|does not host this topic-partition"
NO_PARTITION = f"{NO_TOPIC}|(?i:partitions? .* not|is 0 to)"


@dataclass
class CommonNames:
    """Names that questions are about."""

    bootstrap_servers: str
    topic: str
    other: str
    busy: str
    classic: str
    stem: str
    file: str

    def named(self, args, side):
        names = {
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
        for short, name in names.items():
            text = text.replace(short, name)
        return text.split("\t")


@pytest.fixture(scope="module")
def ground(kafka, tmp_path_factory):
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
    made = CommonNames(where, topic, other, busy, classic, stem, str(file))
    with ExitStack() as stack:
        _start_members(stack, kafka, made)
        _commit_classic(made)
        yield made
    anyio.run(_delete_groups, made)


async def _delete_groups(made):
    """Leave a Kafka that is not ours without our groups."""
    names = [made.named(name, side)[0] for name in ("{g}", "{h}") for side in "jo"]
    async with ours.ShareGroupAdmin(made.bootstrap_servers) as admin:
        await admin.delete_share_groups(made.busy, made.classic, *names)


def _start_members(stack, kafka, made):
    """Two members of one group, and something read by them."""
    config = {
        "share.auto.offset.reset": "earliest",
        "share.heartbeat.interval.ms": 100,
        "share.assignment.interval.ms": 0,
    }
    kafka.admin.set_group_config(made.busy, config)
    settings = {
        "bootstrap.servers": made.bootstrap_servers,
        "group.id": made.busy,
        "log_level": 0,
    }
    consumers = []
    for name in ("first", "second"):
        consumer = ShareConsumer({**settings, "client.id": name})
        stack.callback(consumer.close)
        consumer.subscribe([made.topic])
        consumers.append(consumer)
    taken = []

    def poll():
        for consumer in consumers:
            taken.extend(consumer.poll(0.1))

    until("37 records", lambda: len(taken) >= 37, poll)
    for consumer in consumers:
        consumer.commit_sync(20.0)

    async def settled():
        async with ours.ShareGroupAdmin(made.bootstrap_servers) as admin:
            with anyio.fail_after(20):
                while not await _is_settled(admin, made.busy):
                    await anyio.sleep(0.05)

    anyio.run(settled)


async def _is_settled(admin, group):
    found = (await admin.describe_share_groups(group))[group].value
    offsets = (await admin.list_share_group_offsets(group))[group].value.found
    return len(found.members) == 2 and 0 == sum(
        each.lag or 0 for each in offsets.values()
    )


def _commit_classic(made):
    settings = {"bootstrap.servers": made.bootstrap_servers, "group.id": made.classic}
    consumer = Consumer(settings)
    consumer.commit(offsets=[TopicPartition(made.topic, 0, 3)], asynchronous=False)
    consumer.close()


@pytest.fixture(autouse=True)
def fresh(ground):
    """Before each question: the groups that it may change, as they were."""

    async def prepare():
        async with ours.ShareGroupAdmin(ground.bootstrap_servers) as admin:
            for side in ("j", "o"):
                (g,), (h,) = (ground.named(name, side) for name in ("{g}", "{h}"))
                await admin.delete_share_groups(g, h)
                await _set_start_offsets(
                    admin, g, {(ground.topic, 0): 10, (ground.topic, 1): 2}
                )
                await _set_start_offsets(
                    admin, h, {(ground.topic, 0): 5, (ground.other, 1): 1}
                )

    anyio.run(prepare)


async def _set_start_offsets(admin, group, offsets):
    wanted = {ours.TopicPartition(*key): offset for key, offset in offsets.items()}
    (await admin.alter_share_group_offsets(group, wanted)).check()


@pytest.fixture(scope="module")
def java(ground):
    with JavaShareGroups(ground.bootstrap_servers) as tool:
        yield tool


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
"""What has no rows on either side."""

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
    "resetting to the offsets of a file and a topic": "--reset-offsets --group {g}"
    " --topic {t} --from-file {file} --dry-run",
    "resetting to an offset that is no number": "--reset-offsets --group {g}"
    " --topic {t} --to-offset x --dry-run",
    "resetting a partition that is no number": "--reset-offsets --group {g}"
    " --topic {t}:x --to-latest --execute",
    "an option that there is not": "--list --bogus",
    "an abbreviated option": "--desc --group {g}",
}


def run_both(ground, java, args):
    """Ask both; give what Java says, and our answer."""
    code, said = java.ask(*ground.named(args, "j"))
    return (code, said), run_cli(
        "groups",
        "--bootstrap-server",
        ground.bootstrap_servers,
        *ground.named(args, "o"),
    )


def own_rows(ground, text):
    """Rows that are about this test's groups, in an order of their own.

    A topic's rows have no group; those of Java end in what ours calls otherwise.
    """
    found = []
    for row in parse_tables(text):
        if not row.get("GROUP", ground.stem).startswith(ground.stem):
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
def test_the_same_facts(ground, java, args):
    (_, said), answer = run_both(ground, java, args)

    assert 0 == answer.code, answer.err
    theirs, own = own_rows(ground, said), own_rows(ground, answer.out)
    assert bool(theirs) == (args not in EMPTY_RESULTS), said
    columns = theirs[0] if theirs else ()
    assert sorted_values(theirs, columns) == sorted_values(own, columns)


@since_4_4
@pytest.mark.parametrize(
    "args", QUERIES_SINCE_4_4.values(), ids=QUERIES_SINCE_4_4.keys()
)
def test_the_same_facts_since_4_4(ground, java, args):
    test_the_same_facts(ground, java, args)


@since_4_4
def test_the_same_export(ground, java):
    args = "--reset-offsets --group {g} --from-file {file} --export --dry-run"
    (_, said), answer = run_both(ground, java, args)

    lines = [line for line in said.splitlines() if line.count(",") == 2]
    assert 3 == len(lines), said
    assert sorted(lines) == answer.out.splitlines()


def test_the_same_names(ground, java):
    (_, said), answer = run_both(ground, java, "--list")

    assert 0 == answer.code
    theirs = {name for name in said.split() if name.startswith(ground.stem)}
    assert 5 == len(theirs)
    assert theirs == {n for n in answer.out.split() if n.startswith(ground.stem)}


def test_the_same_after_a_deletion(ground, java):
    (_, said), answer = run_both(ground, java, "--delete --group {g} --group {h}")

    assert "was successful" in said
    assert 0 == answer.code
    _, left = java.ask("--list")
    assert [ground.busy] == [n for n in left.split() if n.startswith(ground.stem)]


def test_the_same_after_a_reset(ground, java):
    args = "--reset-offsets --group {g} --topic {t} --to-latest --execute"
    run_both(ground, java, args)

    _, said = java.ask("--describe", *ground.named("--group {g} --group {g}", "j"))
    _, own = java.ask("--describe", *ground.named("--group {g}", "o"))
    assert 3 == len(parse_tables(own))
    assert own_rows(ground, own) == own_rows(ground, said)


@pytest.mark.parametrize(("args", "why"), FAILURES.values(), ids=FAILURES.keys())
def test_the_same_refusals(ground, java, args, why):
    (_, said), answer = run_both(ground, java, args)

    assert re.search(why, said), said
    assert 1 == answer.code
    lines = [line for line in answer.lines if not line.startswith("note: ")]
    assert 1 == len(lines), answer.err
    assert re.search(why, lines[0])
    assert "Traceback" not in answer.err


@pytest.mark.parametrize("args", USAGE_ERRORS.values(), ids=USAGE_ERRORS.keys())
def test_the_same_mistakes(ground, java, args):
    (code, said), answer = run_both(ground, java, args)

    assert code or "Error: " in said, said
    assert 2 == answer.code
    assert 1 == len(answer.lines), answer.err
