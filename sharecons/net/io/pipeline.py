"""Pipelining: sending the next request while or right after a response is read.

Every response passes through this module. It has no coroutine, so it is compiled.
"""

from collections.abc import Callable
from typing import Any, Final, final

from sharecons.net.io.sasl import SaslSession
from sharecons.wire.codec import frames
from sharecons.wire.codec.api import Api, Frame

__all__ = [
    "CorrelationIds",
    "Deferred",
    "NextFrame",
    "NextRequest",
    "OnResponse",
    "RequestExchange",
    "ignore",
]

MAX_CORRELATION_ID: Final = 0x7FFFFFFF


# Their constructors are written out, as those of `protocol.messages` are.


@final
class NextFrame:
    """The next frame to send in an exchange; see `FrameTransport.exchange`.

    Attributes:
        timeout: seconds to wait for its response.
        on_partial: returns a `NextFrame` to send, or None. Called when a part of the
            response is here and a large rest is to come.
    """

    __slots__ = ("data", "on_partial", "timeout")

    def __init__(
        self,
        data: bytes,
        timeout: float,
        on_partial: Callable[[], Any] | None = None,
    ) -> None:
        self.data = data
        self.timeout = timeout
        self.on_partial = on_partial


@final
class Deferred:
    """Run the woken tasks first, then call `find` for the next request or frame."""

    __slots__ = ("find",)

    def __init__(self, find: Callable[[], Any]) -> None:
        self.find = find


@final
class NextRequest:
    """The next request to send.

    Attributes:
        timeout: seconds to wait for its response.
        on_partial: returns another request to send, or None. Called, if the transport
            supports it, when a part of the response is here and a large rest is to
            come.
    """

    __slots__ = ("on_partial", "request", "timeout")

    def __init__(
        self,
        request: Any,
        timeout: float,
        on_partial: "Callable[[], NextRequest | None] | None" = None,
    ) -> None:
        self.request = request
        self.timeout = timeout
        self.on_partial = on_partial


OnResponse = Callable[[Any], NextRequest | Deferred | None]


def ignore(response: object) -> None:
    """Ignore the response: `ask` returns it."""


@final
class CorrelationIds:
    """The correlation ids of one connection.

    Attributes:
        responses: how many were received.
        in_flight: how many are to come; they come in the order of the requests.
    """

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id
        self._last_id = 0
        self.responses = 0
        self.in_flight = 0

    def next_frame(self, key: int, version: int, body: bytes) -> bytes:
        """Return the frame of a request with the next correlation id."""
        self._last_id = (self._last_id + 1) & MAX_CORRELATION_ID
        self.in_flight += 1
        return frames.request_frame(key, version, self._last_id, self._client_id, body)

    def body_offset(self, frame: Frame, key: int) -> int:
        """Return the offset of the body in the next response.

        Raises:
            ProtocolError: the correlation id is not that of the oldest request in
                flight.
        """
        self.responses += 1
        self.in_flight -= 1
        return frames.body_offset(
            frame, key, (self._last_id - self.in_flight) & MAX_CORRELATION_ID
        )


@final
class RequestExchange:
    """A request and those that follow its response; see `Connection.ask`.

    A next request of another type, or one before which the connection must
    authenticate again, is returned to `Connection.ask`. That waits until nothing is in
    flight, so no request is pipelined while authentication is due.
    """

    def __init__(
        self,
        kind: type,
        api: Api[Any, Any],
        version: int,
        correlation_ids: CorrelationIds,
        sasl: SaslSession | None,
        on_response: OnResponse,
    ) -> None:
        self._kind = kind
        self._write = api.write
        self._read = api.read
        self._key = api.key
        self._version = version
        self._correlation_ids = correlation_ids
        self._sasl = sasl
        self._on_response = on_response
        self._find_next: Callable[[], NextRequest | None] | None = None
        self._find_behind: Callable[[], NextRequest | None] | None = None

    def read(self, frame: Frame) -> Any:
        """Read a response; return it, or what the transport sends or does next."""
        offset = self._correlation_ids.body_offset(frame, self._key)
        response = self._read(frame, offset, self._version)
        next_request = self._on_response(response)
        if next_request is None:
            return response
        if isinstance(next_request, Deferred):
            self._find_next = next_request.find
            return Deferred(self._find_deferred)
        return self._next_frame(next_request)

    def _find_deferred(self) -> Any:
        find, self._find_next = self._find_next, None
        return self._frame_of(find)

    def _on_partial(self) -> Any:
        return self._frame_of(self._find_behind)

    def _frame_of(self, find: Callable[[], NextRequest | None] | None) -> Any:
        if find is None or (
            self._correlation_ids.in_flight and self._is_authentication_due
        ):
            return None
        next_request = find()
        return None if next_request is None else self._next_frame(next_request)

    @property
    def _is_authentication_due(self) -> bool:
        return self._sasl is not None and self._sasl.is_due

    def _next_frame(self, next_request: NextRequest) -> Any:
        if self._is_authentication_due or type(next_request.request) is not self._kind:
            return next_request
        body = self._write(next_request.request, self._version)
        data = self._correlation_ids.next_frame(self._key, self._version, body)
        on_partial = None
        if next_request.on_partial is not None:
            self._find_behind, on_partial = next_request.on_partial, self._on_partial
        return NextFrame(data, next_request.timeout, on_partial)
