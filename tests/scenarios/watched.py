"""A network that counts requests in flight."""

from collections.abc import Callable
from typing import Any, TypeVar

from sharecons.net.io.pipeline import Deferred, NextFrame
from sharecons.net.io.transport import FrameTransport, TcpNetwork
from sharecons.protocol.messages import Endpoint
from sharecons.wire.codec.api import Frame

__all__ = ["WatchedNetwork"]

T = TypeVar("T")

SHARE_FETCH = (78).to_bytes(2, "big")
MAX_SIZE_WITHOUT_RECORDS = 140  # bytes of a response for one partition


class WatchedNetwork:
    """A TCP network that counts requests in flight and fetches.

    Attributes:
        sent: the frames of all requests.
        in_flight: how many requests are in flight.
        max_in_flight: the highest number of requests in flight on one connection.
        fetches_with_records: how many fetches of one partition returned records.
    """

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.in_flight = self.max_in_flight = self.fetches_with_records = 0
        self._network = TcpNetwork()

    async def connect(self, endpoint: Endpoint) -> FrameTransport:
        return WatchedTransport(await self._network.connect(endpoint), self)


class WatchedTransport:
    def __init__(self, wire: FrameTransport, network: WatchedNetwork) -> None:
        self._network = network
        self._transport = wire
        self._in_flight: list[bytes] = []  # API keys
        self.send = wire.send
        self.receive = wire.receive
        self.idle = wire.idle
        self.aclose = wire.aclose

    async def exchange(
        self, data: bytes, timeout: float, read: Callable[[Frame], T]
    ) -> T:
        def answered(frame: Frame) -> Any:
            fetched = self._end_request() == SHARE_FETCH
            self._network.fetches_with_records += (
                fetched and len(frame) > MAX_SIZE_WITHOUT_RECORDS
            )
            answer = read(frame)
            if isinstance(answer, Deferred):
                look = answer.find
                return Deferred(lambda: followed(look()))
            return followed(answer)

        def followed(answer: Any) -> Any:
            if not isinstance(answer, NextFrame):
                return answer
            self._start_request(answer.data)
            begun = answer.on_partial
            found = begun and (lambda: followed(begun()))
            return NextFrame(answer.data, answer.timeout, found)

        def uncounted(answer: Any) -> Any:
            """Undo the count of a request that the transport does not send itself."""
            if isinstance(answer, Deferred):
                look = answer.find
                return Deferred(lambda: uncounted(look()))
            if isinstance(answer, NextFrame):
                self._end_request()
                self._network.sent.pop()
            return answer

        self._start_request(data)
        return uncounted(await self._transport.exchange(data, timeout, answered))

    def _start_request(self, data: bytes) -> None:
        self._network.sent.append(bytes(data))
        self._in_flight.append(bytes(data[4:6]))
        self._network.in_flight += 1
        self._network.max_in_flight = max(
            self._network.max_in_flight, len(self._in_flight)
        )

    def _end_request(self) -> bytes:
        self._network.in_flight -= 1
        return self._in_flight.pop(0)
