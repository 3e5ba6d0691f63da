"""`sharecons dead-letters` on the embedded broker."""

import json
import subprocess
import sys

import anyio
import pytest

from sharecons import ShareGroupAdmin
from sharecons.testing import EmbeddedBroker
from tests.cli.run_cli import run_cli
from tests.cli.unsafe_characters import unsafe_characters
from tests.dead_letters.letters import DEAD, new_letter, records_of, write_letters

ATTACK = "\x1b]0;pwned\x07\x1b[2J\u202eevil\u200b"


@pytest.fixture
def broker():
    with EmbeddedBroker(topics={"orders": 2, "other": 1, DEAD: 1}) as broker:
        letters = [new_letter(number) for number in range(3)]
        letters.append(new_letter(3, group="shipping", reason="x" * 200))
        anyio.run(write_letters, broker.bootstrap_servers, letters)
        yield broker


def dead_letters(broker, action, *args):
    servers = ("--bootstrap-server", broker.bootstrap_servers)
    return run_cli("dead-letters", action, DEAD, *args, *servers)


def redriven(broker, topic="orders"):
    async def read():
        async with ShareGroupAdmin(bootstrap_servers=broker.bootstrap_servers) as admin:
            return [record.value for record in await records_of(admin, topic)]

    return sorted(anyio.run(read))


def test_list_shows_origins_and_reasons(broker):
    result = dead_letters(broker, "list")

    assert (0, "") == (result.code, result.err)
    head, first, *_, last = result.out.splitlines()
    assert [
        *("POSITION", "WRITTEN", "ORIGIN", "GROUP", "DELIVERIES", "REDRIVES"),
        *("REDRIVEN", "DUPLICATE-OF", "SOURCE", "KEY", "EXCEPTION", "REASON"),
    ] == head.split()
    assert first.split(maxsplit=11) == [
        *("0:0", "2023-11-14T22:15:00.000Z", "orders-0@0", "billing", "2", "0"),
        *("no", "-", "copied", "k0", "builtins.ValueError", "failed: ValueError: 0"),
    ]
    assert last.endswith(f"{'x' * 77}...")


def test_list_filters_and_limits(broker):
    result = dead_letters(broker, "list", "--filter", "group=shipping", "--json")
    limited = dead_letters(broker, "list", "--limit", "2")

    (found,) = json.loads(result.out)
    assert (3, "k3", "v3", "x" * 200) == (
        found["offset"],
        found["key"],
        found["value"],
        found["origin"]["reason"],
    )
    assert [{"name": "trace", "value": "1"}] == found["headers"]
    assert 3 == len(limited.out.splitlines())
    assert ["sharecons dead-letters list: only the first 2: see --limit"] == (
        limited.lines
    )


def test_show_writes_the_whole_record(broker):
    result = dead_letters(broker, "show", "0:1")

    assert (0, "") == (result.code, result.err)
    assert {
        "position   orders.dead-0@1",
        "origin     orders-1@1",
        "group      billing",
        "deliveries 2",
        "reason     failed: ValueError: 1",
        "timestamp  2023-11-14T22:13:20.001Z",
        "attempts   5",
        "exception  builtins.ValueError",
        "redrives   0",
        "redriven   no",
        "source     copied",
        "key        k1",
        "header     trace=1",
        "value      v1",
    } <= set(result.out.splitlines())
    (found,) = json.loads(dead_letters(broker, "show", "0:1", "--json").out)
    assert ("orders", 1, 1) == tuple(
        found["origin"][name] for name in ("topic", "partition", "offset")
    )


def test_show_of_missing_offset_fails(broker):
    result = dead_letters(broker, "show", "0:99")

    assert 1 == result.code
    assert result.err.endswith(f"{DEAD}-0 has no record at offset 99\n")


def test_show_of_missing_partition_fails(broker):
    result = dead_letters(broker, "show", "5:0")

    assert 2 == result.code
    assert result.err.endswith(
        f"{DEAD} has no partition 5: its partitions are 0 to 0\n"
    )


@pytest.mark.slow("commands write and read records in real time")
def test_redrive_continues_and_reports(broker):
    first = dead_letters(broker, "redrive", "--limit", "1")
    second = dead_letters(broker, "redrive")
    third = dead_letters(broker, "redrive", "--json")

    assert ["1 redriven; 3 offsets left\n", "3 redriven\n"] == [first.out, second.out]
    assert [
        {
            "name": DEAD,
            "redriven": 0,
            "already_written": 0,
            "filtered": 0,
            "skipped": {},
            "remaining": 0,
        }
    ] == json.loads(third.out)
    assert [b"v0", b"v1", b"v2", b"v3"] == redriven(broker)


WITH_SPANS = """
import sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

provider = TracerProvider()
exporter = ConsoleSpanExporter(out=sys.stderr, formatter=lambda span: f"{span.name}\\n")
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
from sharecons.cli import main

sys.exit(main(sys.argv[1:]))
"""
"""As `opentelemetry-instrument` does: the provider is set before the program starts."""


