"""A response of `max_bytes` takes longer than the request timeout to arrive."""

import anyio
import pytest

from tests.net.embedded import SlowNetwork, consuming, running

pytestmark = pytest.mark.anyio

SPEED = 100_000
"""Bytes per second: a response of 8 MiB takes 84 s."""

REQUEST_TIMEOUT = 30.0
"""The default of `request_timeout`, in seconds."""

SIZE = 50_000
BATCHES, BATCH_RECORDS = 20, 10
SECONDS = BATCHES * BATCH_RECORDS * SIZE / SPEED
"""The time that all records take on this network."""


class NarrowNetwork:
    """A SlowNetwork on which responses take a second for each SPEED bytes."""

    def __init__(self, broker):
        self._network = SlowNetwork(broker)

    async def connect(self, endpoint):
        return NarrowTransport(await self._network.connect(endpoint))


class NarrowTransport:
    """A connection of a NarrowNetwork."""

    def __init__(self, transport):
        self._transport = transport
        self.idle = transport.idle
        self.aclose = transport.aclose

    async def exchange(self, data, timeout):
        with anyio.fail_after(timeout):
            response = await self._transport.exchange(data, timeout)
            await anyio.sleep(len(response) / SPEED)
            return response


@pytest.mark.parametrize(
    ("first_size", "timeouts"),
    [
        pytest.param(SIZE, 0, id="measured-by-the-first-record"),
        pytest.param(10, 2, id="first-record-is-small"),
    ],
)
async def test_large_batches_are_delivered_over_a_slow_network(first_size, timeouts):
    async with running() as broker:
        broker.produce("orders", [b"x" * first_size] * BATCH_RECORDS)
        for _ in range(BATCHES):
            broker.produce("orders", [b"x" * SIZE] * BATCH_RECORDS)
        network = NarrowNetwork(broker)
        async with consuming(broker, network=network) as consumer:
            began = anyio.current_time()
            counts = []
            async for record in consumer:
                counts.append(record.delivery_count)
                if len(counts) == (1 + BATCHES) * BATCH_RECORDS:
                    break

            seconds = anyio.current_time() - began
            assert seconds < 1.1 * SECONDS + timeouts * REQUEST_TIMEOUT
            assert max(counts) <= 1 + timeouts
