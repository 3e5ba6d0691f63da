"""Locks of running and waiting tasks of `ShareGroupBroker`, in virtual time."""

import asyncio

import pytest

pytest.importorskip("taskiq", reason="needs sharecons[taskiq]")


from sharecons.taskiq import KEY_LABEL, held_tasks
from sharecons.testing import EmbeddedBroker, OffsetState, virtual_time
from sharecons.testing.pytest_plugin import SETTINGS
from tests.scenarios.dead_letter_setup import LIMIT_2, archived_offsets
from tests.scenarios.interrupted_network import InterruptedNetwork
from tests.taskiq.running import (
    LOCK_MS,
    Tasks,
    acquired,
    between_ticks,
    in_flight,
    make_broker,
    receiving,
)
from tests.waiting import until

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> virtual_time.Backend:
    """taskiq runs on asyncio only."""
    return virtual_time.backend("asyncio")


async def test_long_tasks_run_once_beside_quick_ones(kafka) -> None:
    broker = make_broker(kafka)
    tasks = Tasks(broker)

    async with receiving(broker):
        await tasks.work.kiq(0, 4 * LOCK_MS / 1000)
        await until(lambda: tasks.calls == [0])
        for number in range(1, 30):
            await tasks.work.kiq(number)
        await until(lambda: len(tasks.ended) == 30)
        await kafka.wait_until_settled("workers")

    assert tasks.ended[-1] == 0
    assert sorted(tasks.calls) == list(range(30))


@pytest.mark.parametrize("max_records", [1, 8])
async def test_records_that_wait_for_the_receiver_are_renewed(
    kafka, max_records
) -> None:
    broker = make_broker(kafka, max_records=max_records)
    tasks = Tasks(broker)
    await broker.startup()
    for number in range(12):
        await tasks.work.kiq(number, 0.6)
    await broker.shutdown()
    counts: list[int] = []

    async with receiving(broker, max_async_tasks=1, max_prefetch=2):
        while len(tasks.ended) < 12:
            await asyncio.sleep(0.05)
            if kafka.group("workers").members:
                counts += [count for _, count in in_flight(kafka)]
        await kafka.wait_until_settled("workers")

    assert sorted(tasks.calls) == list(range(12))
    assert set(counts) <= {0, 1}, "no delivery is used up by waiting"


async def test_tasks_are_acquired_up_to_the_capacity_of_the_receiver(kafka) -> None:
    broker = make_broker(kafka)
    tasks = Tasks(broker)
    await broker.startup()
    for number in range(40):
        await tasks.block.kiq(number)
    await broker.shutdown()

    async with receiving(broker, max_async_tasks=5, max_prefetch=3):
        await until(lambda: len(tasks.calls) == 5)
        await until(lambda: acquired(kafka) == 8)
        await asyncio.sleep(2 * LOCK_MS / 1000)
        assert acquired(kafka) == 8
        tasks.go.set()
        await until(lambda: len(tasks.ended) == 40)


async def test_records_of_several_kafka_brokers_are_renewed_while_they_wait() -> None:
    settings = {**SETTINGS, "group.share.min.record.lock.duration.ms": str(LOCK_MS)}
    async with EmbeddedBroker(brokers=3, settings=settings, listen=False) as kafka:
        kafka.create_topic("tasks", partitions=6)
        lock = {"share.record.lock.duration.ms": str(LOCK_MS)}
        kafka.set_group_config("workers", lock)
        broker = make_broker(kafka)
        tasks = Tasks(broker)
        await broker.startup()
        for number in range(30):
            # A key for each task spreads them over the partitions.
            kicker = tasks.block.kicker().with_labels(**{KEY_LABEL: str(number)})
            await kicker.kiq(number)
        await broker.shutdown()

        async with receiving(broker, max_async_tasks=1):
            await until(lambda: len(tasks.calls) == 1)
            await asyncio.sleep(3 * LOCK_MS / 1000)
            in_flight = [
                each
                for partition in kafka.group("workers").partitions
                for each in partition.in_flight
            ]
            assert len(tasks.calls) == 1
            delivered = [each for each in in_flight if each.delivery_count]
            assert 1 <= len(delivered) <= 3
            assert {each.state for each in delivered} == {OffsetState.ACQUIRED}
            assert {each.delivery_count for each in delivered} == {1}
            tasks.go.set()
            await until(lambda: len(tasks.ended) == 30)
            await kafka.wait_until_settled("workers")

    assert sorted(tasks.calls) == list(range(30))


