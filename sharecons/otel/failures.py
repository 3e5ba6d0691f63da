"""Failures of the application's processors, samplers and propagators.

A failure ends nothing and changes no record. The span, the context or the measurement
is missing, and a log line says why.
"""

import time
from typing import Final

from sharecons.log import get_logger

__all__ = ["Failures"]

INTERVAL: Final = 60.0
"""Seconds between two log lines."""


class Failures:
    """Logs failures, one in each INTERVAL, with the number since the last line."""

    def __init__(self) -> None:
        self._log = get_logger(__name__)
        self._next_line = 0.0
        self._count = 0

    def report(self, what: str) -> None:
        """Log the exception that is being handled."""
        self._count += 1
        now = time.monotonic()
        if now >= self._next_line:
            self._next_line = now + INTERVAL
            count, self._count = self._count, 0
            self._log.exception("OpenTelemetry failed", what=what, failures=count)
