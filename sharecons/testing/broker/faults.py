"""What the brokers are told to do wrong."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from sharecons.testing.broker.codec import Request
from sharecons.testing.broker.context import Context

__all__ = ["Faults", "Respond"]

Respond: TypeAlias = Callable[[Request, Context], Awaitable[bytes | None]]


class Faults:
    async def answer(
        self, request: Request, context: Context, respond: Respond
    ) -> None:
        frame = await respond(request, context)
        if frame is not None:
            await context.connection.send(frame)
