"""Ends a process that does not end by itself, for example for a handler in a thread."""

import os
import threading
from collections.abc import Callable
from typing import Final, final

__all__ = ["AT_ONCE", "MARGIN", "ExitDeadline"]

MARGIN: Final = 4.0
"""Seconds after the grace period to acknowledge and to leave the group. A supervisor
waits for a second more."""

AT_ONCE: Final = 1.0
"""Seconds from the second signal to the end, to release records and to leave."""


@final
class ExitDeadline:
    """Ends this process without cleaning up; locks of records end by themselves.

    Args:
        report: called, in a thread, just before the end.
    """

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._timer: threading.Timer | None = None

    def set(self, seconds: float, code: int, what: str = "handlers") -> None:
        """End the process after `seconds` with an exit code.

        Replaces an earlier deadline. `what` is what the process then waits for.
        """
        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(seconds, self._exit, (seconds, code, what))
        self._timer.daemon = True
        self._timer.start()

    def _exit(self, seconds: float, code: int, what: str) -> None:
        self._report(f"{what} did not end in {seconds:g} s; the process exits")
        os._exit(code)
