"""Commands escape names and records that attack a terminal."""

import json
from html.parser import HTMLParser
from xml.etree import ElementTree

import anyio
import pytest

from sharecons import ShareConsumer
from sharecons.testing import EmbeddedBroker
from sharecons.testing.broker.handlers import (
    describe_share_group_offsets,
    list_groups,
    metadata,
    share_group_describe,
)
from tests.cli.run_cli import run_cli
from tests.cli.unsafe_characters import unsafe_characters
from tests.waiting import until

ATTACK = "\x1b]0;pwned\x07\x1b[2J\x7f\x9b31m\u202eevil\u2066\u200b\u2028\u3164\ufe0f"
GROUP = f"group{ATTACK}"
OTHER = f"other{ATTACK}"
CONSUMER_GROUP = f"classic{ATTACK}"
CLIENT = f"client{ATTACK}"
HOST = f"host{ATTACK}"
TOPIC = f"topic{ATTACK}"
VALUES = (
    f"text{ATTACK}".encode(),
    json.dumps({ATTACK: ATTACK}, ensure_ascii=False).encode(),
    b'{"lone": "\\ud800", "inf": 1e999, "nan": NaN}',
    b"\xff\xfe\x1b[31m",
)


async def consume(servers):
    """Join GROUP with a hostile client id; leave one record unacknowledged."""
    consumer = ShareConsumer(
        "jobs",
        group_id=GROUP,
        client_id=CLIENT,
        bootstrap_servers=servers,
        acknowledgement="explicit",
        auto_offset_reset="earliest",
    )
    async with consumer:
        records = await consumer.poll(timeout=20, max_records=3)
        while len(records) < 3:
            records += await consumer.poll(timeout=20, max_records=3 - len(records))
        records[1].accept()
        records[2].reject()
        await consumer.commit()


@pytest.fixture(scope="module")
def hostile():
    with EmbeddedBroker(topics={"jobs": 1}) as broker:
        for value in VALUES:
            broker.produce(
                "jobs", [value], keys=[value], headers=[(f"header{ATTACK}", value)]
            )
        anyio.run(consume, broker.bootstrap_servers)
        yield broker


def replace_strings(response, changes):
    """Replace strings anywhere in a response."""
    if isinstance(response, dict):
        return {key: replace_strings(each, changes) for key, each in response.items()}
    if isinstance(response, list | tuple):
        return [replace_strings(each, changes) for each in response]
    return changes.get(response, response) if isinstance(response, str) else response


def with_replacements(handler, changes):
    async def respond(request, context):
        return replace_strings(await handler.handle(request, context), changes)

    return respond


