"""The log lines of a consumer, a producer and an admin client without any broker."""

import logging
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress

import anyio
import pytest

from sharecons.admin import ShareGroupAdmin
from sharecons.errors import Error
from sharecons.testing import EmbeddedBroker
from sharecons.testing.kafka import KafkaCluster
from tests.kafka_plugin import FAST_ASSIGNMENT, HALVES, VERSION, Admin, EmbeddedCluster
from tests.producer.running import producing
from tests.scenarios.queue import Queue
from tests.waiting import until

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow("brokers are down for 30 s"),
    pytest.mark.timeout(240),
]

OUTAGE = 30.0


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=HALVES)
def cluster(request: pytest.FixtureRequest) -> Iterator[KafkaCluster | EmbeddedCluster]:
    """Three brokers that no other tests use."""
    if request.param == "kafka":
        with KafkaCluster(VERSION, brokers=3) as cluster:
            yield cluster
    else:
        with EmbeddedBroker(brokers=3, settings=FAST_ASSIGNMENT) as broker:
            yield EmbeddedCluster(broker)


async def repeat(call: Callable[[], Awaitable[object]]) -> None:
    while True:
        with suppress(Error):
            await call()
        await anyio.sleep(0.1)  # real time: the brokers' outage is real


async def test_each_broker_has_one_line_at_the_begin_and_one_at_the_end_of_an_outage(
    cluster: KafkaCluster | EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    servers = cluster.bootstrap_servers
    queue = Queue(Admin(servers), partitions=6, replication=3)
    queue.produce([b"0"] * 10)
    received = 0

    async def read() -> None:
        nonlocal received
        async for _ in consumer:
            received += 1

    async with (
        ShareGroupAdmin(bootstrap_servers=servers, timeout=5) as admin,
        producing(servers) as producer,
        queue.consumer() as consumer,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(read)
        tasks.start_soon(repeat, lambda: producer.send(queue.topic, b"1"))
        tasks.start_soon(repeat, lambda: admin.describe_group(queue.group))
        await until(lambda: received > 20)
        caplog.set_level(logging.INFO, "sharecons")
        caplog.clear()
        await anyio.to_thread.run_sync(stop_all, cluster)
        await anyio.sleep(OUTAGE)  # real time: the brokers' outage is real
        during = messages(caplog)
        caplog.clear()
        await anyio.to_thread.run_sync(cluster.start_broker, *cluster.brokers)
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


def stop_all(cluster: KafkaCluster | EmbeddedCluster) -> None:
    for node_id in cluster.brokers:
        cluster.kill(node_id)


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the lines of the client, not of the brokers that this process runs."""
    return [
        f"{each.levelname} {each.getMessage()}"
        for each in caplog.records
        if not each.name.startswith("sharecons.testing")
    ]
