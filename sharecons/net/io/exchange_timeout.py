"""The timeout of the exchanges of one connection: one timer for all of them.

A timer for each exchange takes longer than sending the request. So the timer is not
cancelled when an exchange ends. When it expires, it is set again to the deadline of the
exchange in progress.
"""

import asyncio
import math
from collections.abc import Callable
from typing import final

from sharecons.net.io.event_loop import running_clock

__all__ = ["ExchangeTimeout"]


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
        self._timer, self._expires_at = None, math.inf
        if self._deadline <= self._clock():
            self._on_timeout()
        elif self._deadline < math.inf:
            self._set_timer()
