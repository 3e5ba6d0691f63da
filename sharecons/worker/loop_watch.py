"""The time since the event loop of a worker last ran, for other threads."""

import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import final

from sharecons.error_text import application_line

__all__ = ["LoopWatch"]


@final
class LoopWatch:
    """Measures the time since the event loop last ran.

    The clock is not the event loop's, which stands still while the loop is blocked on
    some loops.

    Args:
        clock: returns the time in seconds, in any thread.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: float | None = None
        self._thread = 0

    def beat(self) -> None:
        """Record that the event loop runs; call this in it twice a second."""
        self._last = self._clock()
        self._thread = threading.get_ident()

    def end(self) -> None:
        """Stop the watch: no beats follow."""
        self._last = None

    @property
    def seconds(self) -> float:
        """Seconds since the last beat; 0 before the first one and after `end`."""
        last = self._last
        return 0.0 if last is None else self._clock() - last

    def line(self) -> str | None:
        """Return the application's line at which the thread of the event loop is now.

        None in this thread itself.
        """
        frame = sys._current_frames().get(self._thread)
        if frame is None or self._thread == threading.get_ident():
            return None
        return application_line([*traceback.walk_stack(frame)])
