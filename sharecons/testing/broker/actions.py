"""The actions of faults, which replace the normal response to a request."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Protocol, TypeAlias

import anyio

from sharecons.testing.broker.codec import ErrorCode, Request, Response, response_fields
from sharecons.testing.broker.context import Context, PartitionFault
from sharecons.testing.broker.error_responses import error_response
from sharecons.testing.broker.exchange import Exchange
from sharecons.testing.broker.signals import Signal

__all__ = [
    "Action",
    "Change",
    "Responder",
    "change",
    "corrupt",
    "cut",
    "delay",
    "garble",
    "hang_up",
    "lose",
    "refuse",
    "refuse_partitions",
    "respond",
    "respond_twice",
    "stall",
    "throttle",
]

Responder: TypeAlias = Callable[
    [Request, Context], Response | None | Awaitable[Response | None]
]
"""A test's own handler; returns the fields of the response, or None for none."""


Change: TypeAlias = Callable[[Response, Context], Response | Awaitable[Response]]
"""Returns the fields of the response to send instead of the broker's."""


class Action(Protocol):
    async def __call__(self, exchange: Exchange, undone: Signal, /) -> None:
        """Handle a request; `undone` is notified when the fault is removed."""
        ...


async def cut(exchange: Exchange, undone: Signal, /, *, after: bool) -> None:
    if after:
        await exchange.handle()
    exchange.context.connection.cut()


async def hang_up(exchange: Exchange, undone: Signal, /) -> None:
    await exchange.respond()
    exchange.context.connection.cut()


async def lose(exchange: Exchange, undone: Signal, /) -> None:
    await exchange.handle()


async def stall(exchange: Exchange, undone: Signal, /, *, seconds: float) -> None:
    await exchange.context.wait((undone,), exchange.context.now + seconds)
    await exchange.respond()


async def delay(exchange: Exchange, undone: Signal, /, *, seconds: float) -> None:
    response = await exchange.handle()
    await exchange.context.wait((undone,), exchange.context.now + seconds)
    await exchange.send(response)


async def refuse(
    exchange: Exchange, undone: Signal, /, *, code: ErrorCode, each: bool
) -> None:
    header = exchange.context.header
    await exchange.send(error_response(exchange.request, header, code, each=each))


async def refuse_partitions(
    exchange: Exchange, undone: Signal, /, *, fault: PartitionFault
) -> None:
    context = replace(exchange.context, partition_fault=fault)
    await replace(exchange, context=context).respond()


async def throttle(exchange: Exchange, undone: Signal, /, *, seconds: float) -> None:
    """Respond with a throttle time and read nothing for that long (KIP-219)."""
    response = await exchange.handle()
    if response is None:
        return
    api_key = exchange.context.header.api_key
    has_throttle_time = "throttle_time" in response_fields(api_key, exchange.version)
    await exchange.send(
        {**response, "throttle_time": seconds} if has_throttle_time else response
    )
    await exchange.context.wait((undone,), exchange.context.now + seconds)


async def respond_twice(exchange: Exchange, undone: Signal, /) -> None:
    response = await exchange.handle()
    await exchange.send(response)
    await exchange.send(response)


async def respond(exchange: Exchange, undone: Signal, /, *, by: Responder) -> None:
    response = by(exchange.request, exchange.context)
    await exchange.send(await response if isinstance(response, Awaitable) else response)


async def change(exchange: Exchange, undone: Signal, /, *, by: Change) -> None:
    response = await exchange.handle()
    if response is not None:
        changed = by(response, exchange.context)
        changed = await changed if isinstance(changed, Awaitable) else changed
        if changed is None:
            raise TypeError("the function of `change` must return a response, not None")
        await exchange.send(changed)


async def corrupt(
    exchange: Exchange, undone: Signal, /, *, change: Callable[[bytes], bytes]
) -> None:
    response = await exchange.handle()
    if response is not None:
        await exchange.context.connection.send(change(exchange.frame(response)))
    await anyio.lowlevel.checkpoint()


def garble(frame: bytes) -> bytes:
    """Invert every bit of a response except its length and correlation id."""
    return frame[:8] + bytes(byte ^ 0xFF for byte in frame[8:])
