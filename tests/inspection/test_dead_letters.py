"""Dead-letter settings on the command line, on the embedded broker and on Kafka 4.4.

Kafka 4.3 does not know them; the last test runs there.
"""

import json
import uuid

import anyio
import pytest

from sharecons.testing import EmbeddedBroker
from tests.cli.run_cli import run_cli
from tests.kafka_plugin import VERSION, Admin, Kafka
from tests.scenarios.queue import Queue, take
from tests.waiting import until_true

NAME = "errors.deadletterqueue.topic.name"
COPY = "errors.deadletterqueue.copy.record.enable"
PREFIX = "errors.deadletterqueue.topic.name.prefix"
CREATE = "errors.deadletterqueue.auto.create.topics.enable"
ENABLE = "errors.deadletterqueue.group.enable"

REAL = pytest.mark.kafka


@pytest.fixture(scope="module")
def later_broker():
    """A broker with the settings of Kafka 4.4."""
    with EmbeddedBroker(settings={PREFIX: "dlq."}) as broker:
        yield Kafka(broker.bootstrap_servers, Admin(broker.bootstrap_servers))


def only_on(version):
    skip = pytest.mark.skipif(VERSION != version, reason=f"is about Kafka {version}")
    return pytest.param("real_kafka", marks=[REAL, skip], id=f"kafka-{version}")


@pytest.fixture(params=["later_broker", only_on("4.4.0")])
def kafka(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(params=["embedded_kafka", only_on("4.3.0")])
def old_kafka(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def group():
    return f"group-{uuid.uuid4().hex[:12]}"


def sharecons(kafka, *arguments):
    return run_cli(*arguments, "--bootstrap-server", kafka.bootstrap_servers)


def configure(kafka, group, *arguments):
    return sharecons(kafka, "groups", "configure", group, *arguments)


def preflight(kafka, group):
    """Return the checks about dead letters: verdict, found and advice by name."""
    result = sharecons(kafka, "preflight", "--group", group, "--json")
    return {
        each["check"]: (each["verdict"], each["found"], each["advice"])
        for each in json.loads(result.out)
        if "dead" in each["check"]
    }


def inspect(kafka, group, *options):
    return sharecons(kafka, "groups", "inspect", group, *options)


def test_configure_sets_and_removes_settings(kafka, group):
    done = configure(kafka, group, "--set", f"{NAME}=dlq.orders,{COPY}=true", "--json")
    listed = configure(kafka, group, "--json")
    undone = configure(kafka, group, "--unset", f"{NAME},{COPY}", "--json")

    assert (0, 0, 0) == (done.code, listed.code, undone.code)
    assert {NAME: "dlq.orders", COPY: "true"} == {
        each["config"]: each["value"] for each in json.loads(done.out)
    }
    assert f"sharecons preflight --group {group}" in done.err
    assert {(NAME, "dlq.orders"), ("share.delivery.count.limit", "5")} <= {
        (each["config"], each["value"]) for each in json.loads(listed.out)
    }
    assert {(NAME, "", True), (COPY, "false", True)} == {
        (each["config"], each["value"], each["is_default"])
        for each in json.loads(undone.out)
    }


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        (
            f"{NAME}=orders.dead",
            f"{NAME} must begin with 'dlq.', the brokers' {PREFIX}",
        ),
        (f"{NAME}=__dlq", "must not begin with '__'"),
        (f"{NAME}=dlq.no topic", "must be the name of a topic"),
        (f"{COPY}=yes", f"{COPY} must be true or false, not 'yes'"),
        ("errors.deadletterqueue.topic=x", f"did you mean '{NAME}'"),
    ],
)
@pytest.mark.slow("a member joins in real time")
def test_invalid_settings_are_not_sent(kafka, group, setting, problem):
    result = configure(kafka, group, "--set", setting)

    assert 2 == result.code
    assert problem in result.err
    assert "" == kafka.admin.group_config(group)[NAME]


def test_preflight_leads_to_working_dead_letters(kafka, group):
    """Follow the advice from check to check, until records become dead letters."""
    name = f"dlq.{group}"
    none = preflight(kafka, group)
    configure(kafka, group, "--set", f"{NAME}={name}")
    missing = preflight(kafka, group)
    kafka.admin.create_topic(1, name)
    disabled = preflight(kafka, group)
    kafka.admin.delete_topic(name)
    kafka.admin.create_topic(1, name, config={ENABLE: "true"})
    ready = preflight(kafka, group)

    what, topic = f"dead letters of {group}", f"dead-letter topic {name}"
    assert {what: ("ok", f"none: {NAME} is not set", None)} == none
    assert ("fail", "ok") == (missing[topic][0], missing[what][0])
    assert f"--create --topic {name} --config {ENABLE}=true" in missing[topic][2]
    assert "fail" == disabled[topic][0]
    assert f"--add-config {ENABLE}=true" in disabled[topic][2]
    assert {
        what: ("ok", f"to topic {name}, without keys and values", None),
        topic: ("ok", f"{ENABLE} is true", None),
        f"rights to {topic}": ("ok", "READ", None),
    } == ready


@pytest.mark.slow("a member joins in real time")
def test_inspect_counts_dead_letters(kafka, group):
    queue = Queue(kafka.admin)
    name = kafka.admin.create_topic(2, f"dlq.{group}", config={ENABLE: "true"})
    kafka.admin.set_group_config(queue.group, {NAME: name})
    queue.produce([b"x"] * 3)

    async def reject():
        async with queue.consumer(acknowledgement="explicit") as consumer:
            for record in await take(aiter(consumer), 3):
                record.reject()
            await consumer.commit(timeout=20)

    anyio.run(reject)
    found = wait_for_count(kafka, queue.group, 3)
    text = inspect(kafka, queue.group)

    assert {"topic": name, "copy_records": False, "count": 3, "error": None} == found
    line = f"dead letters: topic {name}, without keys and values; 3 records"
    assert line in text.out.splitlines()


def wait_for_count(kafka, group, count):
    """Inspect until the brokers have written `count` dead letters."""

    def inspect_if_written():
        found = dead_letters_of(kafka, group)
        return found if found["count"] == count else None

    return until_true(inspect_if_written, what=f"{count} dead letters")


def dead_letters_of(kafka, group):
    (partition,) = json.loads(inspect(kafka, group, "--json").out)
    return partition["dead_letters"]


@pytest.mark.slow("a member joins in real time")
def test_inspect_says_why_dead_letters_are_not_counted(kafka, group):
    queue = Queue(kafka.admin)
    queue.produce([b"x"])

    async def join():
        async with queue.consumer() as consumer:
            await take(aiter(consumer), 1)

    anyio.run(join)
    none = inspect(kafka, queue.group)
    kafka.admin.set_group_config(queue.group, {NAME: "dlq.nowhere"})
    missing = inspect(kafka, queue.group)
    found = dead_letters_of(kafka, queue.group)

    assert f"dead letters: none ({NAME} is not set)" in none.out.splitlines()
    assert (0, None) == (missing.code, found["count"])
    assert "'dlq.nowhere'" in found["error"]
    assert "dlq.nowhere, without keys and values; not readable: " in missing.out


def test_older_brokers_reject_the_settings(old_kafka, group):
    result = configure(old_kafka, group, "--set", f"{NAME}=dlq.x")

    assert 2 == result.code
    assert f"{NAME} is a config of Kafka 4.4, and these brokers are older" in result.err
    assert {
        f"dead letters of {group}": (
            "ok",
            "none: the brokers are older than Kafka 4.4",
            None,
        )
    } == preflight(old_kafka, group)
