"""The clock of the running event loop, without anyio's look-ups around it.

`anyio.current_time()` finds out which library runs, at every call; loops that
read the clock for every record cannot have that.
"""

import asyncio  # for nothing but its running loop's clock
import sys
import time
from collections.abc import Callable

__all__ = ["Clock", "in_trio", "running_clock"]

Clock = Callable[[], float]


def running_clock() -> Clock:
    """Give a function that tells the same time as `anyio.current_time()`."""
    if in_trio():
        now: Clock = sys.modules["trio"].lowlevel.current_clock().current_time
        return now
    loop = asyncio.get_running_loop()
    if getattr(type(loop), "time", None) is asyncio.BaseEventLoop.time:
        return time.monotonic  # which is all that it calls, in Python
    return loop.time


def in_trio() -> bool:
    """Tell whether the running event loop is trio's."""
    # Not imported for its own sake: it is there already if it runs.
    trio = sys.modules.get("trio")
    return trio is not None and trio.lowlevel.in_trio_run()
