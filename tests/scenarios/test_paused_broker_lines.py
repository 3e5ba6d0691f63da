"""The log lines of a consumer whose real broker is paused."""

import logging
import re
from collections.abc import Iterator

import anyio
import pytest

from sharecons.testing.kafka import KafkaCluster
from tests.kafka_plugin import VERSION, Admin
from tests.scenarios.queue import Queue
from tests.waiting import until

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.kafka,
    pytest.mark.slow("a paused broker"),
    pytest.mark.timeout(180),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    """A broker that no other tests use."""
    with KafkaCluster(VERSION) as cluster:
        yield cluster


async def test_paused_broker_is_logged_within_seconds_and_when_it_is_back(
    cluster: KafkaCluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "sharecons")
    queue = Queue(Admin(cluster.bootstrap_servers))
    queue.produce([b"0"])
    (node_id,) = cluster.brokers

    def lines() -> list[str]:
        found = [f"{r.levelname} {r.getMessage()}" for r in caplog.records]
        return [line for line in found if "broker=" in line]

    values: set[bytes] = set()

    async def read() -> None:
        async for record in consumer:
            values.add(record.value)

    async with queue.consumer() as consumer, anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await until(lambda: b"0" in values)
        cluster.pause(node_id)
        try:
            paused_at = anyio.current_time()
            await until(lines, within=10)
            assert anyio.current_time() - paused_at < 6
            # real time: another line would be logged
            await anyio.sleep(6)
            (line,) = lines()
            assert line.startswith("WARNING unreachable, retrying")
            assert "no response for" in line
        finally:
            cluster.resume(node_id)
        await until(lambda: len(lines()) == 2, within=20)
        queue.produce([b"1"])
        await until(lambda: b"1" in values, within=30)
        _, line = lines()
        tasks.cancel_scope.cancel()

    assert line.startswith("INFO reachable again")
    seconds = re.search(r"seconds=([\d.]+)", line)
    assert seconds is not None
    assert 6 < float(seconds[1]) < 30
