"""One request and its response, in steps between which a fault can act."""

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from sharecons.testing.broker.codec import Request, Response, api_name, encode_response
from sharecons.testing.broker.context import Context

__all__ = ["Exchange", "Handler", "LoggedRequest", "RequestLog"]

MAX_REQUESTS: Final = 100_000
"""Requests kept: tests need hundreds, and a broker in the foreground runs for days."""

Handler: TypeAlias = Callable[[Request, Context], Awaitable[Response | None]]
"""Handles a request; returns the fields of the response, or None for none."""


class LoggedRequest(NamedTuple):
    """A request that a broker has received."""

    api: str
    """The name in Kafka's message definitions: ShareFetch."""
    version: int
    client_id: str
    node_id: int
    at: float
    """Seconds on the clock of the broker's event loop."""


class RequestLog:
    """The requests that the brokers have received, in order."""

    def __init__(self) -> None:
        self._requests: deque[LoggedRequest] = deque(maxlen=MAX_REQUESTS)

    def add(self, context: Context) -> None:
        header = context.header
        api = api_name(header.api_key)
        self._requests.append(
            LoggedRequest(
                api, header.version, header.client_id, context.node_id, context.now
            )
        )

    def all(self) -> list[LoggedRequest]:
        return list(self._requests)

    def clear(self) -> None:
        self._requests.clear()


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request that waits for its response."""

    request: Request
    context: Context
    handler: Handler
    version: int
    """The response's version: the request's, or 0 if that one is unsupported."""

    @property
    def api(self) -> str:
        return api_name(self.context.header.api_key)

    async def respond(self) -> None:
        """Handle the request and send the response."""
        await self.send(await self.handle())

    async def handle(self) -> Response | None:
        """Handle the request; return the response, which is not sent."""
        return await self.handler(self.request, self.context)

    async def send(self, response: Response | None) -> None:
        """Send a response; do nothing if it is None."""
        if response is not None:
            await self.context.connection.send(self.frame(response))

    def frame(self, response: Response) -> bytes:
        return encode_response(self.context.header, response, self.version)
