"""The leader's state of one share partition: acquisitions, locks and deliveries.

It does no I/O: the time comes as `now`, records as batches read from the log, the
group's settings with each call. Final states and releases are written to the
coordinator's state; locks are not, and are lost with the leader (KIP-932,
"Share-partition leader").

Measured on Kafka 4.3.0: every release uses up a delivery, be it by Release or by the
end of the lock, the member's session or its connection; at the delivery limit the
record is archived. Locks end without a request: callers first pass the time to
`advance`.

If the group has a dead letter topic (KIP-1191), records are first archiving:
`take_due_dead_letters` returns those to write, and `archive` archives them.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from sharecons.testing.broker.share.acknowledge import Change, check_acknowledgements
from sharecons.testing.broker.share.acquire import (
    AcquireRequest,
    Acquisition,
    LogBatch,
    subtract_ranges,
)
from sharecons.testing.broker.share.coordinator_state import CoordinatorState
from sharecons.testing.broker.share.dead_letter_pending import DeadLetterPending
from sharecons.testing.broker.share.deliveries import (
    NEVER,
    AcknowledgementBatch,
    AcquiredRecords,
    Delivery,
    GroupSettings,
    State,
    StateBatch,
)
from sharecons.testing.broker.share.in_flight import InFlightBatch, Run, Window

__all__ = ["SharePartition"]

Range = tuple[int, int]

MAX_OFFSET: Final = 2**63 - 1
ARCHIVED: Final = State.ARCHIVED


class SharePartition:
    """One partition of one group, in the memory of its leader."""

    def __init__(self, state: CoordinatorState, start_offset: int) -> None:
        self._state = state
        self._window = Window(start_offset, state.batches)
        self.last_checked_offset = -1
        """The log offset that was last checked without acquiring."""
        self._next_check = NEVER
        """No lock ends before this time; the first can end later."""
        self._dead_letters: list[DeadLetterPending] = []

    @property
    def start_offset(self) -> int:
        return self._window.start_offset

    @property
    def has_dead_letters(self) -> bool:
        """True if records wait to be written to the dead letter topic."""
        return bool(self._dead_letters)

    def next_deadline(self) -> float:
        """Return the time of the next change without a request: a lock can end."""
        tries = (each.due_at for each in self._dead_letters)
        return min(self._next_check, min(tries, default=NEVER))

    def next_fetch_offset(self) -> int:
        return self._window.next_fetch_offset()

    def can_acquire(self, settings: GroupSettings) -> bool:
        """Return whether a record is available, or a lock is left for a new one."""
        window = self._window
        is_new = window.next_fetch_offset() == window.end_offset + 1
        return not is_new or window.count < settings.record_locks

    def acquire(
        self,
        request: AcquireRequest,
        fetch_offset: int,
        read: Sequence[LogBatch],
        settings: GroupSettings,
        now: float,
        aborted: Sequence[Range] = (),
    ) -> list[AcquiredRecords]:
        """Acquire records that were read from an offset.

        Records of aborted transactions are archived instead (KIP-932, "Isolation
        level"); markers are acquired, and the client skips them.
        """
        if request.max_records <= 0:
            return []
        acquisition = Acquisition(self._window, request, read, settings, now)
        acquisition.run(fetch_offset)
        if acquisition.acquired:
            self._next_check = min(self._next_check, now + settings.lock_duration)
            self._archive_aborted(aborted)
        return subtract_ranges(acquisition.acquired, aborted)

    def acknowledge(
        self,
        member: str,
        batches: Sequence[AcknowledgementBatch],
        settings: GroupSettings,
        now: float,
    ) -> list[Change]:
        """Validate and write a member's acknowledgements; `apply` applies them.

        Raises:
            AcknowledgeError: one of them is invalid; none is applied.
        """
        self._next_check = min(self._next_check, now + settings.lock_duration)
        changes = check_acknowledgements(self._window, member, batches, settings, now)
        self._write(changes)
        return changes

    def apply(self, changes: Sequence[Change]) -> bool:
        """Apply written changes; return whether the start offset has moved."""
        for batch, run in changes:
            batch.set_delivery(run)
            if run.delivery.state.is_final:
                self._window.count_final(run)
            elif run.delivery.state is State.ARCHIVING:
                self._dead_letters.append(DeadLetterPending(batch, run))
            else:
                self._window.mark_available()
        return bool(changes) and self._window.advance_start()

    def resume_dead_letters(self, settings: GroupSettings) -> None:
        """Take over the archiving records of an earlier leader."""
        for batch in self._window.batches:
            for run in batch.runs(0, MAX_OFFSET):
                if run.delivery.state is State.ARCHIVING:
                    delivery = run.delivery
                    if delivery.count < settings.delivery_limit:
                        delivery = delivery.rejected(State.ARCHIVING)
                    again = run._replace(delivery=delivery)
                    self._dead_letters.append(DeadLetterPending(batch, again))

    def take_due_dead_letters(self, now: float) -> list[DeadLetterPending]:
        """Return the records that are due for the dead letter topic.

        The caller passes each of them to `archive` or `requeue`.
        """
        due = [each for each in self._dead_letters if each.due_at <= now]
        self._dead_letters = [each for each in self._dead_letters if each.due_at > now]
        return due

    def requeue(self, pending: DeadLetterPending) -> None:
        """Put back records for another try."""
        self._dead_letters.append(pending)

    def archive(self, pending: Sequence[DeadLetterPending]) -> bool:
        """Archive records; return whether the start offset has moved."""
        changes = [
            (each.batch, each.run._replace(delivery=each.run.delivery.ended(ARCHIVED)))
            for each in pending
        ]
        self._write(changes)
        return self.apply(changes)

    def release(self, member: str, settings: GroupSettings) -> bool:
        """Release a member's records; return whether the start offset has moved."""
        return self._release(lambda held: held.member == member, settings)[1]

    def advance(self, settings: GroupSettings, now: float) -> bool:
        """Release records whose locks have ended; return whether there were any."""
        if now < self._next_check:
            return False
        has_ended = False
        # One after the other, since each can move the start offset, which is written
        # with the next.
        while (due := self._window.locked_until) <= now:
            self._release(partial(_is_due, due), settings)
            has_ended = True
        self._next_check = due
        return has_ended

    def expire_locks(self, settings: GroupSettings) -> bool:
        """Release all records as if their locks had ended; return if there were any."""
        return self._release(lambda held: True, settings)[0]

    def log_start_moved(self, offset: int) -> None:
        self._window.log_start_moved(offset)

    def acquired_by(self, member: str) -> list[AcquiredRecords]:
        """Return the records that a member has acquired."""
        return [
            AcquiredRecords(run.first_offset, run.last_offset, run.delivery.count)
            for batch in self._window.batches
            for run in batch.runs(0, MAX_OFFSET)
            if run.delivery.state is State.ACQUIRED and run.delivery.member == member
        ]

    def runs(self) -> list[Run]:
        """Return the deliveries of all records in flight, in order."""
        return [
            run for batch in self._window.batches for run in batch.runs(0, MAX_OFFSET)
        ]

    def states(self) -> list[StateBatch]:
        """Return the states of all records in flight, in order."""
        return [
            StateBatch(run.first_offset, run.last_offset, *_state(run))
            for run in self.runs()
        ]

    def _release(
        self, matches: Callable[[Delivery], bool], settings: GroupSettings
    ) -> tuple[bool, bool]:
        """Return whether there were any, and whether the start offset has moved."""
        changes = [
            change
            for batch in self._window.batches
            for change in self._release_in(batch, matches, settings)
        ]
        self._write(changes)
        return bool(changes), self.apply(changes)

    def _release_in(
        self,
        batch: InFlightBatch,
        matches: Callable[[Delivery], bool],
        settings: GroupSettings,
    ) -> list[Change]:
        start = self.start_offset
        held = [
            run
            for run in batch.runs(0, MAX_OFFSET)
            if run.delivery.state is State.ACQUIRED and matches(run.delivery)
        ]
        if held and batch.first_offset < start <= batch.last_offset:
            batch.split()
        changes: list[Change] = []
        for run in held:
            # The log has lost the records before the start offset.
            lost = run.delivery.ended(ARCHIVED)
            released = run.delivery.released(settings)
            before = Run(run.first_offset, min(run.last_offset, start - 1), lost)
            after = Run(max(run.first_offset, start), run.last_offset, released)
            changes += [(batch, part) for part in (before, after) if part.length > 0]
        return changes

    def _archive_aborted(self, aborted: Sequence[Range]) -> None:
        window = self._window
        for first, last in aborted:
            begin = max(window.floor_index(first), 0)
            found = window.batches[begin : window.floor_index(last) + 1]
            for run in window.archive(first, last, State.ACQUIRED, found):
                window.count_final(run)

    def _write(self, changes: Sequence[Change]) -> None:
        """Write to the coordinator, with the start offset from before the changes."""
        if not changes:
            return
        window, complete_count = self._window, self._window.complete_count
        for _, run in changes:
            if run.delivery.state.is_final and run.first_offset >= window.start_offset:
                complete_count += run.length
        written = [
            StateBatch(run.first_offset, run.last_offset, *_state(run))
            for _, run in changes
        ]
        self._state.write(window.start_offset, complete_count, written)


def _is_due(due: float, held: Delivery) -> bool:
    return held.locked_until <= due


def _state(run: Run) -> tuple[State, int]:
    return run.delivery.state, run.delivery.count
