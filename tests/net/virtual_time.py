"""Event loops whose clock jumps to the next deadline when there is nothing else to do.

An hour of waiting takes no time, and takes it the same way each time. For memory
streams only: such a clock would jump past a real socket's bytes.
"""

import asyncio
import selectors

from trio.testing import MockClock

__all__ = ["BACKENDS", "VirtualTimeLoop", "backend"]

PATIENCE = 5.0
"""Real seconds after which a loop that waits for nothing in particular is stuck."""


class _Leap(selectors.DefaultSelector):
    """Passes the time by moving the clock."""

    passed = 0.0

    def select(self, timeout=None):
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            ready = super().select(PATIENCE)
            assert ready, "every task waits, and none for a time"
            return ready
        self.passed += timeout
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self):
        self._leap = _Leap()
        super().__init__(self._leap)

    def time(self):
        return self._leap.passed


BACKENDS = ("asyncio", "trio")


def backend(name):
    """What anyio's pytest plugin takes for one of them."""
    if name == "trio":
        return "trio", {"clock": MockClock(autojump_threshold=0)}
    return "asyncio", {"loop_factory": VirtualTimeLoop}
