"""A network that counts requests in flight."""

from sharecons.net.io.transport import FrameTransport, Network, TcpNetwork
from sharecons.protocol.partitions import Endpoint
from sharecons.wire.codec.api import Frame

__all__ = ["WatchedNetwork"]


class WatchedNetwork:
    """A network, by default TCP, that keeps requests and counts those in flight.

    Attributes:
        sent: the frames of all requests.
        in_flight: the number of requests in flight.
    """

    def __init__(self, network: Network | None = None) -> None:
        self.sent: list[bytes] = []
        self.in_flight = 0
        self._network = network or TcpNetwork()

    async def connect(self, endpoint: Endpoint) -> FrameTransport:
        return WatchedTransport(await self._network.connect(endpoint), self)


class WatchedTransport:
    def __init__(self, wire: FrameTransport, network: WatchedNetwork) -> None:
        self._network = network
        self._transport = wire
        self.idle = wire.idle
        self.aclose = wire.aclose

    async def exchange(self, data: bytes, timeout: float) -> Frame:
        self._network.sent.append(bytes(data))
        self._network.in_flight += 1
        try:
            return await self._transport.exchange(data, timeout)
        finally:
            self._network.in_flight -= 1
