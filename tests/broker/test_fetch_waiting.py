"""The wait of a fetch, and the changes that end it; on a virtual clock."""

from datetime import timedelta

import anyio
import pytest

from sharecons.testing.broker.cluster import Broker, Cluster
from sharecons.testing.broker.codec import ErrorCode, Header
from sharecons.testing.broker.context import ClientDisconnectedError, Context
from sharecons.testing.broker.handlers import fetch
from tests.broker.call_handler import Connection
from tests.broker.messages import make_request
from tests.broker.raw_batches import NOW, batch, transactional

pytestmark = pytest.mark.anyio
VIRTUAL_CLOCK = True

LONG = 1000.0  # seconds


class Waiter:
    """A cluster with one topic, and a fetch that can wait."""

    def __init__(self):
        self.cluster = Cluster([Broker(1, "localhost", 9092)], {})
        self.cluster.broker_started(1)
        self.cluster.add_topic("t", [[1]], {})
        self.log = self.cluster.topics.by_name("t").partitions[0].log
        self.connection = Connection()
        self.response = None

    async def fetch(self, offset=0, *, max_wait=LONG, min_bytes=1, isolation_level=0):
        partition = {
            "partition": 0,
            "fetch_offset": offset,
            "partition_max_bytes": 1 << 20,
        }
        request = make_request(
            "fetch",
            4,
            max_wait=timedelta(seconds=max_wait),
            min_bytes=min_bytes,
            max_bytes=1 << 20,
            isolation_level=isolation_level,
            topics=[{"topic": "t", "partitions": [partition]}],
        )
        context = Context(Header(1, 4, 1, "test"), self.cluster, 1, self.connection)
        self.response = await fetch.handle(request, context)
        return self.response["responses"][0]["partitions"][0]

    def append(self, content=None, **values):
        self.log.append(content or batch(), NOW, **values)


async def wake(waiter, change, **values):
    """Return the response of a fetch that waits until `change` is called."""
    found = []

    async def wait():
        found.append(await waiter.fetch(**values))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            assert not found, "it did not wait"
            change()
    return found[0]


async def test_fetch_waits_for_a_record():
    waiter = Waiter()

    part = await wake(waiter, waiter.append)

    assert 1 == part["high_watermark"]
    assert part["records"]


async def test_fetch_waits_for_min_bytes():
    waiter = Waiter()
    waiter.append()
    size = len((await waiter.fetch())["records"])

    part = await wake(waiter, waiter.append, min_bytes=size + 1)

    assert 2 * size == len(part["records"])


async def test_fetch_without_records_waits_for_max_wait():
    waiter = Waiter()

    began = anyio.current_time()
    part = await waiter.fetch(max_wait=2.0)

    assert 2.0 == pytest.approx(anyio.current_time() - began)
    assert (b"", ErrorCode.none) == (part["records"], part["error_code"])


async def test_read_committed_fetch_waits_for_transaction_end():
    waiter = Waiter()
    waiter.append(transactional(5, 0, 0), transaction_version=1)

    def end():
        waiter.log.end_transaction(5, 0, False, NOW)

    part = await wake(waiter, end, isolation_level=1)

    assert [{"producer_id": 5, "first_offset": 0}] == part["aborted_transactions"]


async def test_read_committed_fetch_past_end_does_not_wait():
    waiter = Waiter()
    waiter.append(transactional(5, 0, 0), transaction_version=1)
    waiter.append()

    with anyio.fail_after(5):
        part = await waiter.fetch(2, isolation_level=1)

    assert b"" == part["records"]


async def test_deleted_topic_ends_the_wait():
    waiter = Waiter()
    topic = waiter.cluster.topics.by_name("t")

    part = await wake(waiter, lambda: waiter.cluster.delete_topic(topic))

    assert ErrorCode.unknown_topic_or_partition == part["error_code"]


async def test_deleted_offset_ends_the_wait():
    waiter = Waiter()
    waiter.append()

    def delete():
        waiter.append()
        waiter.log.truncate_before(2)

    part = await wake(waiter, delete, offset=1, min_bytes=1000)

    assert ErrorCode.offset_out_of_range == part["error_code"]


async def test_transaction_timeout_ends_the_wait():
    waiter = Waiter()
    transactions = waiter.cluster.transactions
    producer = transactions.initialise("tx", 2.0, None).producer
    waiter.append(transactional(producer.producer_id, 0, 0), transaction_version=1)
    now = anyio.current_time()
    transactions.add_partitions("tx", producer, [("t", 0)], now)

    with anyio.fail_after(5):
        part = await waiter.fetch(isolation_level=1)

    assert 2 == part["last_stable_offset"]


async def test_disconnect_ends_the_wait():
    waiter = Waiter()

    async def end_soon():
        await anyio.wait_all_tasks_blocked()
        waiter.connection.close()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(end_soon)
            with pytest.raises(ClientDisconnectedError):
                await waiter.fetch()
