"""Watching a connection while no request is in flight.

A broker releases all locks of a connection that ends, so its end has to be noticed at
once, and not with the next request. On asyncio the event loop reports it; elsewhere a
task waits for it, only while nothing else reads the connection.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import anyio

__all__ = ["UNREQUESTED", "OnLost", "Wait", "wait_while_watching"]

Wait = Callable[[], Awaitable[None]]
OnLost = Callable[[Exception], None]

UNREQUESTED: Final = "the broker sent bytes that were not requested"


async def wait_while_watching(
    wait: Wait, end: Callable[[], Awaitable[Exception]], on_lost: OnLost
) -> None:
    """Await `wait()`; call `lost` with what `end()` returns if it returns before.

    `end` is cancelled when `wait` returns.
    """

    async def watch() -> None:
        on_lost(await end())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        await wait()
        tasks.cancel_scope.cancel()
