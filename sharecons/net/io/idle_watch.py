"""Watching a connection while no request is in flight.

A broker releases all locks of a connection that ends. So the client must notice the
end immediately, not with the next request. On asyncio the event loop reports it; on
trio a task waits for it while nothing else reads the connection.
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
    """Await `wait()`; call `on_lost` with the result of `end()` if that returns first.

    `end` is cancelled when `wait` returns.
    """

    async def watch() -> None:
        on_lost(await end())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        await wait()
        tasks.cancel_scope.cancel()
