"""The demand of a worker: how many records it takes now, and from which topics."""

from collections.abc import Callable, Sequence
from typing import Final, Protocol, final

from sharecons.member.record_source import RecordSource
from sharecons.net.io.event_loop import FOREVER, Clock
from sharecons.worker.machine.handler_needs import HandlerNeeds
from sharecons.worker.machine.handler_queue import HandlerQueue
from sharecons.worker.machine.isolation import Isolation
from sharecons.worker.machine.item import Call
from sharecons.worker.machine.scheduler import Scheduler
from sharecons.worker.machine.topic_settings import TopicSettings

__all__ = ["WorkerDemand", "demand_of"]

NO_TOPICS: Final[frozenset[str]] = frozenset()


class WorkerDemand(Protocol):
    """States the demand of the handlers to the member."""

    def count(self) -> int:
        """Return how many records to take now, after stating the demand."""
        ...

    def on_changed(self) -> None:
        """State the demand again: calls have ended, or records have outcomes."""
        ...

    def on_call_ended(self, call: Call, seconds: float) -> None:
        """Measure the pace: a call took `seconds`."""
        ...

    def next_change(self) -> float:
        """Return when the demand changes by itself; infinity if it does not."""
        ...

    def must_take_buffered(self) -> bool:
        """Return whether to take what the member has, though `count` was 0.

        The worker then holds the records, because the member does not renew their
        locks.
        """
        ...


def demand_of(
    source: RecordSource,
    scheduler: Scheduler,
    topics: TopicSettings,
    clock: Clock,
    next_renewal: Callable[[], float],
) -> WorkerDemand:
    """Return the demand of a worker.

    Args:
        next_renewal: returns when a lock must be renewed next.
    """
    source.demand.set_next_ack(lambda: min(scheduler.next_ack(), next_renewal()))
    left_out = _LeftOut(source, scheduler.queues, topics)
    if len(scheduler.queues) == 1:
        queue = scheduler.queues[0]
        return _OneHandler(source, queue, scheduler.isolation, clock, left_out)
    needs = HandlerNeeds(scheduler, topics)
    return _SeveralHandlers(source, needs, scheduler.isolation, clock, left_out)


@final
class _LeftOut:
    """Leaves topics out of fetches: retry topics of which the worker has enough.

    Their records wait at the brokers instead. A retry topic that handlers share is
    never left out, since one of them can need it.
    """

    def __init__(
        self,
        source: RecordSource,
        queues: Sequence[HandlerQueue],
        topics: TopicSettings,
    ) -> None:
        self._source = source
        self._retry_topics = [
            (queue, topics.topics_of(queue.settings) & topics.retry_topics)
            for queue in queues
        ]
        self._topics = NO_TOPICS

    def update(self, met: frozenset[str] = NO_TOPICS) -> None:
        """Leave out these topics as well."""
        topics = met
        for queue, retry_topics in self._retry_topics:
            if queue.has_early_copies:
                topics = topics | retry_topics
        if topics != self._topics:
            self._topics = topics
            self._source.leave_out(topics)


@final
class _OneHandler:
    """Takes the records that can start now; the member fetches for a fast handler."""

    def __init__(
        self,
        source: RecordSource,
        queue: HandlerQueue,
        isolation: Isolation,
        clock: Clock,
        left_out: _LeftOut,
    ) -> None:
        self._source = source
        self._queue = queue
        self._isolation = isolation
        self._clock = clock
        self._left_out = left_out
        self._demand = source.demand

    def count(self) -> int:
        if self._isolation.is_active:
            self._demand.nothing()
            return 0
        self._left_out.update()
        now = self._clock()
        capacity, limit = self._queue.capacity(now), self._isolation.max_taken
        count = min(capacity, limit)
        self._demand.for_handlers(count, now)
        if limit < capacity:
            self._demand.up_to(count)
        return count

    def on_changed(self) -> None:
        pass

    def on_call_ended(self, call: Call, seconds: float) -> None:
        self._demand.pace.on_call_ended(seconds)

    def next_change(self) -> float:
        until = self._demand.pace.busy_until(self._demand.lock_duration)
        return until if self._clock() < until else FOREVER

    def must_take_buffered(self) -> bool:
        now = self._clock()
        if not self._source.buffered:
            return False
        if self._isolation.is_active:
            return True
        if self._queue.capacity(now):
            return False
        return not self._demand.for_handlers(0, now)


@final
class _SeveralHandlers:
    """Takes what any handler needs, and all that the member has fetched before."""

    def __init__(
        self,
        source: RecordSource,
        needs: HandlerNeeds,
        isolation: Isolation,
        clock: Clock,
        left_out: _LeftOut,
    ) -> None:
        self._source = source
        self._needs = needs
        self._isolation = isolation
        self._clock = clock
        self._left_out = left_out

    def count(self) -> int:
        return max(self._state(), self._source.buffered)

    def on_changed(self) -> None:
        self._state()

    def on_call_ended(self, call: Call, seconds: float) -> None:
        self._needs.on_call_ended(call.queue.settings, seconds, self._clock())

    def next_change(self) -> float:
        return FOREVER

    def must_take_buffered(self) -> bool:
        return False

    def _state(self) -> int:
        """State the demand; return how many records to fetch."""
        isolation = self._isolation
        limit = 0 if isolation.is_active else isolation.max_taken
        count = min(self._needs.update(self._clock()), self._source.max_records, limit)
        self._left_out.update(self._needs.met)
        self._source.demand.up_to(count)
        return count
