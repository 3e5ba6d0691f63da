"""Topics that do not exist yet, or are deleted while they are consumed."""

import logging

import anyio
import pytest

from sharecons import ShareConsumer
from tests.scenarios.embedded_admin import ON_BOTH, AnyAdmin
from tests.scenarios.queue import Queue, take
from tests.waiting import until

pytestmark = [pytest.mark.anyio, ON_BOTH]


@pytest.fixture
def admin(any_admin: AnyAdmin) -> AnyAdmin:
    return any_admin


async def test_consumer_waits_for_missing_topic(
    admin: AnyAdmin, caplog: pytest.LogCaptureFixture
) -> None:
    missing = f"later-{admin.create_topic(partitions=1)}"
    group = f"group-{missing}"
    admin.set_group_config(group, {"share.auto.offset.reset": "earliest"})
    consumer: ShareConsumer = ShareConsumer(
        missing,
        group_id=group,
        bootstrap_servers=admin.bootstrap_servers,
        network=admin.network,
    )
    with caplog.at_level(logging.WARNING, logger="sharecons"):
        async with consumer:
            assert await take(aiter(consumer), 1, within=3) == []
            assert consumer.missing_topics == {missing}
            admin.create_topic(partitions=1, name=missing)
            admin.produce(missing, [b"x"])
            records = await take(aiter(consumer), 1, within=15)

            assert consumer.missing_topics == frozenset()

    assert [record.value for record in records] == [b"x"]
    warnings = [r for r in caplog.records if "waiting for topic" in r.getMessage()]
    assert len(warnings) == 1


async def test_commit_after_topic_deletion_returns_error(admin: AnyAdmin) -> None:
    queue = Queue(admin)
    queue.produce([b"x"])
    async with queue.consumer(acknowledgement="explicit") as consumer:
        (record,) = await take(aiter(consumer), 1)
        admin.delete_topic(queue.topic)
        # real time: the leader removes the partition after its metadata
        await anyio.sleep(0.5)
        record.accept()
        results = await consumer.commit(timeout=20)

    assert [r.error is not None for r in results] == [True]


async def test_deleted_topic_is_missing_until_it_is_created_again(
    admin: AnyAdmin,
) -> None:
    queue = Queue(admin, **{"share.heartbeat.interval.ms": "500"})
    other = admin.create_topic(partitions=1)
    consumer = queue.consumer()
    assert consumer.missing_topics == frozenset()
    async with consumer:
        consumer.subscribe(queue.topic, other)
        await until(lambda: len(consumer.assignment) == 2)
        assert consumer.missing_topics == frozenset()
        admin.delete_topic(queue.topic)
        await until(lambda: consumer.missing_topics == {queue.topic})
        await until(lambda: {key.topic for key in consumer.assignment} == {other})
        admin.create_topic(partitions=1, name=queue.topic)
        await until(lambda: len(consumer.assignment) == 2)
        assert consumer.missing_topics == frozenset()
        admin.delete_topic(queue.topic)
        await until(lambda: consumer.missing_topics)
        consumer.subscribe(other)
        assert consumer.missing_topics == frozenset()


@pytest.mark.parametrize(("before", "after"), [(1, 1), (1, 3), (3, 1)])
async def test_recreated_topic_is_consumed_from_start(
    admin: AnyAdmin, before: int, after: int
) -> None:
    queue = Queue(admin, before, **{"share.heartbeat.interval.ms": "500"})
    queue.produce([b"old"], partition=0)
    async with queue.consumer() as consumer:
        (old,) = await take(aiter(consumer), 1)
        old.accept()
        await consumer.commit()
        admin.delete_topic(queue.topic)
        await until(lambda: not consumer.assignment)
        admin.create_topic(partitions=after, name=queue.topic)
        for partition in range(after):
            queue.produce([b"new"], partition=partition)
        new = await take(aiter(consumer), after, within=20)

    assert [(r.value, r.delivery_count) for r in new] == [(b"new", 1)] * after
    assert {record.partition for record in new} == set(range(after))
