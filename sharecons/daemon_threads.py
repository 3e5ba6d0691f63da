"""Calls in daemon threads, which delay no end of the program.

asyncio's executor and anyio's threads are joined when the event loop or the interpreter
ends: a call whose timeout has passed would keep the process until it returns, such as a
look-up of a host name for ten seconds. trio's threads are daemons.
"""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

__all__ = ["call_in_daemon_thread", "start_call"]

T = TypeVar("T")


async def call_in_daemon_thread(function: Callable[[], T]) -> T:
    """Call a function in a thread; if this is cancelled, the result is ignored."""
    # Imported here: the errors' module starts calls, and the command line's help needs
    # errors, but no event loop.
    import asyncio

    from anyio import to_thread

    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        return await to_thread.run_sync(function, abandon_on_cancel=True)
    return await asyncio.wrap_future(start_call(function))


def start_call(function: Callable[[], T]) -> "Future[T]":
    """Start a call in a daemon thread; the future cannot be cancelled."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result = function()
        except BaseException as error:  # noqa: BLE001 (raised by the caller)
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=run, name="sharecons-call", daemon=True).start()
    return future
