"""Calls that were cancelled, and have not ended yet.

A handler can clean up for a while. If its record is delivered again meanwhile, the next
call waits for the end of the first one: one worker never processes a record twice at
the same time. A thread goes on after its call has ended; it is not waited for.
"""

from typing import Any, Final, final

from sharecons.worker.machine.item import WorkItem
from sharecons.worker.positions import position

__all__ = ["PAUSE", "EndingCalls"]

PAUSE: Final = 0.05
"""Seconds until the next look at a call that has not ended."""


@final
class EndingCalls:
    """The cancelled calls of one worker, by the positions of their records."""

    def __init__(self) -> None:
        self._items: dict[Any, WorkItem] = {}

    def add(self, item: WorkItem) -> None:
        """Note that the call with this record is cancelled."""
        self._items[position(item.record)] = item

    def has(self, record: Any) -> bool:
        """Return whether a call with an earlier delivery of this record runs."""
        if not self._items:
            return False
        earlier = self._items.get(position(record))
        return earlier is not None and earlier.is_in_call

    def forget_ended(self) -> None:
        """Forget the calls that have ended; call this once a second or so."""
        if self._items:
            self._items = {
                at: item for at, item in self._items.items() if item.is_in_call
            }
