"""Fetch sizes with large producer batches."""

from typing import Any

import anyio
import pytest

from sharecons import ShareConsumer
from sharecons.net.io.transport import FrameTransport, TcpNetwork
from sharecons.protocol.messages import Endpoint
from sharecons.wire.codec.api import Frame
from tests.kafka_plugin import Admin, Kafka
from tests.scenarios.queue import Queue, take
from tests.scenarios.versions import since_4_2

pytestmark = [pytest.mark.anyio, since_4_2]

VALUE = b"x" * 1000
LARGE = {"batch_size": 1_000_000, "linger_ms": 500}


class CountingNetwork:
    """Count the bytes of all responses."""

    def __init__(self) -> None:
        self.received = 0
        self._network = TcpNetwork()

    async def connect(self, endpoint: Endpoint) -> FrameTransport:
        return CountingTransport(await self._network.connect(endpoint), self)


class CountingTransport:
    def __init__(self, wire: FrameTransport, network: CountingNetwork) -> None:
        self._network = network
        self._transport = wire
        self.idle = wire.idle
        self.aclose = wire.aclose

    async def exchange(self, data: bytes, timeout: float) -> Frame:
        frame = await self._transport.exchange(data, timeout)
        self._network.received += len(frame)
        return frame


async def process(
    consumer: ShareConsumer[Any, Any], records: int, seconds: float
) -> int:
    """Process records one by one, with a delay each; return how many were new."""
    seen: set[int] = set()
    async for record in consumer:
        if seconds:
            await anyio.sleep(seconds)
        seen.add(record.offset)
        if len(seen) == records:
            break
    return len(seen)


@pytest.mark.parametrize(
    ("seconds", "lock", "records", "max_bytes"),
    [
        # Half of the lock, 1.5 s, holds 150 records of 10 ms: the ratio of a 0.1 s
        # handler to the default lock of 30 s. Two small fetches come first.
        pytest.param(0.01, 3, 600, 12_000, id="150 records in half of the lock"),
        pytest.param(0.1, 3, 105, 100_000, id="15 records in half of the lock"),
    ],
)
async def test_fetch_size_is_limited_by_half_of_lock_duration(
    admin: Admin, seconds: float, lock: int, records: int, max_bytes: int
) -> None:
    queue = Queue(admin, **{"share.record.lock.duration.ms": f"{lock}000"})
    queue.produce([VALUE] * 4000, **LARGE)
    network = CountingNetwork()

    with anyio.fail_after(60):
        async with queue.consumer(network=network) as consumer:
            await process(consumer, records, seconds)
            per_record = network.received / records
            expired = consumer.metrics()["sharecons-lock-overruns-total"]

    assert per_record < max_bytes
    assert 0 == expired


async def test_batch_larger_than_all_before_it_is_acquired_in_parts(
    admin: Admin,
) -> None:
    """Half of the lock, 1.5 s, holds 150 records of 10 ms."""
    queue = Queue(admin, **{"share.record.lock.duration.ms": "3000"})
    queue.produce([VALUE] * 97, **LARGE)
    queue.produce([VALUE] * 400, **LARGE)

    with anyio.fail_after(60):
        async with queue.consumer() as consumer:
            await process(consumer, 400, 0.01)
            expired = consumer.metrics()["sharecons-lock-overruns-total"]

    assert 0 == expired


async def received_by_fast_handler(admin: Admin) -> int:
    """Process 20,000 records of 1,000 bytes; return the bytes of all responses."""
    queue = Queue(admin)
    queue.produce([VALUE] * 20_000, **LARGE)
    network = CountingNetwork()

    with anyio.fail_after(60):
        async with queue.consumer(network=network) as consumer:
            await process(consumer, 20_000, 0.0)
    return network.received


async def test_fast_handler_receives_large_batches_about_once(admin: Admin) -> None:
    """Two or three batches of 1 MB are received twice at the start: 22 or 23 MB.

    When a busy machine stops this process for a moment, the handler seems slow, and
    another batch may follow: so the smaller of two measurements counts. Fetches of 500
    records receive 58 MB.
    """
    received = await received_by_fast_handler(admin)
    if received >= 20_000 * 1000 + 4_000_000:
        received = min(received, await received_by_fast_handler(admin))

    assert received < 20_000 * 1000 + 4_000_000


@pytest.mark.kafka
@pytest.mark.slow
async def test_consumer_with_quota_loses_one_response_and_uses_the_quota(
    real_kafka: Kafka,
) -> None:
    """A quota of 200 kB/s allows two batches in eleven seconds; a third is lost.

    4,000 records take 34 s. A consumer that ignores the quota received 449 in 60 s.
    """
    queue = Queue(real_kafka.admin)
    queue.produce([VALUE] * 4000, **LARGE)
    client_id = f"limited-{queue.group}"
    queue.admin.set_consumer_quota(client_id, 200_000)

    async with queue.consumer(client_id=client_id) as consumer:
        records = await take(aiter(consumer), 1900, within=18)

    assert list(range(1900)) == sorted(record.offset for record in records)
    assert {1, 2} == {record.delivery_count for record in records}
