"""The log lines of a consumer, a producer and an admin client without any broker."""

import logging
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import anyio
import pytest

from sharecons.admin import ShareGroupAdmin
from sharecons.errors import Error
from sharecons.testing import EmbeddedBroker
from sharecons.testing.kafka import KafkaCluster
from tests.kafka_plugin import FAST_ASSIGNMENT, VERSION, Admin, EmbeddedCluster
from tests.producer.running import producing
from tests.scenarios.embedded_admin import ON_BOTH, AnyAdmin, EmbeddedAdmin
from tests.scenarios.queue import Queue
from tests.waiting import until

pytestmark = [
    pytest.mark.anyio,
    ON_BOTH,
    pytest.mark.slow("real brokers are down for some seconds, and start again"),
    pytest.mark.timeout(240),
]

OUTAGE = 30.0
REAL_OUTAGE = 8.0
"""Seconds; longer than LOST_DELAY, after which a lost connection is logged."""


class Cluster:
    """Three brokers that no other tests use."""

    def __init__(self, brokers: KafkaCluster | EmbeddedCluster) -> None:
        self.brokers = brokers.brokers
        self._cluster = brokers
        self.admin: AnyAdmin
        if isinstance(brokers, KafkaCluster):
            self.outage = REAL_OUTAGE
            self.admin = Admin(brokers.bootstrap_servers)
        else:
            self.outage = OUTAGE
            self.admin = EmbeddedAdmin(brokers.broker)

    async def stop(self) -> None:
        for node_id in self.brokers:
            await self._call(self._cluster.kill, node_id)

    async def start(self) -> None:
        await self._call(self._cluster.start_broker, *self.brokers)

    async def _call(self, call: Callable[..., None], *node_ids: int) -> None:
        if isinstance(self._cluster, KafkaCluster):
            await anyio.to_thread.run_sync(call, *node_ids)
        else:  # a virtual clock waits for no thread
            call(*node_ids)


@pytest.fixture
async def cluster(anyio_backend: Any) -> AsyncIterator[Cluster]:
    if isinstance(anyio_backend, str):
        with KafkaCluster(VERSION, brokers=3) as brokers:
            yield Cluster(brokers)
    else:
        async with EmbeddedBroker(
            brokers=3, settings=FAST_ASSIGNMENT, listen=False
        ) as broker:
            yield Cluster(EmbeddedCluster(broker))


async def repeat(call: Callable[[], Awaitable[object]]) -> None:
    while True:
        with suppress(Error):
            await call()
        await anyio.sleep(0.1)  # real time: the brokers' outage is real


async def test_each_broker_has_one_line_at_the_begin_and_one_at_the_end_of_an_outage(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    servers, network = cluster.admin.bootstrap_servers, cluster.admin.network
    queue = Queue(cluster.admin, partitions=6, replication=3)
    queue.produce([b"0"] * 10)
    received = 0

    async def read() -> None:
        nonlocal received
        async for _ in consumer:
            received += 1

    async with (
        ShareGroupAdmin(bootstrap_servers=servers, network=network, timeout=5) as admin,
        producing(servers, network=network) as producer,
        queue.consumer() as consumer,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(read)
        tasks.start_soon(repeat, lambda: producer.send(queue.topic, b"1"))
        tasks.start_soon(repeat, lambda: admin.describe_group(queue.group))
        await until(lambda: received > 20)
        caplog.set_level(logging.INFO, "sharecons")
        caplog.clear()
        await cluster.stop()
        await anyio.sleep(cluster.outage)  # real time: the brokers' outage is real
        during = messages(caplog)
        caplog.clear()
        await cluster.start()
        before = received
        await until(lambda: received > before, within=60)
        await until(lambda: consumer.connected, within=60)
        # Later than records: each kind of request that failed must succeed.
        await until(lambda: any("broker=" in line for line in messages(caplog)), 60)
        after = messages(caplog)
        tasks.cancel_scope.cancel()

    begins = [line for line in during if line.startswith("WARNING unreachable")]
    assert sorted(map(broker_of, begins)) == sorted(cluster.brokers.values())
    # Each leader has one line about locks, and one about acknowledgements.
    lost = [line for line in during if line.startswith("WARNING locks lost")]
    failed = [line for line in during if line.startswith("WARNING acknowledgements")]
    assert max(len(lost), len(failed)) <= len(cluster.brokers)
    assert len(begins) + len(lost) + len(failed) == len(during)
    ends = Counter(broker_of(line) for line in after if "broker=" in line)
    assert max(ends.values()) == 1
    others = [line for line in after if "broker=" not in line]
    assert all(line.startswith("INFO assigned") for line in others), others
    assert len(others) <= 3


def broker_of(line: str) -> str:
    match = re.search(r"broker=(\S+)", line)
    assert match is not None, line
    return match[1]


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the lines of the client, not of the brokers that this process runs."""
    return [
        f"{each.levelname} {each.getMessage()}"
        for each in caplog.records
        if not each.name.startswith("sharecons.testing")
    ]
