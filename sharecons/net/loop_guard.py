"""Rejecting calls from threads and event loops other than the one in use."""

import asyncio
import sys
from typing import Any

from sharecons.errors import WrongThreadError
from sharecons.net.io.clock import in_trio

__all__ = ["LoopGuard"]


class LoopGuard:
    """Checks that calls are made in the event loop that created the guard.

    Args:
        owner: the object to guard, for the message: "consumer".
    """

    def __init__(self, owner: str) -> None:
        self._what = owner
        self._loop = _running_loop()

    def check(self) -> None:
        """Check that the caller runs in that event loop.

        Raises:
            WrongThreadError: it runs in another event loop, or in a thread without one.
        """
        if _running_loop() is not self._loop:
            owner = self._what
            raise WrongThreadError(
                f"the {owner} was called outside of the event loop that it was started "
                "in; the call changed nothing. From a thread, use "
                "asyncio.run_coroutine_threadsafe(), anyio.from_thread.run() or "
                "trio.from_thread.run() for coroutines, and for plain methods "
                "loop.call_soon_threadsafe() or from_thread.run_sync(). Another event "
                f"loop needs another {owner}"
            )


def _running_loop() -> object:
    """Return what identifies the event loop of this thread; None if none runs."""
    if in_trio():
        token: Any = sys.modules["trio"].lowlevel.current_trio_token()
        return token
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