COMMANDS = [
    ("groups", "list"),
    ("groups", "list", "--state"),
    ("groups", "list", "--type", "all"),
    ("groups", "describe", GROUP),
    ("groups", "describe", GROUP, "--verbose"),
    ("groups", "--describe", "--group", GROUP),
    ("groups", "members", GROUP, "--verbose"),
    ("groups", "offsets", GROUP, "--verbose"),
    ("groups", "offsets", OTHER),
    ("groups", "state", GROUP, "--verbose"),
    ("groups", "describe", "--all-groups"),
    ("groups", "describe", OTHER),
    ("groups", "inspect", GROUP),
    ("groups", "inspect", GROUP, "--offsets"),
    ("groups", "inspect", GROUP, "--topic", TOPIC),
    ("groups", "inspect", OTHER),
    ("groups", "configure", GROUP),
    ("groups", "configure", OTHER),
    ("groups", "configure", GROUP, "--set", f"name{ATTACK}={ATTACK}"),
    ("groups", "configure", GROUP, "--set", f"share.auto.offset.reset={ATTACK}"),
    ("groups", "reset-offsets", GROUP, "--topic", "jobs", "--to-latest", "--dry-run"),
    ("groups", "reset-offsets", GROUP, "--topic", TOPIC, "--to-latest", "--dry-run"),
    ("groups", "reset-offsets", GROUP, "--all-topics", "--to-datetime", ATTACK),
    ("groups", "delete-offsets", GROUP, "--topic", TOPIC),
    ("groups", "delete", OTHER),
    ("groups", "delete", GROUP, "--dry-run"),
    ("groups", "delete", "--all-groups", "--dry-run"),
    ("groups", ATTACK),
    ("groups", "list", f"--{ATTACK}"),
    ("groups", "list", "--timeout", ATTACK),
    ("migrate", GROUP, OTHER),
    ("migrate", GROUP, OTHER, "--topic", TOPIC),
    ("migrate", OTHER, GROUP),
    ("preflight", "--group", GROUP, "--group", OTHER, "--topic", TOPIC),
    ("peek", "jobs"),
    ("peek", "jobs", "--format", "json"),
    ("peek", "jobs", "--format", "hex"),
    ("peek", "jobs", "--group", GROUP),
    ("peek", "jobs", "--group", OTHER),
    ("peek", "jobs", "--from", ATTACK),
    ("peek", TOPIC),
    ("produce", TOPIC),
    ("produce", "jobs", "--reader-property", f"{ATTACK}=1"),
    ("produce", "jobs", "--reader-property", f"parse.key={ATTACK}"),
    ("produce", "jobs", "--reader-config", ATTACK),
    ("consume", TOPIC, "--group", GROUP),
    ("consume", "jobs", "--group", GROUP, "--formatter-property", f"{ATTACK}=1"),
    ("consume", "jobs", "--group", GROUP, "--value-deserializer", ATTACK),
    ("consume", "jobs", "--group", GROUP, "--auto-offset-reset", ATTACK),
    ("create-topics", "--topic", TOPIC, "--dead-letter", "jobs.dead"),
    ("create-topics", "--topic", "jobs", "--dead-letter", ATTACK),
    ("create-topics", "--topic", "jobs", "--dead-letter", "jobs.dead", "--dry-run"),
    ("exporter", "--interval", ATTACK),
    ("exporter", "--host", HOST),
    ("dashboard", "--host", HOST),
    ("dashboard", "--token-file", ATTACK),
    ("dashboard", "--worker", ATTACK),
]
COMMANDS_WITH_JSON = [
    command
    for command in COMMANDS
    if command[0] in ("groups", "migrate", "preflight", "peek")
]


def run_on(broker, command, timeout="5s"):
    servers = ("--bootstrap-server", broker.bootstrap_servers, "--timeout", timeout)
    return run_cli(*command, *servers)


def is_safe(result):
    assert set() == unsafe_characters(result.out)
    assert set() == unsafe_characters(result.err)
    assert "Traceback" not in result.err
    return True


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: " ".join(map(ascii, c)))
def test_command_escapes_hostile_names_and_records(hostile, command):
    result = run_on(hostile, command)

    assert is_safe(result)
    assert result.out or result.err


@pytest.mark.parametrize(
    "command", COMMANDS_WITH_JSON, ids=lambda c: " ".join(map(ascii, c))
)
def test_json_is_valid_and_escaped(hostile, command):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    result = run_on(hostile, (*command, "--json"))

    assert is_safe(result)
    if result.out:
        json.loads(result.out, parse_constant=refuse)


HOSTILE_RESPONSES = {
    "Metadata": with_replacements(metadata, {"127.0.0.1": HOST}),
    "ListGroups": with_replacements(list_groups, {"Empty": f"state{ATTACK}"}),
    "ShareGroupDescribe": with_replacements(
        share_group_describe,
        {"simple": f"assignor{ATTACK}", "Empty": f"state{ATTACK}"},
    ),
    "DescribeShareGroupOffsets": with_replacements(
        describe_share_group_offsets, {"jobs": TOPIC}
    ),
}


@pytest.mark.slow("hosts that cannot be reached are tried for 1 s")
@pytest.mark.parametrize("api", HOSTILE_RESPONSES)
@pytest.mark.parametrize("as_json", [(), ("--json",)])
@pytest.mark.parametrize(
    "command",
    [
        ("groups", "list", "--state"),
        ("groups", "describe", GROUP, "--verbose"),
        ("groups", "inspect", GROUP),
        ("groups", "reset-offsets", GROUP, "--all-topics", "--to-latest", "--dry-run"),
        ("migrate", GROUP, OTHER),
        ("preflight", "--group", GROUP, "--topic", "jobs"),
    ],
    ids=lambda c: c[1] if c[:1] == ("groups",) else c[0] if c else "",
)
def test_command_escapes_hostile_responses(hostile, api, command, as_json):
    # Metadata has a host that cannot be reached; commands try for the whole timeout.
    timeout = "1s" if api == "Metadata" else "5s"
    with hostile.faults.on(api, times=None).respond(HOSTILE_RESPONSES[api]):
        result = run_on(hostile, (*command, *as_json), timeout)

    assert is_safe(result)


