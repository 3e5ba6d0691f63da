"""A real broker's process is stopped while handlers of a worker run."""

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest

from sharecons import Record, ShareWorker
from sharecons.testing.kafka import KafkaCluster
from tests.kafka_plugin import VERSION, Admin
from tests.scenarios.handled import Handled
from tests.scenarios.queue import Queue
from tests.scenarios.versions import since_4_2

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.kafka,
    pytest.mark.slow,
    pytest.mark.timeout(180),
    since_4_2,
]

LOCK = 6.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    """A broker that no other tests use."""
    with KafkaCluster(VERSION) as cluster:
        yield cluster


class Stopped:
    """SIGSTOP for the process of a broker, and SIGCONT at the end of the block."""

    def __init__(self, cluster: KafkaCluster) -> None:
        process = cluster._nodes[1]._process
        assert process is not None
        self._pid = process.pid

    def __enter__(self) -> None:
        os.kill(self._pid, signal.SIGSTOP)

    def __exit__(self, *error: object) -> None:
        os.kill(self._pid, signal.SIGCONT)


async def until(condition: Callable[[], bool], within: float) -> None:
    with anyio.fail_after(within):
        while not condition():
            await anyio.sleep(0.02)


async def test_handlers_are_cancelled_before_their_locks_end(
    cluster: KafkaCluster,
) -> None:
    admin = Admin(cluster.bootstrap_servers)
    lock = {"share.record.lock.duration.ms": str(round(LOCK * 1000))}
    queue = Queue(admin, **lock)
    queue.produce([b"0", b"1"])

    async def hang_at_first(record: Record[Any, Any]) -> None:
        if len(handled.deliveries[record.offset]) == 1:
            await anyio.sleep(3600)

    handled = Handled(hang_at_first)
    consumer = queue.consumer(on_acknowledged=handled.on_acknowledged)
    worker = ShareWorker(consumer, handled, concurrency=2)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.run)
        await until(lambda: len(handled.deliveries) == 2, within=20)
        await anyio.sleep(1.5 * LOCK)  # the locks are renewed
        assert [] == handled.cancelled
        stopped_at = anyio.current_time()
        with Stopped(cluster):
            await until(lambda: len(handled.cancelled) == 2, within=30)
            await anyio.sleep(LOCK)
            assert {} == handled.accepted
        await until(lambda: len(handled.accepted) == 2, within=60)
        worker.stop()

    # The last renewal that was confirmed was sent before the stop.
    assert all(0 < at - stopped_at < LOCK + 0.5 for at in handled.cancelled)
    assert handled.accepted_after_ends
    # A broker that was fenced meanwhile has lost the count, which is stored with
    # acknowledgements only: the second delivery may have the number 1 again.
    assert [2, 2] == [len(counts) for counts in handled.deliveries.values()]
    assert 2 == worker.stats.accepted
