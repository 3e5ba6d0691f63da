"""The timeout of the exchanges of one connection: on asyncio, one timer for all.

A timer for each exchange takes longer than sending the request. So the timer is not
cancelled when an exchange ends. When it expires, it is set again to the deadline of the
exchange in progress.

If a timer expires far too late, the process was stopped or the event loop blocked. Then
the response perhaps waits in the socket: timers can run before it is read.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Final, final

import anyio

from sharecons.net.io.event_loop import running_clock
from sharecons.wire.codec.api import Frame

__all__ = ["GRACE", "ExchangeTimeout", "exchange_within"]

LATE: Final = 1.0
"""Seconds after the deadline from which a timer is far too late."""

GRACE: Final = 1.0
"""Seconds to read a response after a timer that was far too late."""


@final
class ExchangeTimeout:
    """Calls a function when an exchange has taken too long.

    Args:
        on_timeout: is called at the deadline of the last exchange, even if that has
            ended.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, on_timeout: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._clock = running_clock()
        self._on_timeout = on_timeout
        self._deadline = math.inf
        self._timer: asyncio.TimerHandle | None = None
        self._expires_at = math.inf

    def start(self, seconds: float) -> None:
        """Start an exchange that can take this long."""
        self._deadline = self._clock() + seconds
        if self._deadline < self._expires_at:
            self.cancel()
            self._set_timer()

    def cancel(self) -> None:
        """Do not call the function until the next `start`."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer, self._expires_at = None, math.inf

    def _set_timer(self) -> None:
        self._expires_at = self._deadline
        self._timer = self._loop.call_at(self._deadline, self._expire)

    def _expire(self) -> None:
        late = self._clock() - self._expires_at
        self._timer, self._expires_at = None, math.inf
        if late > LATE:
            self._deadline = max(self._deadline, self._clock() + GRACE)
        if self._deadline <= self._clock():
            self._on_timeout()
        elif self._deadline < math.inf:
            self._set_timer()


async def exchange_within(
    timeout: float,
    send: Callable[[], Awaitable[None]],
    receive: Callable[[], Awaitable[Frame]],
) -> Frame:
    """Send a request and receive its response, for transports without a timer.

    Args:
        timeout: in seconds.
        receive: is called again if it was cancelled by a timeout that was too late.

    Raises:
        TimeoutError: the exchange has taken too long.
    """
    is_sent = False
    with anyio.move_on_after(timeout) as scope:
        await send()
        is_sent = True
        return await receive()
    if not is_sent or anyio.current_time() - scope.deadline <= LATE:
        raise TimeoutError
    with anyio.fail_after(GRACE):
        return await receive()
