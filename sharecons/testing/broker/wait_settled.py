"""Waiting until a share group is settled."""

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import anyio
import anyio.lowlevel

from sharecons.testing.broker.fault_arguments import check_seconds

__all__ = ["wait", "wait_sync"]

POLL_INTERVAL: Final = 0.01
"""Seconds between the first checks."""
MAX_REASONS: Final = 20
"""The maximum number of reasons in an error message."""


async def wait(
    group_id: str, unsettled: Callable[[], list[str]], timeout: float
) -> None:
    """Wait until nothing is unsettled.

    Raises:
        TimeoutError: something is still unsettled after `timeout` seconds.
    """
    check_seconds("timeout", timeout)
    await anyio.lowlevel.checkpoint()
    began = anyio.current_time()
    while reasons := unsettled():
        elapsed = anyio.current_time() - began
        if elapsed >= timeout:
            raise _timeout(group_id, reasons, timeout)
        await anyio.sleep(_pause(elapsed, timeout))


def wait_sync(
    group_id: str, unsettled: Callable[[], list[str]], timeout: float
) -> None:
    """Block the thread until nothing is unsettled.

    Raises:
        TimeoutError: something is still unsettled after `timeout` seconds.
        RuntimeError: an event loop runs in this thread.
    """
    if _in_event_loop():
        raise RuntimeError(
            "wait_until_settled_sync() would block the event loop of this thread: use "
            "`await wait_until_settled()`"
        )
    check_seconds("timeout", timeout)
    began = time.monotonic()
    while reasons := unsettled():
        elapsed = time.monotonic() - began
        if elapsed >= timeout:
            raise _timeout(group_id, reasons, timeout)
        time.sleep(_pause(elapsed, timeout))


def _pause(elapsed: float, timeout: float) -> float:
    """Return the seconds until the next check.

    It grows with the wait: checks every 10 ms would take most of the real time of an
    hour on a virtual clock.
    """
    return max(POLL_INTERVAL, min(elapsed / 100, timeout - elapsed))


def _timeout(group_id: str, reasons: Sequence[str], timeout: float) -> TimeoutError:
    lines = [f"share group {group_id!r} is not settled after {timeout:g} s:"]
    lines += reasons[:MAX_REASONS]
    if len(reasons) > MAX_REASONS:
        lines.append(f"and {len(reasons) - MAX_REASONS} more")
    return TimeoutError("\n  ".join(lines))


def _in_event_loop() -> bool:
    trio: Any = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        return True
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
