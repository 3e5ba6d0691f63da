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

REPORT_TIMEOUT: Final = 1.0
"""Seconds for the report: a blocked thread can hold the lock of the log."""


@final
class ExitDeadline:
    """Ends this process without cleaning up; locks of records end by themselves.

    Any thread can use it.

    Args:
        report: called, in a thread, just before the end.
    """

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._exiting = threading.Lock()

    def set(self, seconds: float, code: int, what: str = "handlers") -> None:
        """End the process after `seconds` with an exit code.

        The earliest of several deadlines ends it. `what` is what the process then waits
        for.
        """
        timer = threading.Timer(seconds, self._exit, (seconds, code, what))
        timer.daemon = True
        timer.start()

    def _exit(self, seconds: float, code: int, what: str) -> None:
        if not self._exiting.acquire(blocking=False):
            return  # another deadline is writing its line
        write = threading.Thread(target=self._write, args=(seconds, what), daemon=True)
        write.start()
        write.join(REPORT_TIMEOUT)
        os._exit(code)

    def _write(self, seconds: float, what: str) -> None:
        self._report(f"{what} did not end in {seconds:g} s; the process exits")
