"""A real broker's process is paused while handlers of a worker run."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import pytest

from sharecons import Record
from sharecons.testing.kafka import KafkaCluster
from tests.kafka_plugin import VERSION, Admin
from tests.scenarios.handled import Handled
from tests.scenarios.queue import Queue
from tests.scenarios.versions import since_4_2
from tests.waiting import until

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.kafka,
    pytest.mark.slow("a paused broker, until the locks have ended"),
    pytest.mark.timeout(180),
    since_4_2,
]

LOCK = 6.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    """A broker that no other tests use."""
    with KafkaCluster(VERSION) as cluster:
        yield cluster


@contextmanager
def paused(cluster: KafkaCluster) -> Iterator[None]:
    (node_id,) = cluster.brokers
    cluster.pause(node_id)
    try:
        yield
    finally:
        cluster.resume(node_id)


async def test_handlers_are_cancelled_before_their_locks_end(
    cluster: KafkaCluster,
) -> None:
    admin = Admin(cluster.bootstrap_servers)
    lock = {"share.record.lock.duration.ms": str(round(LOCK * 1000))}
    queue = Queue(admin, **lock)
    queue.produce([b"0", b"1"])

    async def hang_at_first(record: Record[Any, Any]) -> None:
        if len(handled.deliveries[record.offset]) == 1:
            await anyio.sleep_forever()

    handled = Handled(hang_at_first)
    worker = queue.worker(
        handled, on_acknowledged=handled.on_acknowledged, concurrency=2
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.run)
        await until(lambda: len(handled.deliveries) == 2, within=20)
        await anyio.sleep(1.5 * LOCK)  # real time: the locks are renewed
        assert [] == handled.cancelled
        paused_at = anyio.current_time()
        with paused(cluster):
            await until(lambda: len(handled.cancelled) == 2, within=30)
            await anyio.sleep(LOCK)  # real time: a wrong accept would come late
            assert {} == handled.accepted
        await until(lambda: len(handled.accepted) == 2, within=60)
        worker.stop()

    # The last renewal that was confirmed was sent before the pause.
    assert all(0 < at - paused_at < LOCK + 0.5 for at in handled.cancelled)
    assert handled.accepted_after_ends
    # A fenced broker loses the delivery count, which is stored only with
    # acknowledgements: the second delivery can have the count 1 again. Until it is
    # unfenced it rejects accepts (UNKNOWN_TOPIC_OR_PARTITION), and delivers the record
    # once more.
    for offset, counts in handled.deliveries.items():
        assert 2 + handled.rejected[offset] == len(counts)
    rejected = handled.rejected.total()
    assert 2 + rejected == worker.stats.accepted
