"""Decides which of several handlers' topics are fetched, and how many records.

A fetch returns records of any topic. So the topics of a handler that has enough records
are left out of the fetches until it needs some again: otherwise they would fill what
the worker can hold, and the other handlers would have none.

A handler needs the records that its calls can start with now, and what it processes in
AHEAD seconds at the measured pace: about a round of fetches, with a margin. It needs
more once half of what it has ahead is used up. So topics are left out and fetched again
up to 2 / AHEAD times a second, or as often as a slow handler ends a call.

Records that were fetched before are taken nevertheless, as the worker renews their
locks. So a handler holds at most what it needs and the records of one fetch. A fetch
requests what the handler with the largest need lacks.
"""

from collections.abc import Sequence
from typing import Final, final

from sharecons.worker.machine.handler_queue import HandlerQueue
from sharecons.worker.machine.scheduler import Scheduler
from sharecons.worker.machine.settings import HandlerSettings
from sharecons.worker.machine.topic_settings import TopicSettings

__all__ = ["HandlerNeeds"]

AHEAD: Final = 0.25
"""Seconds of processing for which a handler has records ahead."""

WEIGHT: Final = 0.05
"""The weight of one call in the average duration."""

REFILL_BYTES: Final = 0.875
"""The fraction of its bytes below which a handler that had all of them needs records:
records that wait for their next attempt can take up most of the bytes for long."""


@final
class _Need:
    """The need of one handler; times in seconds."""

    def __init__(self, queue: HandlerQueue, topics: frozenset[str]) -> None:
        self.queue = queue
        self.topics = topics
        self.is_met = False
        self._average = 0.0
        self._moving_at = 0.0

    def on_call_ended(self, seconds: float, now: float) -> None:
        before = self._average or seconds
        self._average = before + (seconds - before) * WEIGHT
        self._moving_at = now

    def update(self, now: float, calls: int) -> int:
        """Return how many records to fetch; 0 if the need is met.

        Args:
            calls: how many calls the handler can make.
        """
        queue = self.queue
        if not queue.is_saturated:
            self._moving_at = now
        can_run = calls * queue.settings.max_records
        ahead = self._ahead(can_run, now)
        needed = can_run + ahead - queue.running - queue.ready_count(now)
        needed = min(needed, queue.max_held - queue.active_count)
        if self.is_met:
            has_bytes = queue.held_bytes < REFILL_BYTES * queue.max_bytes
            self.is_met = not has_bytes or needed < max(1, ahead // 2)
        else:
            self.is_met = needed <= 0
        self.is_met = self.is_met or queue.is_full
        return 0 if self.is_met else needed

    def _ahead(self, can_run: int, now: float) -> int:
        """Return how many records it processes in AHEAD seconds.

        Without a measurement, none. While all calls hang, fewer and fewer.
        """
        if not self._average:
            return 0
        seconds = max(self._average, now - self._moving_at)
        most = max(0, self.queue.max_held - can_run)
        return min(most, int(can_run * AHEAD / seconds))


@final
class HandlerNeeds:
    """The needs of a worker's handlers.

    Attributes:
        met: the topics of handlers that need no records, with their retry topics unless
            another handler shares these. They are left out of fetches.
    """

    def __init__(self, scheduler: Scheduler, topics: TopicSettings) -> None:
        self._scheduler = scheduler
        self._needs = [
            _Need(queue, topics.topics_of(queue.settings)) for queue in scheduler.queues
        ]
        self._of = {need.queue.settings: need for need in self._needs}
        self._met: list[bool] = []
        self.met: frozenset[str] = frozenset()

    def on_call_ended(
        self, settings: HandlerSettings, seconds: float, now: float
    ) -> None:
        """Measure the pace of a handler whose call took `seconds`."""
        self._of[settings].on_call_ended(seconds, now)

    def update(self, now: float) -> int:
        """Update `met`; return how many records to fetch from all other topics.

        A handler can make its own calls and the free ones, and at least an equal part
        of all: it has its turn when a call of another one ends.
        """
        free, part = self._scheduler.free_calls, self._scheduler.equal_part
        counts = [
            need.update(now, need.queue.usable(max(need.queue.calls + free, part)))
            for need in self._needs
        ]
        self._update_met([need.is_met for need in self._needs])
        return max(counts)

    def _update_met(self, met: Sequence[bool]) -> None:
        if met == self._met:
            return
        self._met = list(met)
        self.met = frozenset().union(
            *(need.topics for need in self._needs if need.is_met)
        )