@pytest.mark.slow("starts a process")
def test_redrive_has_a_span_per_record_if_opentelemetry_is_configured(broker):
    servers = ("--bootstrap-server", broker.bootstrap_servers)
    done = subprocess.run(
        [sys.executable, "-c", WITH_SPANS, "dead-letters", "redrive", DEAD, *servers],
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert (0, "4 redriven\n") == (done.returncode, done.stdout), done.stderr
    assert ["send orders"] * 4 == done.stderr.splitlines()


@pytest.mark.slow("commands write and read records in real time")
def test_redrive_filters_to_another_topic(broker):
    result = dead_letters(
        broker, "redrive", "--to", "other", "--filter", "reason~VALUEERROR: 2"
    )

    assert "1 redriven; 3 do not pass the filters\n" == result.out
    assert [b"v2"] == redriven(broker, "other")


@pytest.mark.slow("commands write and read records in real time")
def test_list_shows_what_a_filtered_redrive_has_redriven(broker):
    dead_letters(broker, "redrive", "--filter", "group=billing")
    dead_letters(broker, "redrive", "--to", "other", "--only", "0:1")

    every = json.loads(dead_letters(broker, "list", "--json").out)
    assert [[DEAD], [DEAD, f"{DEAD}.to.other"], [DEAD], []] == [
        each["redriven_by"] for each in every
    ]
    for option, shown, offsets in (
        ("--redriven", "yes", ["0:0", "0:1", "0:2"]),
        ("--not-redriven", "no", ["0:3"]),
    ):
        _, *lines = dead_letters(broker, "list", option).out.splitlines()
        assert [(each, shown) for each in offsets] == [
            (line.split()[0], line.split()[6]) for line in lines
        ]
    show = dead_letters(broker, "show", "0:1")
    assert f"redriven   {DEAD}, {DEAD}.to.other" in show.out.splitlines()
    assert "1 redriven\n" == dead_letters(broker, "redrive").out
    assert [b"v0", b"v1", b"v2", b"v3"] == redriven(broker)


@pytest.mark.slow("commands write and read records in real time")
def test_record_that_was_dead_lettered_twice_is_a_duplicate_in_the_list(broker):
    anyio.run(write_letters, broker.bootstrap_servers, [new_letter(1), new_letter(9)])

    _, *lines = dead_letters(broker, "list").out.splitlines()
    every = json.loads(dead_letters(broker, "list", "--json").out)

    assert ["-", "-", "-", "-", "0:1", "-"] == [line.split()[7] for line in lines]
    first = {"partition": 0, "offset": 1}
    assert [None] * 4 + [first, None] == [each["duplicate_of"] for each in every]
    text = "5 redriven; 1 skipped: another dead letter of its record was redriven\n"
    assert text == dead_letters(broker, "redrive").out
    assert 5 == len(redriven(broker))


@pytest.mark.slow("commands write and read records in real time")
def test_redriven_dead_letter_is_redriven_again_only_with_again(broker):
    dead_letters(broker, "redrive", "--only", "0:2")
    refused = dead_letters(broker, "redrive", "--only", "0:2")
    again = dead_letters(broker, "redrive", "--only", "0:2", "--again")

    assert (1, "0 redriven; 1 skipped: it was redriven before\n") == (
        refused.code,
        refused.out,
    )
    assert [
        "sharecons dead-letters redrive: orders.dead-0@2 is not redriven: it was "
        "redriven before (--again, again=True: redrive it again)"
    ] == refused.lines
    assert (0, "1 redriven\n") == (again.code, again.out)
    assert [b"v2", b"v2"] == redriven(broker)


def test_delete_rejects_dead_letters_that_were_not_redriven(broker):
    before = ("delete", "--before", "0:2")
    planned = dead_letters(broker, *before, "--dry-run")
    rejected = dead_letters(broker, *before, "--execute")
    every = json.loads(dead_letters(broker, "list", "--json").out)

    text = (
        "sharecons dead-letters delete: 2 of 2 dead letters of orders.dead-0 before "
        "offset 2 were not redriven, the first at offset 0; nothing is deleted. "
        "Redrive them, or delete them with --not-redriven (not_redriven=True)"
    )
    assert (1, [text, "note: nothing was deleted; use --execute to apply"]) == (
        planned.code,
        planned.lines,
    )
    assert ["orders.dead", "0", "2", "2", "2", "NotRedrivenError"] == (
        planned.out.splitlines()[1].split()
    )
    assert (1, "", [text]) == (rejected.code, rejected.out, rejected.lines)
    assert [0, 1, 2, 3] == [each["offset"] for each in every]


@pytest.mark.slow("commands write and read records in real time")
def test_delete_deletes_redriven_dead_letters_with_execute_only(broker):
    dead_letters(broker, "redrive", "--filter", "group=billing")
    before = ("delete", "--before", "0:3")
    planned = dead_letters(broker, *before, "--dry-run")
    assert 4 == len(json.loads(dead_letters(broker, "list", "--json").out))
    deleted = dead_letters(broker, *before, "--execute", "--json")

    heading, row = planned.out.splitlines()
    assert (0, ["note: nothing was deleted; use --execute to apply"]) == (
        planned.code,
        planned.lines,
    )
    assert "TOPIC PARTITION BEFORE LETTERS NOT-REDRIVEN STATUS" == (
        " ".join(heading.split())
    )
    assert "orders.dead 0 3 3 0 would be deleted" == " ".join(row.split())
    (found,) = json.loads(deleted.out)
    assert {
        "topic": DEAD,
        "partition": 0,
        "before": 3,
        "letters": 3,
        "not_redriven": 0,
        "status": "deleted",
        "error": None,
    } == found
    (left,) = json.loads(dead_letters(broker, "list", "--json").out)
    assert 3 == left["offset"]


def test_delete_with_not_redriven_deletes_any(broker):
    result = dead_letters(
        broker, "delete", "--before", "0:4", "--execute", "--not-redriven"
    )

    assert (0, "") == (result.code, result.err)
    assert "orders.dead 0 4 4 4 deleted" == " ".join(result.out.split()[6:])
    assert [] == json.loads(dead_letters(broker, "list", "--json").out)


def test_delete_in_a_compacted_topic_is_reported(broker):
    broker.create_topic("compacted", config={"cleanup.policy": "compact"})
    broker.produce("compacted", [b"v"], keys=[b"k"])
    args = ("--before", "0:1", "--execute", "--not-redriven")

    result = run_cli(
        *("dead-letters", "delete", "compacted", *args),
        *("--bootstrap-server", broker.bootstrap_servers),
    )

    assert 1 == result.code
    assert "POLICY_VIOLATION" == result.out.split()[-1]
    assert "cannot delete the records of compacted-0: POLICY_VIOLATION" in result.err


def test_dry_run_shows_targets_and_writes_nothing(broker):
    args = ("redrive", "--dry-run", "--filter", "group=billing")
    result = dead_letters(broker, *args)
    rows = json.loads(dead_letters(broker, *args, "--json").out)

    assert [
        "orders.dead-0@0  write to orders-0",
        "orders.dead-0@1  write to orders-1",
        "orders.dead-0@2  write to orders-0",
        "dry run: 3 redriven; 1 do not pass the filters",
    ] == result.out.splitlines()
    assert [("orders", 0), ("orders", 1), ("orders", 0)] == [
        (row["target_topic"], row["target_partition"]) for row in rows
    ]
    assert [] == redriven(broker)


@pytest.mark.slow("commands write and read records in real time")
def test_dead_letter_without_target_fails_after_the_others(broker):
    broker.delete_topic("other")
    letters = [new_letter(9, topic="other"), new_letter(10)]
    anyio.run(write_letters, broker.bootstrap_servers, letters)

    result = dead_letters(broker, "redrive")

    assert 1 == result.code
    assert "5 redriven; 1 skipped: its target does not exist\n" == result.out
    assert [
        "sharecons dead-letters redrive: orders.dead-0@4 is not redriven: its target "
        "does not exist (topic 'other')"
    ] == result.lines


def test_missing_topic_is_an_error(broker):
    for action in (("list", "none"), ("show", "none", "0:0"), ("redrive", "none")):
        result = run_cli(
            *("dead-letters", *action),
            *("--bootstrap-server", broker.bootstrap_servers),
        )
        assert 1 == result.code
        assert "topic 'none'" in result.lines[0]


@pytest.mark.slow("commands write and read records in real time")
def test_hostile_dead_letters_are_escaped(broker):
    hostile = new_letter(
        7,
        headers=((f"name{ATTACK}", ATTACK.encode()),),
        topic=ATTACK,
        group=ATTACK,
        reason=ATTACK,
        exception=ATTACK,
    )._replace(key=ATTACK.encode(), value=b"\xff\x1b[2J")
    anyio.run(write_letters, broker.bootstrap_servers, [hostile])

    for action in (
        ("list",),
        ("list", "--json"),
        ("show", "0:4"),
        ("show", "0:4", "--format", "json"),
        ("show", "0:4", "--format", "hex"),
        ("show", "0:4", "--json"),
        ("redrive", "--dry-run"),
        ("redrive", "--dry-run", "--json"),
        ("redrive", "--name", ATTACK),
        ("redrive", "--name", ATTACK, "--filter", f"key={ATTACK}"),
    ):
        result = dead_letters(broker, *action)
        assert set() == unsafe_characters(result.out + result.err), action
        assert "Traceback" not in result.err
