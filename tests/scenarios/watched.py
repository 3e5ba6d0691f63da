"""A network that counts requests in flight."""

from sharecons.net.io.transport import FrameTransport, Network, TcpNetwork
from sharecons.protocol.partitions import Endpoint
from sharecons.wire.codec.api import Frame

__all__ = ["WatchedNetwork"]

SHARE_FETCH = (78).to_bytes(2, "big")
MAX_SIZE_WITHOUT_RECORDS = 140  # bytes of a response for one partition


class WatchedNetwork:
    """A network, by default TCP, that counts requests in flight and fetches.

    Attributes:
        sent: the frames of all requests.
        in_flight: the number of requests in flight.
        max_in_flight: the highest number of requests in flight on one connection.
        fetches_with_records: the number of fetches of one partition with records.
    """

    def __init__(self, network: Network | None = None) -> None:
        self.sent: list[bytes] = []
        self.in_flight = self.max_in_flight = self.fetches_with_records = 0
        self._network = network or TcpNetwork()

    async def connect(self, endpoint: Endpoint) -> FrameTransport:
        return WatchedTransport(await self._network.connect(endpoint), self)


class WatchedTransport:
    def __init__(self, wire: FrameTransport, network: WatchedNetwork) -> None:
        self._network = network
        self._transport = wire
        self._in_flight = 0
        self.idle = wire.idle
        self.aclose = wire.aclose

    async def exchange(self, data: bytes, timeout: float) -> Frame:
        network = self._network
        network.sent.append(bytes(data))
        network.in_flight += 1
        self._in_flight += 1
        network.max_in_flight = max(network.max_in_flight, self._in_flight)
        try:
            frame = await self._transport.exchange(data, timeout)
        finally:
            network.in_flight -= 1
            self._in_flight -= 1
        network.fetches_with_records += (
            data[4:6] == SHARE_FETCH and len(frame) > MAX_SIZE_WITHOUT_RECORDS
        )
        return frame
