"""Calls that were cancelled, and have not ended yet.

A handler can clean up for a while. If its record is delivered again meanwhile, the next
call waits for the end of the first one: one worker never processes a record twice at
the same time. A thread goes on after its call has ended; the next call does not wait
for it.
"""

from typing import Final, final

from sharecons.worker.machine.item import Call, WorkItem
from sharecons.worker.positions import position

__all__ = ["PAUSE", "EndingCalls"]

PAUSE: Final = 0.05
"""Seconds until a record whose earlier call has not ended is tried again."""


@final
class EndingCalls:
    """The cancelled calls of one worker, by the positions of their records."""

    def __init__(self) -> None:
        self._calls: dict[tuple[str, int, int], Call] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, item: WorkItem, call: Call) -> None:
        """Remember a call that runs on although its record has ended."""
        self._calls[position(item.record)] = call

    def has(self, item: WorkItem) -> bool:
        """Return whether a call with an earlier delivery of this record runs."""
        return position(item.record) in self._calls

    def on_call_ended(self, call: Call) -> None:
        """Forget the records of a call that has ended."""
        for item in call.items:
            at = position(item.record)
            if self._calls.get(at) is call:
                del self._calls[at]
