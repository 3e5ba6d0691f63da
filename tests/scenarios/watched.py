"""A network that knows what is under way on it."""

from collections.abc import Callable
from typing import Any, TypeVar

from sharecons.net.io.pipeline import Deferred, NextFrame
from sharecons.net.io.transport import FrameTransport, TcpNetwork
from sharecons.protocol.messages import Endpoint
from sharecons.wire.codec.api import Frame

__all__ = ["WatchedNetwork"]

T = TypeVar("T")

SHARE_FETCH = (78).to_bytes(2, "big")
WITHOUT_RECORDS = 140  # bytes: the answer to a fetch of one partition is shorter


class WatchedNetwork:
    """Knows how many requests are under way, and the most there were on one wire.

    Attributes:
        sent: the requests, as they were sent.
        brought: how many fetches of one partition brought records.
    """

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.under_way = self.most = self.brought = 0
        self._network = TcpNetwork()

    async def connect(self, endpoint: Endpoint) -> FrameTransport:
        return WatchedWire(await self._network.connect(endpoint), self)


class WatchedWire:
    def __init__(self, wire: FrameTransport, network: WatchedNetwork) -> None:
        self._network = network
        self._wire = wire
        self._under_way: list[bytes] = []  # what kinds of requests
        self.send = wire.send
        self.receive = wire.receive
        self.idle = wire.idle
        self.aclose = wire.aclose

    async def exchange(
        self, data: bytes, timeout: float, read: Callable[[Frame], T]
    ) -> T:
        def answered(frame: Frame) -> Any:
            fetched = self._over() == SHARE_FETCH
            self._network.brought += fetched and len(frame) > WITHOUT_RECORDS
            answer = read(frame)
            if isinstance(answer, Deferred):
                look = answer.find
                return Deferred(lambda: followed(look()))
            return followed(answer)

        def followed(answer: Any) -> Any:
            if not isinstance(answer, NextFrame):
                return answer
            self._sent(answer.data)
            begun = answer.on_partial
            found = begun and (lambda: followed(begun()))
            return NextFrame(answer.data, answer.timeout, found)

        def uncounted(answer: Any) -> Any:
            """Of a wire that does not go on by itself: the exchange is another one."""
            if isinstance(answer, Deferred):
                look = answer.find
                return Deferred(lambda: uncounted(look()))
            if isinstance(answer, NextFrame):
                self._over()
                self._network.sent.pop()
            return answer

        self._sent(data)
        return uncounted(await self._wire.exchange(data, timeout, answered))

    def _sent(self, data: bytes) -> None:
        self._network.sent.append(bytes(data))
        self._under_way.append(bytes(data[4:6]))
        self._network.under_way += 1
        self._network.most = max(self._network.most, len(self._under_way))

    def _over(self) -> bytes:
        self._network.under_way -= 1
        return self._under_way.pop(0)