@pytest.mark.parametrize("message", [f"no{ATTACK}", "two\nlines\r\n"])
def test_broker_error_message_is_one_escaped_line(hostile, message):
    def refuse(request, context):
        return {
            "groups": [
                {"group_id": each, "error_code": 30, "error_message": message}
                for each in request.group_ids
            ]
        }

    with hostile.faults.on("ShareGroupDescribe", times=None).respond(refuse):
        result = run_on(hostile, ("groups", "state", GROUP))

    assert is_safe(result)
    assert 4 == result.code
    (line,) = result.lines
    assert ascii(message)[1:4] in line


def test_client_ids_of_members_are_escaped(hostile):
    async def run_while_member():
        consumer = ShareConsumer(
            "jobs",
            group_id=GROUP,
            client_id=CLIENT,
            bootstrap_servers=hostile.bootstrap_servers,
            acknowledgement="explicit",
        )
        async with consumer:
            await until(lambda: consumer.connected)
            return [
                await anyio.to_thread.run_sync(run_on, hostile, command)
                for command in (
                    ("groups", "members", GROUP, "--verbose"),
                    ("groups", "members", GROUP, "--json"),
                    ("groups", "delete", GROUP),
                )
            ]

    results = anyio.run(run_while_member)

    assert all(is_safe(result) for result in results)
    assert r"client\x1b]0;pwned\x07" in results[0].out
    assert CLIENT == json.loads(results[1].out)[0]["client_id"]


def test_json_preserves_names_and_values(hostile):
    listed = json.loads(run_on(hostile, ("groups", "list", "--json")).out)
    peeked = run_on(hostile, ("peek", "jobs", "--json", "--format", "json"))
    records = json.loads(peeked.out)

    assert [GROUP] == [each["group"] for each in listed]
    assert f"text{ATTACK}" == records[0]["value"]
    assert {ATTACK: ATTACK} == records[1]["value"]
    assert {"lone": "\ud800", "inf": None, "nan": None} == records[2]["value"]
    assert f"header{ATTACK}" == records[0]["headers"][0]["name"]


def test_lines_that_are_rejected_are_escaped(hostile):
    for args in (("--key-separator", "="), ("--json",)):
        where = ("--bootstrap-server", hostile.bootstrap_servers)
        result = run_cli("produce", "jobs", *args, *where, stdin=VALUES[0])

        assert is_safe(result)
        assert 1 == result.code


@pytest.mark.slow("starts a process")
def test_consumed_json_lines_are_escaped(hostile):
    names = ("consume", "jobs", "--group", "json", "--from-beginning", "--json")
    result = run_on(hostile, (*names, "--max-messages", "4"))

    assert is_safe(result)
    values = [json.loads(line)["value"] for line in result.out.splitlines()]
    assert [VALUES[0].decode(), VALUES[3].hex()] == [values[0], values[3]["hex"]]


def test_json_format_writes_valid_json_values(hostile):
    out = run_on(hostile, ("peek", "jobs", "--format", "json")).out.splitlines()

    assert 4 == len(out)
    value = json.loads(out[1].rpartition("  value=")[2])
    assert {ATTACK: ATTACK} == value


class TextParser(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_data(self, data):
        self.found.append(data)


def test_html_page_escapes_names(hostile, tmp_path):
    path = tmp_path / "inside.html"
    result = run_on(hostile, ("groups", "inspect", GROUP, "--html", str(path)))
    text = TextParser()
    text.feed(path.read_text(encoding="utf-8"))

    assert 0 == result.code
    assert set() == unsafe_characters("".join(text.found))
    assert r"group\x1b]0;pwned" in "".join(text.found)


def test_svg_escapes_names(hostile, tmp_path):
    path = tmp_path / "inside.svg"

    result = run_on(hostile, ("groups", "inspect", GROUP, "--svg", str(path)))
    texts = ElementTree.parse(path).getroot().itertext()

    assert (0, "") == (result.code, result.err)
    assert set() == unsafe_characters("".join(texts).replace("\xa0", " "))
