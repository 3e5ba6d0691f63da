"""Fetch sizes with large producer batches."""

from typing import Any

import anyio
import pytest

from sharecons import ShareConsumer
from sharecons.net.io.transport import FrameTransport, TcpNetwork
from sharecons.protocol.partitions import Endpoint
from sharecons.wire.codec.api import Frame
from tests.scenarios.embedded_admin import ON_BOTH, AnyAdmin
from tests.scenarios.queue import Queue
from tests.scenarios.versions import since_4_2

pytestmark = [pytest.mark.anyio, ON_BOTH, since_4_2]


@pytest.fixture
def admin(any_admin: AnyAdmin) -> AnyAdmin:
    return any_admin


VALUE = b"x" * 1000
LARGE = {"batch_size": 1_000_000, "linger_ms": 60_000}


class CountingNetwork:
    """Count the bytes of all responses."""

    def __init__(self, admin: AnyAdmin) -> None:
        self.received = 0
        self._network = admin.network or TcpNetwork()

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
) -> None:
    """Process each record for some seconds; stop after `records` different ones."""
    offsets: set[int] = set()
    async for record in consumer:
        if seconds:
            await anyio.sleep(seconds)  # real time: the handler's work
        offsets.add(record.offset)
        if len(offsets) == records:
            break


@pytest.mark.parametrize(
    ("seconds", "lock", "records", "max_bytes"),
    [
        # Half of the lock, 1.5 s, holds 150 records of 10 ms: the ratio of a 0.1 s
        # handler to the default lock of 30 s. Two small fetches come first.
        pytest.param(0.01, 3, 600, 12_000, id="150 records in half of the lock"),
        pytest.param(
            *(0.1, 3, 105, 100_000),
            id="15 records in half of the lock",
            marks=pytest.mark.client_only,
        ),
    ],
)
async def test_fetch_size_is_limited_by_half_of_lock_duration(
    admin: AnyAdmin, seconds: float, lock: int, records: int, max_bytes: int
) -> None:
    queue = Queue(admin, **{"share.record.lock.duration.ms": f"{lock}000"})
    queue.produce([VALUE] * 4000, **LARGE)
    network = CountingNetwork(admin)

    with anyio.fail_after(60):
        async with queue.consumer(network=network) as consumer:
            await process(consumer, records, seconds)
            per_record = network.received / records
            expired = consumer.metrics()["sharecons-lock-overruns-total"]

    assert per_record < max_bytes
    assert 0 == expired


async def test_batch_larger_than_all_before_it_is_acquired_in_parts(
    admin: AnyAdmin,
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


async def received_by_fast_handler(admin: AnyAdmin) -> int:
    """Process 20,000 records of 1,000 bytes; return the bytes of all responses."""
    queue = Queue(admin)
    queue.produce([VALUE] * 20_000, **LARGE)
    network = CountingNetwork(admin)

    with anyio.fail_after(60):
        async with queue.consumer(network=network) as consumer:
            await process(consumer, 20_000, 0.0)
    return network.received


async def test_fast_handler_receives_large_batches_about_once(admin: AnyAdmin) -> None:
    """Two or three batches of 1 MB are received twice at the start: 22 or 23 MB.

    On a busy machine the handler can seem slow for a moment, and another batch follows.
    Therefore the smaller of two measurements counts. Fetches of 500 records receive
    58 MB.
    """
    received = await received_by_fast_handler(admin)
    if received >= 20_000 * 1000 + 4_000_000:
        received = min(received, await received_by_fast_handler(admin))

    assert received < 20_000 * 1000 + 4_000_000
