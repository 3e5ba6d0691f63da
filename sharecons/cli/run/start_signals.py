"""Signals before a worker runs, while the module of its handler is imported.

Process 1 of a container ignores signals for which it has no handler, so SIGTERM would
be lost.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from sharecons.cli.exit_codes import ExitCode
from sharecons.stop_signals import received_signals

__all__ = ["exiting_on_signals"]


@contextmanager
def exiting_on_signals() -> Iterator[None]:
    """Exit at a signal in this block, until a handler is installed that replaces this.

    The event loop installs one, so that no signal is lost between the two.
    """
    # On Windows Ctrl-C must raise KeyboardInterrupt, which asyncio handles.
    in_main_thread = threading.current_thread() is threading.main_thread()
    numbers = received_signals() if in_main_thread and sys.platform != "win32" else ()
    before = {number: signal.signal(number, _exit) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is _exit:
                signal.signal(number, handler)


def _exit(number: int, frame: FrameType | None) -> None:
    # The module could catch an exception. There is nothing to clean up: no record
    # was fetched.
    os._exit(ExitCode.SUCCESS)
