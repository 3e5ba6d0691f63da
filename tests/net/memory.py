"""Connections to the embedded broker over memory that take time."""

import anyio

__all__ = ["LATENCY", "SlowNetwork"]

LATENCY = 0.001
"""Seconds per request: on a virtual clock, a request storm would never end without."""


class SlowNetwork:
    """Connects to an embedded broker over memory; each request takes LATENCY.

    Attributes:
        connects: the ports of all attempts to connect, in order.
        open: the number of connections that the client has not closed.
    """

    def __init__(self, broker):
        self._broker = broker
        self.connects = []
        self.open = 0

    async def connect(self, endpoint):
        self.connects.append(endpoint.port)
        await anyio.sleep(LATENCY)
        transport = await self._broker.network.connect(endpoint)
        self.open += 1
        return SlowTransport(transport, self)

    def on_closed(self):
        self.open -= 1


class SlowTransport:
    """A connection of a SlowNetwork."""

    def __init__(self, transport, network):
        self._transport = transport
        self._network = network
        self._closed = False

    async def exchange(self, data, timeout):
        with anyio.fail_after(timeout):
            await anyio.sleep(LATENCY)
            return await self._transport.exchange(data, timeout)

    async def idle(self, wait, lost):
        await self._transport.idle(wait, lost)

    async def aclose(self):
        if not self._closed:
            self._closed = True
            self._network.on_closed()
        await self._transport.aclose()
