"""A network whose connections stop like the connections of a killed process."""

from sharecons.errors import ConnectionFailedError
from sharecons.net.io.idle_watch import OnLost, Wait
from sharecons.net.io.transport import FrameTransport, Network
from sharecons.protocol.partitions import Endpoint
from sharecons.wire.codec.api import Frame

__all__ = ["KillableNetwork"]


class KillableNetwork:
    """The network of one consumer that can be killed.

    After `kill()`, sending raises ConnectionFailedError. `close()` closes the
    connections, as the operating system does for a process that has exited.
    """

    def __init__(self, network: Network) -> None:
        self.is_killed = False
        self._network = network
        self._transports: list[FrameTransport] = []

    async def connect(self, endpoint: Endpoint) -> FrameTransport:
        self.raise_if_killed()
        transport = _KillableTransport(await self._network.connect(endpoint), self)
        self._transports.append(transport)
        return transport

    def kill(self) -> None:
        self.is_killed = True

    async def close(self) -> None:
        for transport in self._transports:
            await transport.aclose()

    def raise_if_killed(self) -> None:
        if self.is_killed:
            raise ConnectionFailedError("this consumer was killed")


class _KillableTransport:
    def __init__(self, wire: FrameTransport, network: KillableNetwork) -> None:
        self._transport = wire
        self._network = network

    async def exchange(self, data: bytes, timeout: float) -> Frame:
        self._network.raise_if_killed()
        return await self._transport.exchange(data, timeout)

    async def idle(self, wait: Wait, on_lost: OnLost) -> None:
        await self._transport.idle(wait, on_lost)

    async def aclose(self) -> None:
        await self._transport.aclose()
