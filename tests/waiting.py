"""Waiting for a condition that has no event, in real or virtual time."""

import time
from collections.abc import Callable
from typing import TypeVar

import anyio

__all__ = ["PAUSE", "until", "until_true"]

PAUSE = 0.01
"""Seconds between two looks at a condition."""

ResultT = TypeVar("ResultT")


async def until(
    condition: Callable[[], object], within: float = 15.0, *, pause: float = PAUSE
) -> None:
    """Wait until the condition is true; fail after `within` seconds."""
    with anyio.fail_after(within):
        while not condition():
            await anyio.sleep(pause)  # real time: the condition has no event


def until_true(
    condition: Callable[[], ResultT],
    within: float = 30.0,
    *,
    what: str = "the condition",
    pause: float = PAUSE,
) -> ResultT:
    """Call the condition until it returns something true, and return that.

    Raises:
        AssertionError: `within` seconds have passed.
    """
    deadline = time.monotonic() + within
    while not (result := condition()):
        assert time.monotonic() < deadline, f"{what} is not true after {within:g} s"
        time.sleep(pause)  # real time: another thread or process works meanwhile
    return result
