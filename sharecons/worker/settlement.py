"""Carries out the outcomes of records: acknowledgements, retries, dead letters.

A record is accepted only after its copy, in a retry topic or in the dead-letter queue,
is confirmed. If the worker dies between the two, the record is delivered again, and its
copy exists as well. The origin in the copy's headers shows that.

A record that would be released on its last delivery becomes a dead letter instead: the
broker archives it then (KIP-932). So does one whose lock is lost on its last delivery.
"""

import time
from collections.abc import Callable
from typing import Final

import anyio
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint

from sharecons.errors import (
    BrokerError,
    ClosedError,
    Error,
    LockLostError,
    RecordStateError,
)
from sharecons.log import get_logger
from sharecons.net.io.event_loop import Clock
from sharecons.net.producer import IdempotentProducer
from sharecons.worker.copy_log import CopyLog
from sharecons.worker.dead_letter_headers import Origin, without_origin
from sharecons.worker.dead_letters import (
    TOO_LARGE,
    DeadLetterQueue,
    check_no_return,
    write_dead_letter,
)
from sharecons.worker.decisions import Decisions
from sharecons.worker.error_text import error_text, traceback_of
from sharecons.worker.failure_log import FailureLog
from sharecons.worker.machine.item import WorkItem
from sharecons.worker.machine.renewals import RenewalSchedule
from sharecons.worker.machine.scheduler import Scheduler
from sharecons.worker.machine.window import WindowTracker
from sharecons.worker.origins import failed_origin
from sharecons.worker.outcomes import (
    Accepted,
    DeadLettered,
    LockLost,
    Moved,
    RecordOutcome,
    Rejected,
    Released,
    RetryAfter,
)
from sharecons.worker.placement import STOPS
from sharecons.worker.positions import position_of
from sharecons.worker.retry_topics import retry_headers
from sharecons.worker.stats import Counts

__all__ = ["AT_A_TIME", "Settlement"]

FIRST_REPEAT: Final = 1.0
MAX_REPEAT: Final = 30.0
"""Seconds until a copy that could not be written is written again."""

LAST_WRITES: Final = 5.0
"""Seconds at the end of a run to write dead letters of last deliveries."""

AT_A_TIME: Final = 100
"""Records that are settled in one step before other tasks run."""

NOT_WRITTEN: Final = 10
"""Records that are named in the log if their last dead letters cannot be written."""


