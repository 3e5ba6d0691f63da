"""The demo as lines of text, for logs and for output that is no terminal."""

from collections.abc import Callable
from types import TracebackType
from typing import ClassVar, Final

from sharecons.demo.job_tracker import Fate, Ledger, What
from sharecons.demo.messages import account, closing, sentence

__all__ = ["TextView"]

EVERY: Final = 2.0
"""Seconds between two lines that tell how far it is."""


class TextView:
    """Prints what happened since the last look."""

    interval: ClassVar[float] = 0.2

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._told = 0
        self._next = 0.0

    def __enter__(self) -> "TextView":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        pass

    def opened(self, title: str) -> None:
        self._write(title)

    def look(self, ledger: Ledger, now: float) -> None:
        """Print the events that are new, and now and then how far it is."""
        events = ledger.events[self._told :]
        self._told += len(events)
        for event in events:
            who = event.who if event.what is not What.ARCHIVED else "broker"
            self._write(f"{event.at:6.1f} s  {who:<7}{sentence(event)}")
        if now >= self._next:
            self._next = now + EVERY
            self._write(f"{now:6.1f} s  {_progress(ledger)}")

    def closed(self, ledger: Ledger, now: float, *, interrupted: bool) -> None:
        self._write("")
        for what, number, made_of in account(ledger.sums()):
            self._write(f"  {what:<14}{number:>6}  {made_of}".rstrip())
        for words in closing(ledger, now, interrupted=interrupted):
            self._write(words)


def _progress(ledger: Ledger) -> str:
    return (
        f"done {ledger.done} of {ledger.expected}, "
        f"in hand {ledger.count(Fate.HELD) + ledger.count(Fate.SAID)}, "
        f"waiting {ledger.count(Fate.WAITING)}, "
        f"to come {ledger.expected - len(ledger.jobs)}"
    )
