"""Decides what follows when a process ends."""

import enum
from typing import Final, final

__all__ = ["Next", "RestartPolicy"]

INITIAL: Final = 0.5
MAXIMUM: Final = 30.0
"""Seconds between two starts of a process that ends again and again."""

HEALTHY_AFTER: Final = 10.0
"""Seconds after which a process counts as having started."""

SUCCESS: Final = 0
USAGE: Final = 2
"""The exit code of a process that cannot work, as in `exit_codes.ExitCode`."""


class Next(enum.Enum):
    """The steps that can follow the end of a process."""

    RESTART = enum.auto()
    """It is started again, after a delay."""
    WAIT_FOR_CHANGE = enum.auto()
    """It is started again when a file has changed."""
    FINISHED = enum.auto()
    """It is not started again; the others go on."""
    STOP_ALL = enum.auto()
    """None of the processes can work: all are stopped."""


@final
class RestartPolicy:
    """The restarts of one process; times in seconds.

    A process that worked for a while is started again immediately: its records wait. If
    it ends soon after its start, each further restart waits twice as long as the last.

    `watches_changes` says that a change of its files starts the process again.
    """

    def __init__(self, *, watches_changes: bool = False) -> None:
        self._final = Next.WAIT_FOR_CHANGE if watches_changes else None
        self._failures = 0

    def after_end(self, code: int, ran_for: float) -> tuple[Next, float]:
        """Return what follows an exit code, and after which delay.

        `ran_for` is the time from the start of the process to its end. A negative code
        is the number of the signal that ended it.
        """
        if code in (SUCCESS, USAGE):
            self._failures = 0
            end = Next.FINISHED if code == SUCCESS else Next.STOP_ALL
            return self._final or end, 0.0
        if ran_for >= HEALTHY_AFTER:
            self._failures = 0
        self._failures += 1
        return Next.RESTART, self._delay()

    def reset(self) -> None:
        """Start immediately after the next failure: the program has changed."""
        self._failures = 0

    def _delay(self) -> float:
        if self._failures == 1:
            return 0.0
        # Without a limit of ten doublings the power would overflow in the end.
        return min(MAXIMUM, INITIAL * 2.0 ** min(self._failures - 2, 10))