class Settlement:
    """Carries out outcomes; the worker's records leave it here.

    Args:
        group: the share group.
        on_changed: is called when a record has left, or uses no slot any more.

    Attributes:
        tasks: where copies are written; set this before the first outcome. None once
            these tasks end: further copies are noted, and `finish` writes them.
    """

    tasks: TaskGroup | None

    def __init__(
        self,
        producer: IdempotentProducer,
        dead_letter: DeadLetterQueue | None,
        decisions: Decisions,
        *,
        group: str,
        clock: Clock,
        scheduler: Scheduler,
        renewals: RenewalSchedule,
        window: WindowTracker,
        counts: Counts,
        failures: FailureLog,
        on_changed: Callable[[], None],
    ) -> None:
        self._producer = producer
        self._dead_letter = dead_letter
        self._decisions = decisions
        self._group = group
        self._clock = clock
        self._scheduler = scheduler
        self._renewals = renewals
        self._window = window
        self._counts = counts
        self._failures = failures
        self._on_changed = on_changed
        self._copies: dict[WorkItem, Moved | DeadLettered] = {}
        self._finish_by: float | None = None
        self._warned_of_release = False
        self._copy_log = CopyLog(group)
        self._log = get_logger(__name__, group=group)

    def settle(self, item: WorkItem, outcome: RecordOutcome) -> None:
        """Carry out an outcome; a copy is written in a task of its own."""
        counts = self._counts
        match outcome:
            case Accepted():
                counts.accepted += 1
                self._end(item, item.record.accept)
            case RetryAfter(seconds, _, _):
                counts.retried += 1
                self._scheduler.retry(item, self._clock() + seconds)
                self._on_changed()
            case Rejected():
                counts.rejected += 1
                self._failures.on_given_up("record rejected", item, outcome)
                self._end(item, item.record.reject)
            case Released(reason, _):
                self.release(item, outcome)
                if item.is_done:
                    self._warn_of_release(item, reason)
            case LockLost():
                self._on_lock_lost(item)
            case Moved() | DeadLettered():
                self._start_copy(item, outcome)

    def release(self, item: WorkItem, released: Released) -> None:
        """Return a record to the broker, after records of its lane that wait for it.

        Otherwise these would be processed before it.
        """
        if item.is_done:
            return
        for behind in self._scheduler.lane_behind(item):
            self._release_one(behind, released)
        self._release_one(item, released)

    def _release_one(self, item: WorkItem, released: Released) -> None:
        outcome = self._decisions.instead_of_release(item, released)
        if isinstance(outcome, DeadLettered):
            self._start_copy(item, outcome)
            return
        self._counts.released += 1
        self._end(item, item.record.release)

    def _on_lock_lost(self, item: WorkItem) -> None:
        self._counts.locks_lost += 1
        self._forget(item)
        if self._dead_letter is None or not self._decisions.is_last_delivery(item):
            self._copies.pop(item, None)
        elif not isinstance(self._copies.get(item), DeadLettered):
            reason = "its lock was lost on its last delivery"
            self._start_copy(item, DeadLettered(reason, item.error))

    async def finish(self) -> None:
        """Release all records; write the dead letters of last deliveries.

        Cancelling this has no effect. It takes up to LAST_WRITES seconds, in all calls.
        """
        held, copies = self._scheduler.held, self._copies
        self._failures.on_end(held)
        if not held and not copies:
            return
        self._copies = {}
        if self._finish_by is None:
            self._finish_by = self._clock() + LAST_WRITES
        with anyio.CancelScope(shield=True, deadline=self._finish_by):
            async with anyio.create_task_group() as tasks:
                self.tasks = tasks
                for item, copy in copies.items():
                    if isinstance(copy, DeadLettered) and (
                        item.is_done or self._decisions.is_last_delivery(item)
                    ):
                        self._start_copy(item, copy)
                for number, item in enumerate(held, start=1):
                    if item not in self._copies:
                        self.release(item, Released(STOPS, item.error))
                    if number % AT_A_TIME == 0:
                        await checkpoint()
                self.tasks = None

    def report_unwritten(self) -> None:
        """Log the dead letters of last deliveries that no broker has confirmed."""
        for item in list(self._copies)[:NOT_WRITTEN]:
            self._log.error(
                "dead letter not written before the worker ended; the broker archives "
                "the record",
                **position_of(item.record),
            )
        if len(self._copies) > NOT_WRITTEN:
            self._log.error("dead letters not written", records=len(self._copies))

    # Copies.

    def _start_copy(self, item: WorkItem, outcome: Moved | DeadLettered) -> None:
        if not item.has_outcome:
            self._scheduler.start_copy(item)
        self._copies[item] = outcome
        if self.tasks is not None:
            self.tasks.start_soon(self._copy, item, outcome)
        self._on_changed()

    async def _copy(self, item: WorkItem, outcome: Moved | DeadLettered) -> None:
        """Write a record to a retry topic or the dead-letter queue, and accept it.

        This is repeated until it succeeds. Meanwhile the record is held, so that
        nothing is lost; other records of its partition go on while its window lasts.
        """
        repeat_after = FIRST_REPEAT
        while self._copies.get(item) is outcome:
            try:
                await self._write(item, outcome)
            except ClosedError:
                return
            except Error as error:
                if isinstance(outcome, Moved) and _is_too_large(error):
                    self._on_too_large(item, outcome)
                    return
                topic = self._copy_topic(outcome)
                place = position_of(item.record)
                self._copy_log.on_failure(topic, error, repeat_after, place)
                await anyio.sleep(repeat_after)
                repeat_after = min(2 * repeat_after, MAX_REPEAT)
            else:
                self._copy_log.on_written(self._copy_topic(outcome))
                self._on_copied(item, outcome)
                return

    def _on_too_large(self, item: WorkItem, outcome: Moved) -> None:
        if self._copies.get(item) is outcome:
            del self._copies[item]
            reason = f"{outcome.topic} takes no record of this size"
            self.settle(item, Released(reason, outcome.error))

    def _copy_topic(self, outcome: Moved | DeadLettered) -> str:
        if isinstance(outcome, Moved):
            return outcome.topic
        assert self._dead_letter is not None, "decided by the policy"
        return self._dead_letter.topic

    async def _write(self, item: WorkItem, outcome: Moved | DeadLettered) -> None:
        record = item.record
        if isinstance(outcome, Moved):
            error = outcome.error
            due = round((time.time() + outcome.seconds) * 1000)
            reason = error_text(error) if error is not None else ""
            origin = self._origin(item, outcome.attempt - 1, reason, error)
            await self._producer.send(
                outcome.topic,
                record.value,
                key=record.key,
                headers=(*without_origin(record.headers), *retry_headers(origin, due)),
            )
            return
        assert self._dead_letter is not None, "decided by the policy"
        check_no_return(record.headers, self._dead_letter)
        origin = self._origin(item, item.attempt, outcome.reason, outcome.error)
        if outcome.error is not None:
            origin = origin._replace(traceback=traceback_of(outcome.error))
        await write_dead_letter(self._producer, self._dead_letter, record, origin)

    def _origin(
        self, item: WorkItem, attempts: int, reason: str, error: Exception | None
    ) -> Origin:
        return failed_origin(
            item, group=self._group, attempts=attempts, reason=reason, error=error
        )

    def _on_copied(self, item: WorkItem, outcome: Moved | DeadLettered) -> None:
        if self._copies.get(item) is not outcome:
            return  # its lock was lost meanwhile, and it is delivered again
        del self._copies[item]
        if isinstance(outcome, DeadLettered):
            self._counts.dead_lettered += 1
            self._failures.on_given_up("record dead-lettered", item, outcome)
        else:
            self._counts.moved += 1
        if not item.is_done:
            self._end(item, item.record.accept)

    # Leaving.

    def _end(self, item: WorkItem, acknowledge: Callable[[], None]) -> None:
        """Acknowledge a record and forget it."""
        self._forget(item)
        try:
            acknowledge()
        except (LockLostError, RecordStateError, ClosedError) as error:
            self._failures.on_not_acknowledged(item, error)

    def _forget(self, item: WorkItem) -> None:
        self._scheduler.remove(item)
        self._renewals.remove(item)
        self._window.remove(item)
        self._on_changed()

    def _warn_of_release(self, item: WorkItem, reason: str) -> None:
        if self._warned_of_release:
            return
        self._warned_of_release = True
        self._log.warning(
            "failed record released, which uses up a delivery; with retry_topics it "
            "would wait. This is logged once",
            **position_of(item.record),
            reason=reason,
        )


def _is_too_large(error: Error) -> bool:
    return isinstance(error, BrokerError) and error.code in TOO_LARGE
