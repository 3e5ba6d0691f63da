"""A network that a test interrupts when records arrive."""

from collections.abc import Awaitable, Callable

from sharecons.net.io.idle_watch import OnLost, Wait
from sharecons.net.io.transport import FrameTransport, Network, TcpNetwork
from sharecons.protocol.partitions import Endpoint
from sharecons.wire.codec.api import Frame

__all__ = ["InterruptedNetwork"]

SHARE_FETCH = (78).to_bytes(2, "big")
MAX_SIZE_WITHOUT_RECORDS = 140  # bytes of a response for one partition


class InterruptedNetwork:
    """A network, by default TCP.

    Attributes:
        on_records: is awaited when a broker has returned records, before the client
            receives them; None: nothing is awaited.
    """

    def __init__(self, network: Network | None = None) -> None:
        self.on_records: Callable[[], Awaitable[None]] | None = None
        self._network = network or TcpNetwork()
        self._transports: list[_Transport] = []

    async def connect(self, endpoint: Endpoint) -> FrameTransport:
        transport = _Transport(await self._network.connect(endpoint), self)
        self._transports.append(transport)
        return transport

    async def cut(self) -> None:
        """Cut all connections that have fetched records."""
        for transport in self._transports:
            await transport.cut()


class _Transport:
    def __init__(self, wire: FrameTransport, network: InterruptedNetwork) -> None:
        self._transport = wire
        self._network = network
        self._has_fetched = False
        self._on_lost: OnLost | None = None
        self.aclose = wire.aclose

    async def exchange(self, data: bytes, timeout: float) -> Frame:
        frame = await self._transport.exchange(data, timeout)
        is_fetch = bytes(data[4:6]) == SHARE_FETCH
        if is_fetch and len(frame) > MAX_SIZE_WITHOUT_RECORDS:
            self._has_fetched = True
            if self._network.on_records is not None:
                await self._network.on_records()
        return frame

    async def idle(self, wait: Wait, on_lost: OnLost) -> None:
        self._on_lost = on_lost
        try:
            await self._transport.idle(wait, on_lost)
        finally:
            self._on_lost = None

    async def cut(self) -> None:
        if self._has_fetched:
            self._has_fetched = False
            if self._on_lost is not None:
                self._on_lost(ConnectionResetError("cut"))
            await self._transport.aclose()
