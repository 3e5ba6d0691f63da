"""Runs records alone that perhaps end their process.

A record that ends its process (a segmentation fault, no memory) takes a delivery from
each record that the process holds. Brokers count deliveries, and not why they ended. So
a record that was delivered several times without an outcome is suspect.

Theory of operation
-------------------
A suspect is called once no other call runs and no copy is being written. Until it has
an outcome nothing else is called and nothing is fetched: while it waits for its next
attempt or for its copy, the crash of another record would take a delivery from it. Both
last for LIMIT seconds at most: a handler that hangs does not end its process, and does
not stop the worker. A call or copy that has outlived the wait of a suspect is not
waited for again, and while the worker holds MAX_HUNG suspects that have outlived LIMIT,
no record is isolated. So suspects that hang hold the other records up for
2 * MAX_HUNG * LIMIT seconds in all. If many fail, as without a database, their waits
have half of the time; further ones, and those beyond LIMIT, are beside the others.

The shell first waits until acknowledgements of earlier records are confirmed. Otherwise
each crash would take a delivery from records that have been processed, until they are
dead letters.

Records that are held beside a suspect lose a delivery with it, called or not. So after
a suspect, and at the start of a process, one record is taken, and then twice as many
each time. But another process can take many suspects in one fetch, and lose all of them
together. So suspects begin two deliveries before the last one. They run in the order of
their positions first, and against it the next time: the records before a crash have an
outcome by then, and the records behind it run before it now.
"""

import heapq
import itertools
import math
from collections.abc import Callable
from typing import Final, final

from sharecons.worker.machine.item import Call, ItemState, WorkItem

__all__ = ["LIMIT", "Isolation", "Rank"]

LIMIT: Final = 10.0
"""Seconds for which a suspect waits for other calls, and for which it is alone."""

MAX_HUNG: Final = 3
"""How many suspects can outlive LIMIT. More of them show that handlers hang, fail or
are slow, as with a database that does not respond, and do not end the process."""

MAX_REST: Final = 120.0
"""Seconds of waits in succession; with 60, simulations lost neighbours."""

MAX_TAKEN: Final = 1 << 20

Rank = tuple[float, int, int]

NEXT: Final[Rank] = -math.inf, 0, 0  # the next attempt of the record that is alone


@final
class Isolation:
    """The suspects of one worker.

    Args:
        rank_of: returns the rank of a redelivered record if it is suspect, or None;
            suspects run in the order of their ranks.

    Attributes:
        max_taken: how many records to take at a time.
        running: the first call of the record that is alone, or None.
    """

    def __init__(self, rank_of: Callable[[WorkItem], Rank | None]) -> None:
        self._rank_of = rank_of
        self._waiting: list[tuple[Rank, int, WorkItem]] = []
        self._numbers = itertools.count()
        self.running: Call | None = None
        self._alone: WorkItem | None = None
        self._until = self._wait_end = self._rest_end = 0.0
        self._hung: list[WorkItem] = []
        self._given_up = 0
        self.max_taken = 1

    def claim(self, item: WorkItem) -> bool:
        """Isolate a record that is ready for a call, if it is suspect."""
        rank = NEXT if item is self._alone else None
        if rank is None and item.call is None and not self._is_off:
            rank = self._rank_of(item)
        if rank is None:
            return False
        item.state = ItemState.ISOLATED
        heapq.heappush(self._waiting, (rank, next(self._numbers), item))
        return True

    @property
    def _is_off(self) -> bool:
        """True while suspects that have outlived LIMIT show that handlers hang."""
        self._hung = [item for item in self._hung if _is_held(item)]
        return len(self._hung) >= MAX_HUNG

    def on_taken(self, busy: int, *, has_suspects: bool) -> None:
        """Limit what is taken next, after records were taken; `busy` as for `take`."""
        self._given_up = min(self._given_up, busy)
        is_low = has_suspects and not self._is_off
        self.max_taken = 1 if is_low else min(2 * self.max_taken, MAX_TAKEN)

    @property
    def is_active(self) -> bool:
        """True while a suspect waits or is alone: no others are called or fetched."""
        while self._waiting and self._waiting[0][2].state is not ItemState.ISOLATED:
            heapq.heappop(self._waiting)  # its lock is lost, for example
        if self._alone is not None and not _is_held(self._alone):
            self._end()
        if self._alone is None and not self._waiting:
            self._until = 0.0  # of a suspect that was lost in its wait, for example
        return self._alone is not None or bool(self._waiting)

    def _end(self) -> None:
        self.running, self._alone, self._until = None, None, 0.0

    def take(self, now: float, *, busy: int) -> WorkItem | None:
        """Return the suspect to call now; None if none can be called.

        Call `on_called` next. Afterwards `is_active` can be False.

        Args:
            busy: how many calls run, and how many copies are written.
        """
        if self._alone is not None and now >= self._until:
            self._hung.append(self._alone)
            self._end()
        if self._alone is not None:
            self._alone.queue.wake(now)
            if self._alone.is_waiting and not self._waits_alone(self._alone.due, now):
                self._end()
            elif self._alone.state is not ItemState.ISOLATED:
                return None
        elif self._is_off:
            self._end_all()
        if not self._waiting or (self._alone is None and self._must_wait(now, busy)):
            return None
        item = heapq.heappop(self._waiting)[2]
        if item.queue.is_saturated:
            item.queue.end_isolation(item)  # its handler's calls hang
            return None
        return item

    def _waits_alone(self, due: float, now: float) -> bool:
        """Return whether a suspect that has failed is alone until its next attempt."""
        if due > self._until:
            return False
        if due <= self._wait_end:
            return True  # it waits already
        rest_end = max(now, self._rest_end) + 2.0 * (due - now)
        if rest_end > now + MAX_REST:
            return False
        self._wait_end, self._rest_end = due, rest_end
        return True

    def _must_wait(self, now: float, busy: int) -> bool:
        self._given_up = min(self._given_up, busy)
        if busy > self._given_up:
            self._until = self._until or now + LIMIT
            if now < self._until:
                return True
            self._given_up = busy
        self._until = 0.0
        return False

    def _end_all(self) -> None:
        """Let the suspects start as all other records."""
        while self.is_active:
            item = heapq.heappop(self._waiting)[2]
            item.queue.end_isolation(item)

    def on_called(self, call: Call, now: float) -> None:
        """Start the time limit of a suspect, at its first call."""
        (item,) = call.items
        if item is not self._alone:
            self.running, self._alone, self._until = call, item, now + LIMIT

    def next_due(self) -> float:
        """Return when to call `take` again without another event, while active."""
        if self._alone is not None and self._alone.is_waiting:
            return min(self._alone.due, self._until)
        return self._until


def _is_held(item: WorkItem) -> bool:
    """Return whether a record that was called is not done, or its call still runs."""
    return not item.is_done or (item.call is not None and item.call.is_running)
