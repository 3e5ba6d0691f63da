"""One request and its answer, in steps that a fault can come between."""

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from sharecons.testing.broker.codec import Request, Response, names, response_frame
from sharecons.testing.broker.context import Context

__all__ = ["Exchange", "Journal", "LoggedRequest", "Work"]

REMEMBERED: Final = 100_000
"""Requests; a test looks at hundreds, and a broker in the foreground runs for days."""

Work: TypeAlias = Callable[[Request, Context], Awaitable[Response | None]]
"""Does what a request asks for, and gives the fields of the answer, if there is one."""


class LoggedRequest(NamedTuple):
    """What a broker was asked."""

    api: str
    """As Kafka's messages spell it: ShareFetch."""
    version: int
    client_id: str
    node_id: int
    at: float
    """Seconds, on the clock of the broker's event loop."""


class Journal:
    """What the brokers were asked, in order."""

    def __init__(self) -> None:
        self._asked: deque[LoggedRequest] = deque(maxlen=REMEMBERED)

    def note(self, context: Context) -> None:
        header = context.header
        api = names(header.api_key)
        self._asked.append(
            LoggedRequest(
                api, header.version, header.client_id, context.node_id, context.now
            )
        )

    def all(self) -> list[LoggedRequest]:
        return list(self._asked)

    def clear(self) -> None:
        self._asked.clear()


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request that waits for its answer."""

    request: Request
    context: Context
    work: Work
    version: int
    """Of the answer; the request's but where nobody could read that."""

    @property
    def api(self) -> str:
        return names(self.context.header.api_key)

    async def answer(self) -> None:
        """Do what it asks for, and answer."""
        await self.send(await self.done())

    async def done(self) -> Response | None:
        """Do what it asks for."""
        return await self.work(self.request, self.context)

    async def send(self, response: Response | None) -> None:
        """Send an answer; None where there is to be none."""
        if response is not None:
            await self.context.connection.send(self.frame(response))

    def frame(self, response: Response) -> bytes:
        return response_frame(self.context.header, response, self.version)
