"""Decides which handler is called next: the handlers of a worker have turns.

Each handler has a queue. A handler whose calls have all started, or that has no ready
records, loses its turn; so no other handler waits for it.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable
from itertools import chain
from typing import final

from sharecons.worker.machine.handler_queue import HandlerQueue
from sharecons.worker.machine.isolation import Isolation, Rank
from sharecons.worker.machine.item import Call, WorkItem
from sharecons.worker.machine.settings import HandlerSettings

__all__ = ["Scheduler"]


@final
class Scheduler:
    """The queues of a worker's handlers.

    Args:
        handlers: the settings of each handler.
        concurrency: how many calls run at a time, of all handlers.
        rank_of: of the records that run alone; see `Isolation`.
        max_bytes: of the records that are held. Each handler has an equal part, so
            that records that wait for one handler leave the others their bytes.

    Attributes:
        queues: the queues, in the order of the handlers.
        isolation: the records that run alone.
    """

    def __init__(
        self,
        handlers: Iterable[HandlerSettings],
        *,
        concurrency: int,
        max_bytes: int,
        rank_of: Callable[[WorkItem], Rank | None] = lambda item: None,
    ) -> None:
        self.isolation = Isolation(rank_of)
        handlers = tuple(handlers)
        self._concurrency = concurrency
        self.queues = tuple(
            HandlerQueue(
                settings,
                concurrency=min(settings.concurrency or concurrency, concurrency),
                max_bytes=max(1, max_bytes // len(handlers)),
                claim=self.isolation.claim,
            )
            for settings in handlers
        )
        self._queue_of = {queue.settings: queue for queue in self.queues}
        self._turns = deque(self.queues)

    def queue_of(self, settings: HandlerSettings) -> HandlerQueue:
        """Return the queue of a handler."""
        return self._queue_of[settings]

    # Records.

    @property
    def held(self) -> tuple[WorkItem, ...]:
        """All records that are not done, by handler, in the order of `add`."""
        return tuple(chain.from_iterable(queue.held for queue in self.queues))

    @property
    def waiting(self) -> tuple[WorkItem, ...]:
        """The records that are not due, in any order."""
        return tuple(chain.from_iterable(queue.waiting for queue in self.queues))

    @property
    def held_count(self) -> int:
        return sum(queue.held_count for queue in self.queues)

    @property
    def running(self) -> int:
        return sum(queue.running for queue in self.queues)

    @property
    def waiting_count(self) -> int:
        return sum(queue.waiting_count for queue in self.queues)

    @property
    def waiting_in_retry_topics(self) -> int:
        """How many of `waiting` are records of retry topics before their first call."""
        return sum(
            item.origin is not None and item.call is None for item in self.waiting
        )

    @property
    def waiting_in_place(self) -> int:
        """How many of `waiting` are locked for their next attempt; for any thread."""
        return max(0, self.waiting_count - self.waiting_in_retry_topics)

    @property
    def blocked_count(self) -> int:
        return sum(queue.blocked_count for queue in self.queues)

    @property
    def full_handlers(self) -> int:
        """How many handlers receive no further records."""
        return sum(queue.is_full for queue in self.queues)

    def on_taken(self, has_suspects: bool) -> None:
        """Limit the next take, after records were added to the queues."""
        self.isolation.on_taken(self._busy, has_suspects=has_suspects)

    # Calls.

    @property
    def _busy(self) -> int:
        return sum(queue.calls + queue.copying for queue in self.queues)

    @property
    def free_calls(self) -> int:
        """How many calls could start now, of handlers with enough records."""
        free = self._concurrency
        for queue in self.queues:
            free -= queue.calls + queue.unusable
        return free

    @property
    def equal_part(self) -> int:
        """How many calls each handler has if all of them make as many; at least 1."""
        return -(-self._concurrency // len(self.queues))

    def next_call(self, now: float, is_stopping: bool) -> Call | None:
        """Return the next call, of the handlers in turn; None if none can start.

        Args:
            is_stopping: start incomplete batches immediately.
        """
        if self.isolation.is_active:
            call = self._next_alone(now)
            if call is not None or self.isolation.is_active:
                return call
        turns = self._turns
        if len(turns) == 1:  # its own limit is the limit of all
            return turns[0].next_call(now, is_stopping)
        if self.free_calls <= 0:
            return None
        for _ in self.queues:
            queue = turns[0]
            turns.rotate(-1)
            call = queue.next_call(now, is_stopping)
            if call is not None:
                return call
        return None

    def _next_alone(self, now: float) -> Call | None:
        if self.free_calls <= 0:
            return None
        item = self.isolation.take(now, busy=self._busy)
        if item is None:
            return None
        call: Call = item.queue.start_alone(item)
        self.isolation.on_called(call, now)
        return call

    # Times.

    def next_due(self) -> float:
        """Return when a call can start without another event; infinity if none can.

        Records that are due already are not counted.
        """
        if self.free_calls <= 0:
            return math.inf
        if self.isolation.is_active:
            return self.isolation.next_due()
        return min(queue.next_due() for queue in self.queues)

    def next_ack(self) -> float:
        """Return the earliest time at which a held record can have an outcome."""
        if self.isolation.is_active:
            return -math.inf
        return min(queue.next_ack() for queue in self.queues)
