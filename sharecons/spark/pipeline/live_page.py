"""The page of the run that writes batches at the moment, for `--page`."""

import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from sharecons.errors import ConfigurationError
from sharecons.spark.pipeline.files import replace_local_file
from sharecons.spark.pipeline.page import make_page
from sharecons.spark.pipeline.run_stats import RunStats

__all__ = ["LivePage"]

INTERVAL: Final = 10.0
"""Seconds between two writes of the page."""

MAX_SHARE: Final = 0.05
"""The share of the time that making pages takes: 100,000 batches take two seconds."""


class LivePage:
    """Writes the page of a run while it runs.

    An error while writing is reported, and does not end the run.

    Args:
        path: the file.
        title: the title of the page.
        clock: returns the time in seconds.

    Raises:
        ConfigurationError: the directory of the file is not writable.
    """

    def __init__(
        self, path: str, title: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = Path(path).absolute()
        if not os.access(self._path.parent, os.W_OK):
            raise ConfigurationError(f"--page {path}: its directory is not writable")
        self._title = title
        self._clock = clock
        self._written_at: float | None = None
        self._pause = INTERVAL
        self._count = 0
        self._error = ""

    def update(self, run: RunStats) -> None:
        """Write the page if there are new batches and the last write is not recent."""
        if run.count == self._count:
            return
        if self._written_at is None or self._clock() - self._written_at >= self._pause:
            self.write(run)

    def write(self, run: RunStats) -> None:
        """Write the page; report an error to stderr, unless it is the one before."""
        began = self._clock()
        # Spark's thread can add a batch meanwhile: the next update then shows it.
        count = run.count
        latest = run.latest()
        missing = []
        if len(latest) < count:
            missing.append(
                f"These are the last {len(latest):,} of {count:,} batches. The command "
                "`page` makes a page of all."
            )
        page = make_page(
            latest, title=self._title, made_at=datetime.now(UTC), problems=missing
        )
        try:
            replace_local_file(str(self._path), page.encode())
            self._error = ""
        except OSError as error:
            if str(error) != self._error:
                self._error = str(error)
                sys.stderr.write(f"pipeline: the page is not written: {error}\n")
        self._count = count
        self._written_at = self._clock()
        self._pause = max(INTERVAL, (self._written_at - began) / MAX_SHARE)