async def test_batches_are_fetched_up_to_the_capacity_of_the_receiver(kafka) -> None:
    broker = make_broker(kafka)
    tasks = Tasks(broker)
    await broker.startup()
    await asyncio.gather(*(tasks.tick.kiq(number) for number in range(150)))
    await broker.shutdown()
    max_acquired = 0

    async with receiving(broker, max_async_tasks=15, max_prefetch=5):
        while len(tasks.ended) < 150:
            await between_ticks()
            max_acquired = max(max_acquired, acquired(kafka))
        fetches = [each for each in kafka.requests if each.api == "ShareFetch"]

    assert 15 < max_acquired <= 20
    assert len(fetches) < 100


async def test_task_longer_than_max_lock_time_loses_its_lock(kafka, caplog) -> None:
    broker = make_broker(kafka, max_lock_time=1.0)
    tasks = Tasks(broker)

    async with receiving(broker, max_async_tasks=2):
        await tasks.block.kiq(1)
        await until(lambda: tasks.calls == [1, 1])
        assert "task held for max_lock_time: it can run again" in caplog.text
        tasks.go.set()
        await kafka.wait_until_settled("workers")

    assert "task not acknowledged: its lock is lost" in caplog.text


async def test_lock_lost_with_the_connection_makes_ack_a_logged_no_op(
    kafka, caplog
) -> None:
    broker = make_broker(kafka)
    tasks = Tasks(broker)

    async with receiving(broker):
        await tasks.block.kiq(1)
        await until(lambda: tasks.calls == [1])
        kafka.stop_broker(1)
        await until(lambda: "lock lost" in caplog.text)
        kafka.start_broker(1)
        await until(lambda: tasks.calls == [1, 1])
        tasks.go.set()
        await kafka.wait_until_settled("workers")

    assert tasks.ended == [1, 1]
    assert "task not acknowledged: its lock is lost" in caplog.text


async def test_delayed_tasks_with_lost_locks_are_received_again(
    kafka, monkeypatch
) -> None:
    monkeypatch.setattr(held_tasks, "MAX_DELAYED", 2)  # these two are all it takes
    broker = make_broker(kafka)
    tasks = Tasks(broker)

    async with receiving(broker):
        for number in (1, 2):
            await tasks.note.kicker().with_labels(delay=60).kiq(number)
        await until(lambda: acquired(kafka) == 2)
        kafka.stop_broker(1)
        kafka.start_broker(1)
        assert 0 == acquired(kafka)
        await until(lambda: acquired(kafka) == 2, within=5.0)


async def test_last_deliveries_that_end_before_tasks_are_received_are_logged(
    kafka, caplog
) -> None:
    kafka.set_group_config("workers", LIMIT_2)
    network = InterruptedNetwork(kafka.network)
    broker = make_broker(kafka, network=network)
    tasks = Tasks(broker)

    async with receiving(broker):
        await tasks.note.kiq(0)
        await kafka.wait_until_settled("workers")
        network.on_records = lambda: asyncio.sleep(1.3 * LOCK_MS / 1000)
        for number in range(1, 4):
            await tasks.note.kiq(number)
        await kafka.wait_until_settled("workers")

    assert [0] == tasks.calls
    assert [1, 2, 3] == archived_offsets(caplog.text)


async def test_last_deliveries_of_running_tasks_whose_locks_are_lost_are_logged(
    kafka, caplog
) -> None:
    kafka.set_group_config("workers", LIMIT_2)
    network = InterruptedNetwork(kafka.network)
    broker = make_broker(kafka, network=network)
    tasks = Tasks(broker)

    async with receiving(broker):
        for number in range(3):
            await tasks.block.kiq(number)
        for delivery in (1, 2):
            # Redelivered, they wait for the tasks that have lost their locks.
            called = 3 * delivery
            await until(lambda: len(tasks.calls) == called, 60.0)  # noqa: B023
            await network.cut()
        await kafka.wait_until_settled("workers")
        tasks.go.set()

    assert [0, 1, 2] == archived_offsets(caplog.text)
