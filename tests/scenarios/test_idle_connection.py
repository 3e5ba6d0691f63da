"""Connections that end while no request is in flight."""

from typing import Any

import anyio
import pytest

from sharecons import Record, ShareConsumer
from sharecons.errors import LockLostError
from tests.kafka_plugin import Kafka
from tests.scenarios.queue import Queue, take
from tests.scenarios.versions import since_4_2
from tests.scenarios.watched import WatchedNetwork
from tests.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.both_loops]


@pytest.fixture
def queue3(kafka3: Kafka) -> Queue:
    """A replicated topic with 100 records."""
    queue = Queue(kafka3.admin, replication=3)
    queue.produce([b"%d" % number for number in range(100)])
    return queue


@since_4_2
async def test_locks_of_killed_broker_are_lost_without_request_in_flight(
    kafka3: Kafka, queue3: Queue
) -> None:
    network = WatchedNetwork()
    async with explicit_consumer(queue3, network) as consumer:
        records = aiter(consumer)
        held = await take(records, 30)
        await until(lambda: network.in_flight == 0)
        assert all(record.held for record in held)

        leader = queue3.admin.leader(queue3.topic, 0)
        await anyio.to_thread.run_sync(kafka3.cluster.kill, leader)
        await until(lambda: not held[0].held, within=2)

        assert {record.lock_deadline for record in held} == {float("-inf")}
        assert {record.lock_remaining for record in held} == {0.0}
        for record in held:
            for verb in (record.renew, record.accept, record.release, record.reject):
                with pytest.raises(LockLostError, match="delivered again"):
                    verb()
        again = await accept_all(records, 100)

    assert {record.offset for record in again} == set(range(100))


async def test_implicit_acceptance_at_killed_broker_fails_without_raising(
    kafka3: Kafka, queue3: Queue
) -> None:
    network, results = WatchedNetwork(), []
    consumer = queue3.consumer(
        network=network, on_acknowledged=results.extend, max_records=10
    )
    async with consumer:
        records = aiter(consumer)
        await take(records, 5)
        await until(lambda: network.in_flight == 0)
        lost = await take(records, 1)
        await until(lambda: network.in_flight == 0)

        leader = queue3.admin.leader(queue3.topic, 0)
        await anyio.to_thread.run_sync(kafka3.cluster.kill, leader)
        await until(lambda: not lost[0].held, within=2)
        (after,) = await take(records, 1)

    offset = lost[0].offset
    failed = [r for r in results if r.first_offset <= offset <= r.last_offset]
    assert after.held is False  # the consumer is closed
    assert failed
    assert failed[0].error is not None


def explicit_consumer(queue: Queue, network: WatchedNetwork) -> ShareConsumer[Any, Any]:
    return queue.consumer(acknowledgement="explicit", network=network)


async def accept_all(records: Any, count: int) -> list[Record[Any, Any]]:
    """Take and accept records; check that each is locked when delivered."""
    taken = []
    with anyio.fail_after(40):
        while len(taken) < count:
            record = await anext(records)
            assert record.held
            assert record.lock_deadline > anyio.current_time()
            record.accept()
            taken.append(record)
    return taken
