"""The demo as lines of text, for logs and when stdout is not a terminal."""

from collections.abc import Callable
from types import TracebackType
from typing import ClassVar, Final

from sharecons.demo.job_tracker import EventKind, JobState, JobTracker
from sharecons.demo.messages import closing_lines, describe_event, summary_rows

__all__ = ["TextView"]

PROGRESS_INTERVAL: Final = 2.0
"""Seconds between two lines that report the progress."""


class TextView:
    """Writes the events since the last update."""

    interval: ClassVar[float] = 0.2

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._event_count = 0
        self._next_progress = 0.0

    def __enter__(self) -> "TextView":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        pass

    def open(self, title: str) -> None:
        self._write(title)

    def update(self, tracker: JobTracker, now: float) -> None:
        """Write the new events, and the progress at intervals."""
        events = tracker.events[self._event_count :]
        self._event_count += len(events)
        for event in events:
            who = event.consumer if event.kind is not EventKind.ARCHIVED else "broker"
            self._write(f"{event.time:6.1f} s  {who:<7}{describe_event(event)}")
        if now >= self._next_progress:
            self._next_progress = now + PROGRESS_INTERVAL
            self._write(f"{now:6.1f} s  {_format_progress(tracker)}")

    def close(self, tracker: JobTracker, now: float, *, interrupted: bool) -> None:
        self._write("")
        for what, number, made_of in summary_rows(tracker.totals()):
            self._write(f"  {what:<14}{number:>6}  {made_of}".rstrip())
        for words in closing_lines(tracker, now, interrupted=interrupted):
            self._write(words)


def _format_progress(tracker: JobTracker) -> str:
    acquired = tracker.count(JobState.ACQUIRED) + tracker.count(JobState.UNCONFIRMED)
    return (
        f"done {tracker.done_count} of {tracker.expected}, "
        f"acquired {acquired}, "
        f"waiting {tracker.count(JobState.WAITING)}, "
        f"to send {tracker.expected - len(tracker.jobs)}"
    )
