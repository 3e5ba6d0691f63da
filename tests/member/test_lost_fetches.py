"""Fetches whose response is lost, while the broker does not notice it."""

import anyio
import pytest

from tests.net.embedded import SlowNetwork, consuming, running

pytestmark = pytest.mark.anyio

SHARE_FETCH = (78).to_bytes(2, "big")
EMPTY = 140
"""More bytes than a response without records has."""


class DeafBroker(SlowNetwork):
    """The network to a broker that learns of no lost connection.

    Attributes:
        loses_next: the response to the next fetch with records is lost.
    """

    loses_next = False

    async def connect(self, endpoint):
        return DeafTransport(await super().connect(endpoint), self)


class DeafTransport:
    def __init__(self, transport, network):
        self._transport = transport
        self._network = network
        self._is_lost = False
        self.idle = transport.idle

    async def exchange(self, data, timeout):
        frame = await self._transport.exchange(data, timeout)
        is_fetch = bytes(data[4:6]) == SHARE_FETCH
        if is_fetch and self._network.loses_next and len(frame) > EMPTY:
            self._network.loses_next, self._is_lost = False, True
            raise ConnectionResetError("lost")
        return frame

    async def aclose(self):
        if not self._is_lost:
            await self._transport.aclose()


async def test_records_of_a_lost_response_do_not_wait_for_the_end_of_their_locks():
    async with running(1) as broker:
        network = DeafBroker(broker)
        async with consuming(broker, network=network) as consumer:
            (first,) = await consumer.poll(timeout=60.0)
            network.loses_next = True
            begin = anyio.current_time()
            broker.produce("orders", [b"1"])
            (record,) = await consumer.poll(timeout=60.0)
            seconds = anyio.current_time() - begin

    assert (0, 1) == (first.offset, first.delivery_count)
    assert (1, 2) == (record.offset, record.delivery_count)
    assert seconds < 1.5
