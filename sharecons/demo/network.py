"""Connections that can be cut: what a network sees of a process that is killed."""

from collections.abc import Callable
from typing import TypeVar

from sharecons.errors import ConnectionFailedError
from sharecons.net.io.idle_watch import Lost, Wait
from sharecons.net.io.transport import FrameTransport, Network
from sharecons.protocol.messages import Endpoint
from sharecons.wire.codec.api import Frame

__all__ = ["KillableNetwork"]

T = TypeVar("T")


class KillableNetwork:
    """A network of one consumer's own, which ends when it is killed.

    From `kill()` on nothing goes out any more, at once; `bury()` closes the
    connections, as the system does for a process that is gone.
    """

    def __init__(self, network: Network) -> None:
        self.dead = False
        self._network = network
        self._wires: list[FrameTransport] = []

    async def connect(self, endpoint: Endpoint) -> FrameTransport:
        self.check()
        wire = _MortalWire(await self._network.connect(endpoint), self)
        self._wires.append(wire)
        return wire

    def kill(self) -> None:
        self.dead = True

    async def close(self) -> None:
        for wire in self._wires:
            await wire.aclose()

    def check(self) -> None:
        if self.dead:
            raise ConnectionFailedError("this consumer was killed")


class _MortalWire:
    def __init__(self, wire: FrameTransport, network: KillableNetwork) -> None:
        self._wire = wire
        self._network = network

    async def send(self, data: bytes) -> None:
        self._network.check()
        await self._wire.send(data)

    async def receive(self) -> Frame:
        return await self._wire.receive()

    async def exchange(
        self, data: bytes, timeout: float, read: Callable[[Frame], T]
    ) -> T:
        self._network.check()
        # In a box: a wire that finds what follows in it would send that by itself.
        boxed = await self._wire.exchange(data, timeout, lambda frame: (read(frame),))
        return boxed[0]

    async def idle(self, wait: Wait, lost: Lost) -> None:
        await self._wire.idle(wait, lost)

    async def aclose(self) -> None:
        await self._wire.aclose()
