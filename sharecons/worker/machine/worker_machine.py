"""The machine of a worker: events of records in, actions out."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, final

from sharecons._record import ACCEPT, TopicPartition
from sharecons.protocol.acknowledge.renewals import RenewalSchedule
from sharecons.worker.machine.actions import (
    NOTHING,
    Action,
    AttemptFailed,
    CancelCall,
    Copy,
    HandlersCancelled,
    LocksLost,
    OutcomeDecided,
    Stop,
)
from sharecons.worker.machine.copies import Copies
from sharecons.worker.machine.decisions import Decisions, held_too_long
from sharecons.worker.machine.delivery import Deliveries
from sharecons.worker.machine.ending_calls import PAUSE, EndingCalls
from sharecons.worker.machine.ends import RecordEnds
from sharecons.worker.machine.item import Call, ItemState, WorkItem
from sharecons.worker.machine.meters import Meters
from sharecons.worker.machine.scheduler import Scheduler
from sharecons.worker.machine.stalls import StallWarnings
from sharecons.worker.machine.topic_settings import WITHOUT_HANDLER, TopicSettings
from sharecons.worker.machine.waits import STOPS, Waits
from sharecons.worker.machine.window import WindowTracker
from sharecons.worker.outcomes import (
    Accepted,
    DeadLettered,
    RecordOutcome,
    Released,
    RetryAfter,
    decision_of,
)
from sharecons.worker.stats import Counts

__all__ = ["WorkerMachine"]

Actions = list[Action]

DELIVERED_AGAIN: Final = "the records are delivered again already"


@final
class WorkerMachine:
    """The records that a worker has taken. `sharecons.worker.machine` has its contract.

    Args:
        topics: the handlers, and which records they have.
        concurrency: how many calls run at a time, of all handlers.
        max_bytes: of the records that are held, see `Scheduler`.
        reports_outcomes: return `OutcomeDecided` actions; if the application does not
            use them, they would cost time.
        chance: returns random numbers from 0.0 to 1.0.
        meters: count what becomes of the records, for metrics; None without metrics.

    Attributes:
        scheduler, window, renewals, decisions: its parts that others read.
        copies: the records whose copies are not confirmed.
        counts: the numbers of outcomes.
        is_stopping: no record is held any longer for its next attempt.
        has_ended: no handler is called any more.
    """

    def __init__(
        self,
        topics: TopicSettings,
        *,
        concurrency: int,
        max_bytes: int,
        chance: Callable[[], float],
        reports_outcomes: bool = True,
        meters: Meters | None = None,
    ) -> None:
        self._chance = chance
        self._reports_outcomes = reports_outcomes
        self._clock_offset = 0.0
        self.window = WindowTracker()
        self.renewals = RenewalSchedule[WorkItem]()
        self._waits = Waits(self.window, self.renewals)
        self.decisions = Decisions(self._waits)
        self.scheduler = Scheduler(
            topics.handlers,
            concurrency=concurrency,
            max_bytes=max_bytes,
            rank_of=self.decisions.suspect_rank,
        )
        self._deliveries = Deliveries(topics, self.scheduler, meters)
        self.counts = Counts()
        self.copies = Copies()
        self._ends = RecordEnds(
            self.window,
            self.renewals,
            self.decisions,
            self.counts,
            self.copies,
            reports_outcomes=reports_outcomes,
        )
        self._ending_calls = EndingCalls()
        self._stalls = StallWarnings(self.window)
        self.is_stopping = False
        self.has_ended = False

    # Records that are taken.

    def new_items(
        self, records: Iterable[Any], now: float, wall_clock: float
    ) -> list[WorkItem]:
        """Return the items of delivered records; the shell keeps their locks.

        Args:
            wall_clock: seconds since the epoch.
        """
        # The wall clock can be set while the worker runs.
        self._clock_offset = wall_clock - now
        return self._deliveries.new_items(records, now, wall_clock)

    def on_taken(self, items: Sequence[WorkItem], now: float) -> Sequence[Action]:
        """Add records that the worker has taken.

        An earlier delivery of a record that is still held has lost its lock. Its
        handler is cancelled first. Records without a handler have an outcome.
        """
        earlier: list[WorkItem] = []
        for item in items:
            before = self.window.add(item, now)
            if before is not None:
                earlier.append(before)
            item.queue.add(item)
        again = [item for item in items if item.attempt > 1]
        if items:  # an idle worker takes none, again and again
            self.scheduler.on_taken(any(map(self.decisions.suspect_rank, again)))
        actions = self.on_locks_lost(earlier, DELIVERED_AGAIN) if earlier else NOTHING
        actions = [*actions, *self._deliveries.take_skipped()]
        uncalled = [item for item in again if self.decisions.is_spent(item)]
        uncalled += self._deliveries.take_without_handler()
        if uncalled:
            actions = [*actions, *self._give_up(uncalled, now)]
        if self.has_ended:
            return [*actions, *self.release_held(items)]
        if self.is_stopping:
            return [*actions, *self.on_time(items, now)]
        return actions

    # Calls.

    def next_due(self) -> float:
        """Return when a call can start without another event."""
        return self.scheduler.next_due()

    def next_call(self, now: float) -> Call | None:
        """Return the next call; None if no call can start.

        The shell calls `on_call_begins` before it calls the handler.
        """
        return self.scheduler.next_call(now, self.is_stopping)

    def on_call_begins(self, call: Call, now: float) -> Sequence[Action]:
        """Begin a call; afterwards it has only the records to call the handler with.

        A lock can be lost after `next_call`. Records without attempts left have an
        outcome without a call.
        """
        actions: Actions = []
        for item in call.items:
            if item.state is ItemState.RUNNING:
                if item.lease_end == math.inf:
                    item.lease_end = now + item.settings.max_lock_time
                if self._ending_calls and self._ending_calls.has(item):
                    item.queue.postpone(item, now + PAUSE)
                elif item.attempt > item.settings.max_attempts:
                    outcome = self.decisions.before_call(item)
                    self._ends.settle(item, outcome, now, actions)
        call.keep_running()
        call.is_running = True
        call.began = now
        if call is self.scheduler.isolation.running and call.items:
            self._ends.warn_of_suspect(call.items[0], now, actions)
        return actions

    def on_not_deserialized(
        self, call: Call, errors: Iterable[tuple[WorkItem, Exception]], now: float
    ) -> Sequence[Action]:
        """Settle the records of a call that a deserializer could not read."""
        actions: Actions = []
        for item, error in errors:
            if item.state is not ItemState.RUNNING:
                continue  # its lock was lost meanwhile
            if item.meter is not None:
                item.meter.deserialization_errors += 1
            outcome = self.decisions.on_deserialization_error(item, error)
            self._ends.settle(item, outcome, now, actions, error=error)
        call.keep_running()
        return actions

    def on_results(
        self,
        call: Call,
        errors: Sequence[Exception | None],
        now: float,
        seconds: float,
        chances: Mapping[WorkItem, float] | None = None,
    ) -> Sequence[Action]:
        """Settle the records of a call whose handler has ended after `seconds`.

        Records that have an outcome already keep it: their locks were lost, or they
        were held for too long.

        Args:
            errors: one for each record of the call; None if it was successful.
            chances: the random numbers of the outcomes that middleware has seen.
        """
        actions: Actions = []
        for item, error in zip(call.items, errors, strict=True):
            if item.state is not ItemState.RUNNING:
                continue
            if error is not None:
                chance = self._chance() if chances is None else chances[item]
                outcome = self.decisions.on_error(item, error, now, chance)
                self._fail(item, error, outcome, seconds, now, actions)
                continue
            if self._reports_outcomes:
                actions.append(OutcomeDecided(item, Accepted(), item.attempt, seconds))
            self.counts.accepted += 1
            if item.meter is not None:
                item.meter.on_accepted(
                    item.record, item.attempt, seconds, now, self._clock_offset
                )
            self._ends.end(item, ACCEPT, actions)
        return actions

    def on_call_ended(self, call: Call) -> None:
        """Free the slot of a call that returned, raised or was cancelled.

        Call `on_results` before, unless it was cancelled.
        """
        call.queue.calls -= 1
        if self._ending_calls:
            self._ending_calls.on_call_ended(call)
        call.end()

    # Locks.

    def on_locks_lost(self, items: Iterable[WorkItem], reason: str) -> Sequence[Action]:
        """Forget records whose locks are lost, and cancel their handlers.

        Nothing is acknowledged. The handler of a batch goes on while it has other
        records.
        """
        lost = [item for item in items if not item.is_done]
        if not lost:
            return NOTHING
        actions: Actions = [LocksLost(lost, sum(i.is_running for i in lost), reason)]
        self._ends.warn_of_archived(lost, actions)
        for item in lost:
            call = item.call if item.is_running else None
            self._ends.lose(item, actions)
            self._leave_call(item, call, "LockLost", actions)
        return actions

    def on_held_too_long(self, item: WorkItem, now: float) -> Sequence[Action]:
        """End the work on a record after `max_lock_time`, while its lock is held."""
        actions: Actions = []
        if item.has_outcome:
            return NOTHING
        item.lease_end = now  # records that arrived together have the first one's end
        if item.is_running:
            call, error = item.call, held_too_long(item)
            outcome = self.decisions.on_error(item, error, now, self._chance())
            seconds = item.settings.max_lock_time
            self._fail(item, error, outcome, seconds, now, actions)
            self._leave_call(item, call, "max_lock_time has ended", actions)
        else:
            outcome = self.decisions.continue_wait(item, now)
            self._ends.settle(item, outcome, now, actions)
        return actions

    # Time.

    def on_time(self, items: Iterable[WorkItem], now: float) -> Sequence[Action]:
        """Move records that cannot go on waiting; call this once a second.

        A record begins to wait at the rate of its moment; the rate can rise.

        Args:
            items: of `scheduler.waiting`; a part of it in one step.
        """
        actions: Actions = []
        for item in items:
            if item.is_waiting:
                outcome = self.decisions.continue_wait(item, now)
                if not isinstance(outcome, RetryAfter):
                    self._ends.settle(item, outcome, now, actions)
        return actions

    def on_assignment(
        self, assigned: frozenset[TopicPartition], now: float
    ) -> Sequence[Action]:
        """Warn of records that hold up their partitions; call this once a second."""
        actions = self._stalls.find(now)
        self.window.keep_only(assigned)
        return actions

    # Copies.

    def is_current(self, copy: Copy) -> bool:
        """Return whether a copy is still to be written."""
        return self.copies.is_current(copy)

    def on_copied(
        self, copy: Copy, written: tuple[str, int, int] | None = None
    ) -> Sequence[Action]:
        """Accept a record whose copy is confirmed, at this position."""
        return self._ends.on_copied(copy, written)

    def on_copy_failed(
        self, copy: Copy, now: float, *, is_too_large: bool
    ) -> Sequence[Action]:
        """Write a copy again later, or release a record that its topic never takes."""
        return self._ends.on_copy_failed(copy, now, is_too_large=is_too_large)

    # The end.

    def stop(self) -> None:
        """Hold no records any longer that wait.

        The shell calls `on_time` with the waiting records afterwards.
        """
        self.is_stopping = self._waits.is_stopping = True

    def end(self) -> Sequence[Action]:
        """Call no handlers any more; running ones have been cancelled.

        The shell calls `release_held` with the held records afterwards. Of the copies
        that were begun, only the dead letters of last deliveries are written again.
        """
        self.stop()
        self.has_ended = True
        actions: Actions = []
        cancelled = [item for item in self.scheduler.held if item.is_running]
        if cancelled:
            actions.append(HandlersCancelled(cancelled))
        for item, outcome in self.copies.take_all().items():
            is_last = item.is_done or self.decisions.is_last_delivery(item)
            if isinstance(outcome, DeadLettered) and is_last:
                actions.append(self.copies.start(item, outcome))
        return actions

    def release_held(self, items: Iterable[WorkItem]) -> Sequence[Action]:
        """Release records at the end, unless they are copied."""
        actions: Actions = []
        for item in reversed([*items]):  # no record has others of its lane behind it
            if item not in self.copies:
                released = Released(STOPS, item.error)
                self._ends.release_at_end(item, released, actions)
        return actions

    def _give_up(self, items: Iterable[WorkItem], now: float) -> Actions:
        actions: Actions = []
        for item in items:
            if not item.has_outcome:
                outcome = self.decisions.uncalled(item, WITHOUT_HANDLER)
                self._ends.settle(item, outcome, now, actions)
        return actions

    def _fail(
        self,
        item: WorkItem,
        error: Exception,
        outcome: RecordOutcome,
        seconds: float,
        now: float,
        actions: Actions,
    ) -> None:
        item.error = error
        raised = error if decision_of(error) is None else None
        if item.meter is not None and item.attempt == 1:
            item.meter.on_first_attempt(item.record, now - seconds + self._clock_offset)
        if raised is not None:
            self.counts.failed += 1
            actions.append(AttemptFailed(item, item.attempt, error, outcome, seconds))
            if item.settings.stop_on_error:
                actions.append(Stop(error))
        self._ends.settle(item, outcome, now, actions, seconds=seconds, error=raised)

    def _leave_call(
        self, item: WorkItem, call: Call | None, reason: str, actions: Actions
    ) -> None:
        """Cancel a call if this was its last record without an outcome."""
        if call is None or not call.is_running:
            return
        self._ending_calls.add(item, call)
        call.without_outcome -= 1
        if not call.without_outcome:
            actions.append(CancelCall(call, f"{reason}: {item.record!r}"))
