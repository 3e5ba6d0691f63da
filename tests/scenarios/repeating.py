"""Requests that are repeated until a broker's response is the expected one."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

__all__ = ["repeat"]

ResponseT = TypeVar("ResponseT")


async def repeat(
    request: Callable[[], Awaitable[ResponseT]],
    *,
    until: Callable[[ResponseT], object],
    within: float = 30.0,
    pause: float = 0.02,
) -> ResponseT:
    """Repeat a request until `until` of its response is true; return that response."""
    with anyio.fail_after(within):
        while not until(response := await request()):
            await anyio.sleep(pause)  # real time: the broker works between requests
    return response
