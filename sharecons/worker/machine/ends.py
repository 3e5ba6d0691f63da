"""Carries out the outcomes of records: how each record leaves the machine, once.

A record is accepted only after its copy, in a retry topic or in the dead-letter topic,
is confirmed. If the worker dies between the two, the record is delivered again, and its
copy exists as well. The origin in the copy's headers shows that.

A record that would be released on its last delivery becomes a dead letter instead: the
broker archives it then (KIP-932). So does one whose lock is lost on its last delivery.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Final, final

from sharecons._record import ACCEPT, REJECT, RELEASE, AcknowledgeType
from sharecons.protocol.acknowledge.renewals import RenewalSchedule
from sharecons.worker.machine.actions import (
    NOTHING,
    Acknowledge,
    Action,
    Copy,
    GivenUp,
    OutcomeDecided,
    Warn,
)
from sharecons.worker.machine.copies import Copies, repeated
from sharecons.worker.machine.decisions import Decisions
from sharecons.worker.machine.item import WorkItem
from sharecons.worker.machine.release_advice import RELEASED, advice_for, too_large
from sharecons.worker.machine.settings import HandlerSettings
from sharecons.worker.machine.window import WindowTracker
from sharecons.worker.outcomes import (
    DeadLettered,
    LockLost,
    Moved,
    RecordOutcome,
    Rejected,
    Released,
    RetryAfter,
)
from sharecons.worker.positions import item_position, items_text
from sharecons.worker.stats import Counts

__all__ = ["RecordEnds"]

SUSPECT_INTERVAL: Final = 60.0
"""Seconds between two lines about records that run alone."""

SUSPECT: Final = (
    "a record was delivered several times without an outcome, and perhaps ends its "
    "process: it runs alone"
)

ARCHIVED: Final = (
    "records whose locks were lost on their last delivery are archived: no consumer "
    "gets them again; set a dead_letter to keep them"
)

Actions = list[Action]


@final
class RecordEnds:
    """The outcomes of one worker's records; methods append to the actions.

    Args:
        reports_outcomes: return `OutcomeDecided` actions.
    """

    def __init__(
        self,
        window: WindowTracker,
        renewals: RenewalSchedule[WorkItem],
        decisions: Decisions,
        counts: Counts,
        copies: Copies,
        *,
        reports_outcomes: bool,
    ) -> None:
        self._window = window
        self._renewals = renewals
        self._decisions = decisions
        self._counts = counts
        self._copies = copies
        self._reports_outcomes = reports_outcomes
        self._suspects = 0
        self._next_suspect_warning = -math.inf
        self._warned_of: set[tuple[HandlerSettings, str]] = set()

    def settle(
        self,
        item: WorkItem,
        outcome: RecordOutcome,
        now: float,
        actions: Actions,
        *,
        seconds: float | None = None,
        error: Exception | None = None,
    ) -> None:
        """Report an outcome, and carry it out.

        Args:
            seconds, error: see `OutcomeDecided`.
        """
        if self._reports_outcomes or item.meter is not None:
            reported = self._decisions.as_carried_out(item, outcome)
            if item.meter is not None:
                item.meter.on_outcome(reported, seconds)
            if self._reports_outcomes:
                decided = OutcomeDecided(item, reported, item.attempt, seconds, error)
                actions.append(decided)
        self._carry_out(item, outcome, now, actions)

    def release_at_end(
        self, item: WorkItem, released: Released, actions: Actions
    ) -> None:
        """Return a record to the broker because the worker ends.

        Report this if its handler was called before.
        """
        if item.is_done:
            return
        outcome = self._decisions.instead_of_release(item, released)
        if item.meter is not None:
            item.meter.on_outcome(outcome, None)
        if self._reports_outcomes and item.call is not None:
            actions.append(OutcomeDecided(item, outcome, item.attempt))
        self._release(item, released, actions)

    def lose(self, item: WorkItem, actions: Actions) -> None:
        """Forget a record whose lock is lost; acknowledge nothing."""
        if self._reports_outcomes and item.call is not None:
            actions.append(OutcomeDecided(item, LockLost(), item.attempt))
        self._counts.locks_lost += 1
        if item.meter is not None:
            item.meter.on_lock_lost(item.call is not None)
        self._forget(item)
        if not self._decisions.needs_dead_letter(item):
            self._copies.discard(item)
        elif not isinstance(self._copies.outcome_of(item), DeadLettered):
            # The broker has archived it, so no other member can write the dead letter.
            reason = "its lock was lost on its last delivery"
            self._start_copy(
                item, DeadLettered(reason, item.error, "last_delivery"), actions
            )

    def warn_of_suspect(self, item: WorkItem, now: float, actions: Actions) -> None:
        """Warn of a record that runs alone, at most once in SUSPECT_INTERVAL."""
        self._suspects += 1
        if now >= self._next_suspect_warning:
            self._next_suspect_warning = now + SUSPECT_INTERVAL
            fields = {**item_position(item), "records": self._suspects}
            self._suspects = 0
            actions.append(Warn(SUSPECT, fields))

    def warn_of_archived(self, lost: Iterable[WorkItem], actions: Actions) -> None:
        """Warn of lost records without a dead-letter queue that the broker archives."""
        archived = [
            item
            for item in lost
            if item.settings.dead_letter is None
            and self._decisions.is_last_delivery(item)
        ]
        if archived:
            positions = items_text(archived)
            fields = {"records": len(archived), "positions": positions}
            actions.append(Warn(ARCHIVED, fields))

    def end(self, item: WorkItem, kind: AcknowledgeType, actions: Actions) -> None:
        """Acknowledge a record, and forget it."""
        self._forget(item)
        actions.append(Acknowledge(item, kind))

    # Copies.

    def on_copied(
        self, copy: Copy, written: tuple[str, int, int] | None
    ) -> Sequence[Action]:
        """Accept a record whose copy is confirmed, at this position."""
        if not self._copies.is_current(copy):
            return NOTHING  # its lock was lost meanwhile, and it is delivered again
        item, outcome = copy.item, copy.outcome
        actions: Actions = []
        self._copies.discard(item)
        if item.meter is not None:
            item.meter.on_copied(outcome)
        if isinstance(outcome, DeadLettered):
            self._counts.dead_lettered += 1
            actions.append(GivenUp(item, outcome, written))
        else:
            self._counts.moved += 1
        if not item.is_done:  # else its lock was lost on its last delivery
            if item.meter is not None:
                item.meter.on_settled(item.record, ACCEPT)
            self.end(item, ACCEPT, actions)
        return actions

    def on_copy_failed(
        self, copy: Copy, now: float, *, is_too_large: bool
    ) -> Sequence[Action]:
        """Write a copy again later.

        Release the record instead if it is too large for the retry topic.
        """
        if not self._copies.is_current(copy):
            return NOTHING
        item, outcome = copy.item, copy.outcome
        # A dead letter that is too large becomes a reference, and other failures pass.
        # But a retry topic can have a lower limit than its source for ever.
        if not (is_too_large and isinstance(outcome, Moved)):
            return (repeated(copy),)
        self._copies.discard(item)
        actions: Actions = []
        released = Released(too_large(outcome.topic), outcome.error)
        if item.meter is not None:
            reported = self._decisions.as_carried_out(item, released)
            item.meter.on_outcome(reported, None)
        self._carry_out(item, released, now, actions)
        return actions

    def _start_copy(
        self, item: WorkItem, outcome: Moved | DeadLettered, actions: Actions
    ) -> None:
        if not item.has_outcome:
            item.queue.start_copy(item)
        actions.append(self._copies.start(item, outcome))

    def _carry_out(
        self, item: WorkItem, outcome: RecordOutcome, now: float, actions: Actions
    ) -> None:
        match outcome:
            case RetryAfter(seconds):
                self._counts.retried += 1
                item.queue.retry(item, now + seconds)
            case Rejected():
                self._counts.rejected += 1
                actions.append(GivenUp(item, outcome))
                if item.meter is not None:
                    item.meter.on_settled(item.record, REJECT)
                self.end(item, REJECT, actions)
            case Released(reason):
                self._release(item, outcome, actions)
                if item.is_done:
                    self._warn_of_release(item, reason, actions)
            case Moved() | DeadLettered():
                self._start_copy(item, outcome, actions)
            case _:
                raise AssertionError("other outcomes are carried out by their events")

    def _release(self, item: WorkItem, released: Released, actions: Actions) -> None:
        """Return a record to the broker, after records of its lane that wait for it.

        Otherwise these would be processed before it. They stay if it is not delivered
        again, if they would leave the group without a call of their handler, and if
        they are copied.
        """
        if not self._decisions.is_last_call(item):
            for behind in item.queue.lane_behind(item):
                is_copied = behind in self._copies
                if not is_copied and self._decisions.can_be_delivered_again(behind):
                    self._release_one(behind, released, actions)
        self._release_one(item, released, actions)

    def _release_one(
        self, item: WorkItem, released: Released, actions: Actions
    ) -> None:
        outcome = self._decisions.instead_of_release(item, released)
        if isinstance(outcome, DeadLettered):
            self._start_copy(item, outcome, actions)
            return
        self._counts.released += 1
        if item.meter is not None:
            item.meter.on_settled(item.record, RELEASE)
        self.end(item, RELEASE, actions)

    def _forget(self, item: WorkItem) -> None:
        item.queue.remove(item)
        self._renewals.remove(item)
        self._window.remove(item)

    def _warn_of_release(self, item: WorkItem, reason: str, actions: Actions) -> None:
        advice = advice_for(item, reason)
        if (item.settings, advice) in self._warned_of:
            return
        self._warned_of.add((item.settings, advice))
        fields = {**item_position(item), "reason": reason}
        if advice:
            fields["advice"] = advice
        actions.append(Warn(RELEASED, fields))
