"""Records that are written to the topic of a new group before anybody reads it.

The group starts at the end, which is Kafka's default.
"""

from typing import Any

import anyio
import pytest

from sharecons import Record, ShareConsumer, ShareWorker
from tests.kafka_plugin import Admin, Kafka
from tests.scenarios.queue import take
from tests.scenarios.raw import RawMember, delivery_counts, offsets
from tests.waiting import until

pytestmark = pytest.mark.anyio


def consumer_of(admin: Admin, topic: str, **options: Any) -> ShareConsumer[Any, Any]:
    return ShareConsumer(
        topic,
        group_id=f"group-{topic}",
        bootstrap_servers=admin.bootstrap_servers,
        **{"auto_offset_reset": "latest", **options},
    )


def values(records: list[Record[Any, Any]]) -> set[bytes]:
    return {record.value for record in records}


@pytest.mark.parametrize("partitions", [1, 40])
async def test_records_written_after_the_assignment_are_received(
    admin: Admin, partitions: int
) -> None:
    topic = admin.create_topic(partitions=partitions)
    admin.produce(topic, [b"before"], partition=0)
    async with consumer_of(admin, topic) as consumer:
        with anyio.fail_after(20):
            assigned = await consumer.assigned()
        written = {b"%d" % number for number in range(partitions)}
        for number in range(partitions):
            admin.produce(topic, [b"%d" % number], partition=number)
        received = await take(aiter(consumer), partitions)

    assert len(assigned) == partitions
    assert values(received) == written


async def test_records_written_before_the_first_read_are_received(
    admin: Admin,
) -> None:
    topic = admin.create_topic()
    async with consumer_of(admin, topic) as consumer:
        await until(lambda: consumer.assignment)
        # real time: a fetch that no call of the application waits for
        await anyio.sleep(0.5)
        admin.produce(topic, [b"0", b"1", b"2"])
        received = await take(aiter(consumer), 3)

    assert values(received) == {b"0", b"1", b"2"}


async def test_records_written_after_a_later_assignment_are_received(
    admin: Admin,
) -> None:
    first, later = admin.create_topic(), admin.create_topic()
    async with consumer_of(admin, first) as consumer:
        await consumer.assigned()
        consumer.subscribe(later)
        with anyio.fail_after(20):
            assigned = await consumer.assigned()
        admin.produce(later, [b"a"])
        received = await take(aiter(consumer), 1)

    assert {each.topic for each in assigned} == {later}
    assert values(received) == {b"a"}


async def test_idle_consumer_acquires_no_record(admin: Admin) -> None:
    topic = admin.create_topic()
    admin.produce(topic, [b"a", b"b"])
    async with consumer_of(admin, topic, auto_offset_reset="earliest") as idle:
        await idle.assigned()
        admin.produce(topic, [b"c"])
        async with RawMember(admin.bootstrap_servers, idle.group_id) as other:
            (partition,) = await other.join(topic)
            fetched = await other.fetch_one(partition)

        assert delivery_counts(fetched) == {0: 1, 1: 1, 2: 1}


async def test_worker_processes_records_written_after_its_assignment(
    admin: Admin,
) -> None:
    topic = admin.create_topic()
    handled: list[bytes] = []

    async def handle(record: Record[Any, Any]) -> None:
        handled.append(record.value)

    worker: ShareWorker[Any, Any] = ShareWorker(
        topic,
        handle,
        group_id=f"group-{topic}",
        bootstrap_servers=admin.bootstrap_servers,
        auto_offset_reset="latest",
        handle_signals=False,
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.run)
        with anyio.fail_after(20):
            await worker.assigned()
        admin.produce(topic, [b"a"])
        await until(lambda: handled == [b"a"])
        worker.stop()


async def test_fetch_without_bytes_does_not_fix_the_start(kafka: Kafka) -> None:
    """A fetch with a negative record limit does, and acquires nothing."""
    admin = kafka.admin
    for options, expected in (
        ({"max_bytes": 0}, []),
        ({"records": 0}, []),
        ({"records": -1}, [0]),
    ):
        topic = admin.create_topic()
        async with RawMember(admin.bootstrap_servers, f"group-{topic}") as member:
            (partition,) = await member.join(topic)
            first = await member.fetch_one(partition, wait=0.2, **options)
            # real time: the broker loads the partition's state
            await anyio.sleep(0.1)
            admin.produce(topic, [b"a"])
            later = await member.fetch_one(partition)

        assert not offsets(first)
        assert offsets(later) == expected
