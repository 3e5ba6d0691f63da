"""Looks for records that hold up their partitions, in a task."""

import math
from collections.abc import Callable
from typing import Final

import anyio
from anyio.lowlevel import checkpoint

from sharecons._record import TopicPartition
from sharecons.log import get_logger
from sharecons.net.io.event_loop import Clock
from sharecons.worker.machine.item import WorkItem
from sharecons.worker.machine.scheduler import Scheduler
from sharecons.worker.machine.window import WindowTracker

__all__ = ["Patrol"]

AT_A_TIME: Final = 100
"""Records that are looked at in one step before other tasks run."""

INTERVAL: Final = 1.0
LOCK_MARGIN: Final = 2.5
"""Seconds before the end of a lock in which its record moves, without renewals."""


class Patrol:
    """Moves records that can no longer wait, and warns of records that hold up others.

    A record begins to wait at the rate of its moment; the rate can rise.

    Args:
        assignment: returns the consumer's partitions.
        renews: returns whether locks are renewed.
        move: is called with each record that cannot go on waiting.
        on_second: is called once a second.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        window: WindowTracker,
        clock: Clock,
        assignment: Callable[[], frozenset[TopicPartition]],
        renews: Callable[[], bool],
        move: Callable[[WorkItem], None],
        on_second: Callable[[], None],
    ) -> None:
        self._scheduler = scheduler
        self._window = window
        self._clock = clock
        self._assignment = assignment
        self._renews = renews
        self._move = move
        self._on_second = on_second
        self._warned_of: dict[TopicPartition, int] = {}
        self._log = get_logger(__name__)

    async def run(self) -> None:
        """Look once a second until cancelled."""
        while True:
            await anyio.sleep(INTERVAL)
            self._on_second()
            now = self._clock()
            for number, item in enumerate(self._scheduler.waiting, start=1):
                if not self._can_stay(item, now):
                    self._move(item)
                if number % AT_A_TIME == 0:
                    await checkpoint()
            self._warn(now)
            self._window.keep_only(self._assignment())

    def _can_stay(self, item: WorkItem, now: float) -> bool:
        """Return whether a record continues to wait.

        Records of retry topics do, as long as their locks last.
        """
        if not self._renews():
            left = item.record.lock_remaining
            if left < LOCK_MARGIN and item.due - now > left:
                return False
        if item.origin is not None or item.lane is not None:
            return True
        return self._window.can_wait(item, item.due - now, now)

    def _warn(self, now: float) -> None:
        for where, offset, seconds in self._window.held_up(now):
            if self._warned_of.get(where) == offset:
                continue
            self._warned_of[where] = offset
            self._log.warning(
                "a record holds up its partition: no member receives records behind it "
                "until it is settled",
                topic=where.topic,
                partition=where.partition,
                offset=offset,
                seconds=math.floor(seconds),
            )
