"""Records that are written to the topic of a new group before anybody reads it.

The group starts at the end, which is Kafka's default.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import pytest
from anyio import to_thread

from sharecons import Record, ShareConsumer, ShareWorker
from tests.kafka_plugin import Admin, Kafka
from tests.scenarios.queue import take
from tests.scenarios.raw import RawMember, delivery_counts, offsets
from tests.scenarios.versions import HAS_VERSION_2, since_4_2
from tests.waiting import until

pytestmark = pytest.mark.anyio


def consumer_of(admin: Admin, topic: str, **options: Any) -> ShareConsumer[Any, Any]:
    return ShareConsumer(
        topic,
        group_id=f"group-{topic}",
        bootstrap_servers=admin.bootstrap_servers,
        **{"auto_offset_reset": "latest", **options},
    )


@asynccontextmanager
async def latest_worker(
    admin: Admin, *topics: str
) -> AsyncIterator[tuple[ShareWorker[Any, Any], list[Any]]]:
    """Run a worker of a new group that starts at the end; yield what it handles."""
    handled: list[Any] = []

    async def handle(record: Record[Any, Any]) -> None:
        handled.append(record.value)

    worker: ShareWorker[Any, Any] = ShareWorker(
        topics,
        handle,
        group_id=f"group-{topics[0]}",
        bootstrap_servers=admin.bootstrap_servers,
        auto_offset_reset="latest",
        max_wait=0.2,
        handle_signals=False,
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.run)
        with anyio.fail_after(20):
            await worker.assigned()
        yield worker, handled
        worker.stop()


def values(records: list[Record[Any, Any]]) -> set[Any]:
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
    async with latest_worker(admin, topic) as (_, handled):
        admin.produce(topic, [b"a"])
        await until(lambda: handled == [b"a"])


SIX: Final = [b"%d" % number for number in range(6)]


@pytest.mark.parametrize("others", [0, 1])
async def test_records_written_in_a_pause_are_received(
    admin: Admin, others: int
) -> None:
    """A pause of all topics of a leader, and of one of two.

    The start in a topic that is subscribed later is not stored.
    """
    paused, first = admin.create_topic(), admin.create_topic()
    async with consumer_of(admin, first, max_wait=0.2) as consumer:
        await consumer.assigned()
        consumer.subscribe(paused, *[first][:others])
        await until(lambda: paused in {each.topic for each in consumer.assignment})
        await consumer.assigned()
        consumer.pause(paused)
        # real time: the fetches that follow the pause
        assert [] == await consumer.poll(timeout=0.5)
        admin.produce(paused, SIX)
        consumer.resume(paused)
        received = await take(aiter(consumer), 6)

    assert values(received) == {*SIX}


async def test_worker_processes_records_written_in_a_pause(admin: Admin) -> None:
    paused, other = admin.create_topic(), admin.create_topic()
    async with latest_worker(admin, paused, other) as (worker, handled):
        worker.pause(paused)
        admin.produce(other, [b"other"])
        await until(lambda: handled == [b"other"])
        admin.produce(paused, SIX)
        worker.resume(paused)
        await until(lambda: sorted(handled) == [*SIX, b"other"])


@since_4_2
async def test_records_written_after_a_stop_are_received_after_a_restart(
    admin: Admin,
) -> None:
    """The first member of a new group stores the start."""
    topic = admin.create_topic(partitions=2)
    admin.produce(topic, [b"before"], partition=1)
    async with consumer_of(admin, topic) as consumer:
        await consumer.assigned()
    for partition in range(2):
        admin.produce(topic, SIX[partition * 3 :][:3], partition=partition)
    async with consumer_of(admin, topic) as consumer:
        received = await take(aiter(consumer), 6)

    assert values(received) == {*SIX}


async def test_second_member_of_a_group_moves_no_start(admin: Admin) -> None:
    topic = admin.create_topic()
    async with consumer_of(admin, topic) as consumer:
        await consumer.assigned()
        admin.produce(topic, SIX)
        async with consumer_of(admin, topic):
            received = await take(aiter(consumer), 6)

    assert values(received) == {*SIX}


async def test_group_that_starts_at_the_beginning_has_no_stored_start(
    admin: Admin,
) -> None:
    topic = admin.create_topic()
    admin.produce(topic, SIX)
    async with consumer_of(admin, topic, auto_offset_reset="earliest") as consumer:
        received = await take(aiter(consumer), 6)

    assert values(received) == {*SIX}


@since_4_2
async def test_records_written_during_a_leader_move_are_received(
    kafka3: Kafka,
) -> None:
    admin = kafka3.admin
    topic = admin.create_topic(replication=3)
    async with consumer_of(admin, topic) as consumer:
        await consumer.assigned()
        leader = admin.leader(topic)
        await to_thread.run_sync(kafka3.cluster.kill, leader)
        await until(lambda: admin.leader(topic) not in (leader, -1), within=30)
        admin.produce(topic, SIX)
        received = await take(aiter(consumer), 6)

    assert values(received) == {*SIX}


async def test_fetch_without_bytes_does_not_fix_the_start(kafka: Kafka) -> None:
    """A fetch with a negative record limit does, and acquires nothing.

    On Kafka 4.1 each fetch does.
    """
    admin = kafka.admin
    without_bytes = [] if HAS_VERSION_2 else [0]
    for options, expected in (
        ({"max_bytes": 0}, without_bytes),
        ({"records": 0}, without_bytes),
        ({"records": -1}, [0]),
    ):
        topic = admin.create_topic()
        async with RawMember(admin.bootstrap_servers, f"group-{topic}") as member:
            (partition,) = await member.join(topic)
            first = await member.fetch_one(partition, wait=0.2, **options)
            # real time: the broker loads the partition's state
            await anyio.sleep(0.1)
            admin.produce(topic, [b"a"])
            later = await member.fetch_one(partition, wait=5.0 if expected else 1.0)

        assert not offsets(first)
        assert offsets(later) == expected
