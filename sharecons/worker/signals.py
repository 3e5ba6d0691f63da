"""SIGTERM and SIGINT: the first stops a worker, the second cancels its handlers."""

import signal
import threading
from collections.abc import Callable
from typing import Final

import anyio

from sharecons.log import get_logger

__all__ = ["stop_on_signals"]

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

_log = get_logger(__name__)


async def stop_on_signals(
    stop: Callable[[], None], stop_now: Callable[[], None]
) -> None:
    """Call `stop` at the first signal and `stop_now` at each further one.

    Runs until cancelled. Returns immediately where signals cannot be received: in
    another thread than the main one, and on Windows.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    try:
        receiver = anyio.open_signal_receiver(*SIGNALS)
        with receiver as signals:
            act = stop
            async for received in signals:
                _log.info("signal received", signal=signal.Signals(received).name)
                act()
                act = stop_now
    except NotImplementedError:
        _log.debug("signals cannot be received on this platform")
