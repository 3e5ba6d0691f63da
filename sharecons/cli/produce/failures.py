"""The lines that were not written, for a person to read."""

from bisect import bisect_right
from collections.abc import Callable
from typing import Final

from sharecons.cli.exit_codes import ExitCode, exit_code_of

__all__ = ["FailedLines"]

MAX_SHOWN: Final = 10
"""Failed lines with a message of their own. A dead broker fails all that are open."""

MAX_RANGES: Final = 20
"""Ranges of line numbers in the summary."""


class FailedLines:
    """Collects failed lines, and reports the first ones immediately.

    Attributes:
        exit_code: of the command.
    """

    def __init__(self, write_error: Callable[[str], object]) -> None:
        self.exit_code = ExitCode.SUCCESS
        self._write_error = write_error
        self._shown = 0
        self._count = 0
        # Sorted first and last numbers of ranges without a gap between them.
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    def add(self, line: int, error: Exception) -> None:
        """Add a line that was not written, or not confirmed."""
        self.exit_code = max(self.exit_code, exit_code_of(error))
        self._count += 1
        self._insert(line)
        if self._shown < MAX_SHOWN:
            self._shown += 1
            self._write_error(f"line {line}: {error}")

    def summary(self, lines: int) -> str | None:
        """Return a line about the failed ones, or None; `lines` were read."""
        if not self._count:
            return None
        ranges = [
            f"{first}-{last}" if last > first else f"{first}"
            for first, last in zip(self._firsts, self._lasts, strict=True)
        ]
        if left_out := len(ranges) - MAX_RANGES:
            ranges[MAX_RANGES:] = [f"and {left_out} more ranges"] * (left_out > 0)
        return f"{self._count} of {lines} lines failed: {', '.join(ranges)}"

    def _insert(self, line: int) -> None:
        firsts, lasts = self._firsts, self._lasts
        at = bisect_right(firsts, line)
        joins_previous = at > 0 and lasts[at - 1] == line - 1
        joins_next = at < len(firsts) and firsts[at] == line + 1
        if joins_previous and joins_next:
            lasts[at - 1] = lasts.pop(at)
            del firsts[at]
        elif joins_previous:
            lasts[at - 1] = line
        elif joins_next:
            firsts[at] = line
        else:
            firsts.insert(at, line)
            lasts.insert(at, line)
