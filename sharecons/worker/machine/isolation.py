"""Runs records alone that perhaps end their process.

A record that ends its process (a segmentation fault, no memory) takes a delivery from
each record that the process holds. Brokers count deliveries, and not why they ended. So
a record that was delivered several times without an outcome is suspect.

Theory of operation
-------------------
A suspect is called once no other call runs and no copy is being written, and until its
call ends nothing else is called and nothing is fetched. Both last for LIMIT seconds at
most: a handler that hangs does not end its process, and does not stop the worker. A
call or copy that has outlived the wait of a suspect is not waited for again, and while
MAX_HUNG suspects run that have outlived LIMIT, no record is isolated. So suspects that
hang hold the other records up for 2 * MAX_HUNG * LIMIT seconds in all.

The shell first waits until acknowledgements of earlier records are confirmed. Otherwise
each crash would take a delivery from records that have been processed, until they are
dead letters.

Records that are held beside a suspect lose a delivery with it, called or not. So after
a suspect, and at the start of a process, one record is taken, and then twice as many
each time. Suspects begin two deliveries before the last one: if several are held when
one ends the process, the others have another delivery, in which they arrive alone.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, final

from sharecons.worker.machine.item import Call, ItemState, WorkItem

__all__ = ["LIMIT", "Isolation"]

LIMIT: Final = 10.0
"""Seconds for which a suspect waits for other calls, and for which it runs alone."""

MAX_HUNG: Final = 3
"""How many suspects can outlive LIMIT. More of them show that handlers hang or are
slow, as with a database that does not respond, and that they do not end the process."""

MAX_TAKEN: Final = 1 << 20


@final
class Isolation:
    """The suspects of one worker.

    Args:
        is_suspect: returns whether a redelivered record is suspect.

    Attributes:
        max_taken: how many records to take at a time.
        running: the call that runs alone, or None.
    """

    def __init__(self, is_suspect: Callable[[WorkItem], bool]) -> None:
        self._is_suspect = is_suspect
        self._waiting: deque[WorkItem] = deque()
        self.running: Call | None = None
        self._until = 0.0
        self._hung: list[Call] = []
        self._given_up = 0
        self._has_found = False
        self.max_taken = 1

    def claim(self, item: WorkItem) -> bool:
        """Isolate a record that is ready for its first call, if it is suspect."""
        if item.call is not None or not self._is_suspect(item) or self._is_off:
            return False
        item.state = ItemState.ISOLATED
        self._waiting.append(item)
        self._has_found = True
        return True

    @property
    def _is_off(self) -> bool:
        """True while the suspects that hang show that handlers hang."""
        self._hung = [call for call in self._hung if call.is_running]
        return len(self._hung) >= MAX_HUNG

    def on_taken(self, busy: int) -> None:
        """Limit what is taken next, after records were taken and claimed.

        `busy` is as for `take`.
        """
        self._given_up = min(self._given_up, busy)
        self.max_taken = 1 if self._has_found else min(2 * self.max_taken, MAX_TAKEN)
        self._has_found = False

    @property
    def is_active(self) -> bool:
        """True while a suspect waits or runs alone: no others are called or fetched."""
        while self._waiting and self._waiting[0].state is not ItemState.ISOLATED:
            self._waiting.popleft()  # its lock is lost, for example
        call = self.running
        if call is not None and not call.is_running and not _begins(call):
            self.running, self._until = None, 0.0
        return self.running is not None or bool(self._waiting)

    def take(self, now: float, *, busy: int) -> WorkItem | None:
        """Return the suspect to call now; None if none can be called.

        Call `on_called` next. Afterwards `is_active` can be False.

        Args:
            busy: how many calls run, and how many copies are written.
        """
        if self.running is not None:
            if now < self._until:
                return None
            self._hung.append(self.running)
            self.running, self._until = None, 0.0
        if self._is_off:
            self._end_all()
        if not self._waiting or self._must_wait(now, busy):
            return None
        self._until = 0.0
        item = self._waiting.popleft()
        if item.queue.is_saturated:
            item.queue.end_isolation(item)  # its handler's calls hang
            return None
        return item

    def _must_wait(self, now: float, busy: int) -> bool:
        self._given_up = min(self._given_up, busy)
        if busy > self._given_up:
            self._until = self._until or now + LIMIT
            if now < self._until:
                return True
            self._given_up = busy
        return False

    def _end_all(self) -> None:
        """Let the suspects start as all other records."""
        while self.is_active:
            item = self._waiting.popleft()
            item.queue.end_isolation(item)

    def on_called(self, call: Call, now: float) -> None:
        """Start the time limit of a suspect's call."""
        self.running, self._until = call, now + LIMIT

    def next_due(self) -> float:
        """Return when to call `take` again without another event, while active."""
        return self._until


def _begins(call: Call) -> bool:
    return any(item.is_running for item in call.items)
