"""Findings about topics that do not exist, from members' subscriptions."""

import json
import uuid
from contextlib import suppress

import anyio
import pytest

from sharecons._record import TopicPartition
from sharecons.cli import main
from sharecons.errors import BrokerError
from sharecons.inspection import Reason, Severity, inspect_group
from sharecons.inspection.picture_files import html_page
from tests.scenarios.queue import Queue

pytestmark = pytest.mark.anyio


@pytest.fixture
def queue(kafka):
    return Queue(kafka.admin)


@pytest.fixture
def missing():
    return f"missing-{uuid.uuid4().hex[:8]}"


async def subscribed(admin, group, count):
    """Wait until the coordinator has the members and their assignments."""
    with anyio.fail_after(20):
        while True:
            members = ()
            with suppress(BrokerError):  # the group does not exist yet
                members = (await admin.describe_group(group)).members
            if len(members) == count and all(
                len(member.subscription) == 2 for member in members
            ):
                return
            await anyio.sleep(0.1)  # real time: the coordinator has no event


async def test_missing_topics_of_members_are_findings(kafka, admin, queue, missing):
    async with queue.consumer() as one, queue.consumer() as other:
        for consumer in (one, other):
            consumer.subscribe(queue.topic, missing)
        await subscribed(admin, queue.group, 2)
        found = await inspect_group(admin, queue.group)
        of_topic = await inspect_group(admin, queue.group, topics=[queue.topic])
        key = TopicPartition(queue.topic, 0)
        of_partition = await inspect_group(admin, queue.group, partitions=[key])
        html = html_page(found)
        kafka.admin.create_topic(name=missing)
        later = await inspect_group(admin, queue.group)

    (topic,) = found.missing_topics
    finding = found.missing_topics[topic]
    assert topic == missing
    assert (finding.reason, finding.severity) == (
        Reason.MISSING_TOPIC,
        Severity.STALLED,
    )
    assert finding.text.startswith("the topic does not exist, and 2 members subscribe")
    assert not of_topic.missing_topics
    assert not of_partition.missing_topics
    assert missing in html
    assert " ".join(finding.text.split()[:8]) in html
    assert not later.missing_topics


async def test_deleted_topic_of_members_is_a_finding(kafka, admin, queue):
    other = kafka.admin.create_topic()
    async with queue.consumer() as consumer:
        consumer.subscribe(queue.topic, other)
        await subscribed(admin, queue.group, 1)
        kafka.admin.delete_topic(other)
        with anyio.fail_after(20):
            while other not in (await inspect_group(admin, queue.group)).missing_topics:
                await anyio.sleep(0.1)  # real time: brokers learn of it one by one


async def inspect_on_command_line(kafka, *options):
    servers = ("--bootstrap-server", kafka.bootstrap_servers)
    arguments = ["groups", "inspect", *options, *servers]
    return await anyio.to_thread.run_sync(main, arguments)


async def test_check_exits_with_1_if_a_subscribed_topic_is_missing(
    kafka, admin, queue, missing, capsys
):
    queue.produce([b"x"])
    async with queue.consumer() as consumer:
        consumer.subscribe(queue.topic, missing)
        await subscribed(admin, queue.group, 1)
        code = await inspect_on_command_line(kafka, queue.group, "--check")
        text = capsys.readouterr().out
        filtered = await inspect_on_command_line(
            kafka, queue.group, "--check", "--topic", queue.topic
        )
        capsys.readouterr()
        without_check = await inspect_on_command_line(kafka, queue.group, "--json")
        rows = json.loads(capsys.readouterr().out)

    assert (code, filtered, without_check) == (1, 0, 0)
    assert f"topic {missing}: STALLED: the topic does not exist" in text
    (row,) = (each for each in rows if each["topic"] == missing)
    assert row["partition"] is None
    assert row["findings"][0]["reason"] == "missing_topic"
    assert row["findings"][0]["severity"] == "stalled"


async def test_group_with_missing_topics_only_has_a_finding(
    kafka, admin, queue, missing, capsys
):
    async with queue.consumer() as consumer:
        consumer.subscribe(missing, f"{missing}-2")
        await subscribed(admin, queue.group, 1)
        code = await inspect_on_command_line(kafka, queue.group, "--check")
    text = capsys.readouterr().out

    assert code == 1
    assert f"topic {missing}: STALLED: the topic does not exist, and 1 member" in text
    assert f"topic {missing}-2: STALLED" in text
