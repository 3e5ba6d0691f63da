"""Carries out the outcomes of records: acknowledgements, retries, dead letters.

A record is accepted only after its copy, in a retry topic or in the dead-letter queue,
is confirmed. If the worker dies between the two, the record is delivered again, and its
copy exists as well. The origin in the copy's headers shows that.
"""

import time
from collections.abc import Callable
from typing import Any, Final

import anyio

from sharecons._record import TopicPartition
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
from sharecons.worker.dead_letters import TOO_LARGE, DeadLetterQueue, write_dead_letter
from sharecons.worker.origins import failed_origin
from sharecons.worker.outcomes import (
    Accepted,
    DeadLettered,
    LockLost,
    Outcome,
    Rejected,
    Released,
    RetryAfter,
    Spilled,
)
from sharecons.worker.renewals import RenewalSchedule
from sharecons.worker.retry_topics import retry_headers
from sharecons.worker.scheduler import ItemState, Scheduler, WorkItem
from sharecons.worker.stats import Counts
from sharecons.worker.window import WindowTracker

__all__ = ["Settlement", "partition_of", "place_of"]

FIRST_REPEAT: Final = 1.0
MAX_REPEAT: Final = 30.0
"""Seconds until a copy that could not be written is written again."""


class Settlement:
    """Carries out outcomes; the worker's records leave it here.

    Args:
        group: the share group.
        on_changed: is called when a record has left, or uses no slot any more.
    """

    def __init__(
        self,
        producer: IdempotentProducer,
        dead_letter: DeadLetterQueue | None,
        *,
        group: str,
        clock: Clock,
        scheduler: Scheduler,
        renewals: RenewalSchedule,
        window: WindowTracker,
        counts: Counts,
        on_changed: Callable[[], None],
    ) -> None:
        self._producer = producer
        self._dead_letter = dead_letter
        self._group = group
        self._clock = clock
        self._scheduler = scheduler
        self._renewals = renewals
        self._window = window
        self._counts = counts
        self._on_changed = on_changed
        self._warned_of_release = False
        self._copy_log = CopyLog(group)
        self._log = get_logger(__name__, group=group)

    def settle(self, item: WorkItem, outcome: Outcome) -> bool:
        """Carry out an outcome that needs no I/O; return False for a copy to write.

        The item is running, or waiting. `copy` must be called for one to be written.
        """
        counts = self._counts
        match outcome:
            case Accepted():
                counts.accepted += 1
                self._end(item, item.record.accept)
            case RetryAfter(seconds, _, _):
                counts.retried += 1
                self._scheduler.retry(item, self._clock() + seconds)
                self._on_changed()
            case Rejected(reason, _):
                counts.rejected += 1
                self._log.warning(
                    "record rejected", **place_of(item.record), reason=reason
                )
                self._end(item, item.record.reject)
            case Released(reason, _):
                self._warn_of_release(item, reason)
                self.release(item)
            case LockLost():
                counts.locks_lost += 1
                self._log.warning("lock lost", **place_of(item.record))
                self._forget(item)
            case Spilled() | DeadLettered():
                self._close(item)
                return False
        return True

    def release(self, item: WorkItem) -> None:
        """Return a record to the broker, after records of its lane that wait for it.

        Otherwise these would be processed before it.
        """
        if item.is_done:
            return
        for behind in reversed(self._scheduler.lane_behind(item)):
            self.release(behind)
        self._counts.released += 1
        self._end(item, item.record.release)

    async def copy(self, item: WorkItem, outcome: Outcome) -> None:
        """Write a record to a retry topic or the dead-letter queue, and accept it.

        This is repeated until it succeeds. Meanwhile the record is held, so that
        nothing is lost; other records of its partition go on while its window lasts.
        """
        repeat_after = FIRST_REPEAT
        while not item.is_done:
            try:
                await self._write(item, outcome)
            except ClosedError:
                return
            except Error as error:
                if _is_too_large(error):
                    self.settle(item, Released("its retry topic takes no such size"))
                    return
                topic = self._copy_topic(outcome)
                place = place_of(item.record)
                self._copy_log.on_failure(topic, error, repeat_after, place)
                await anyio.sleep(repeat_after)
                repeat_after = min(2 * repeat_after, MAX_REPEAT)
            else:
                self._copy_log.on_written(self._copy_topic(outcome))
                self._on_copied(item, outcome)
                return

    def _copy_topic(self, outcome: Outcome) -> str:
        if isinstance(outcome, Spilled):
            return outcome.topic
        assert self._dead_letter is not None, "decided by the policy"
        return self._dead_letter.topic

    async def _write(self, item: WorkItem, outcome: Outcome) -> None:
        record = item.record
        match outcome:
            case Spilled(topic, seconds, attempt, error):
                due = round((time.time() + seconds) * 1000)
                reason = f"{type(error).__name__}: {error}" if error else ""
                origin = self._origin(item, attempt - 1, reason, error)
                await self._producer.send(
                    topic,
                    record.value,
                    key=record.key,
                    headers=(
                        *without_origin(record.headers),
                        *retry_headers(origin, due),
                    ),
                )
            case DeadLettered(reason, error):
                assert self._dead_letter is not None, "decided by the policy"
                origin = self._origin(item, item.attempt, reason, error)
                await write_dead_letter(
                    self._producer, self._dead_letter, record, origin
                )
            case _:
                raise AssertionError(f"{outcome!r} has no copy")

    def _origin(
        self, item: WorkItem, attempts: int, reason: str, error: Exception | None
    ) -> Origin:
        return failed_origin(
            item, group=self._group, attempts=attempts, reason=reason, error=error
        )

    def _on_copied(self, item: WorkItem, outcome: Outcome) -> None:
        if item.is_done:
            return  # its lock was lost meanwhile
        if isinstance(outcome, DeadLettered):
            self._counts.dead_lettered += 1
            self._log.warning(
                "record dead-lettered", **place_of(item.record), reason=outcome.reason
            )
        else:
            self._counts.spilled += 1
        self._end(item, item.record.accept)

    def _close(self, item: WorkItem) -> None:
        if item.state is ItemState.WAITING:
            self._scheduler.end_wait(item)
        else:
            self._scheduler.close(item)
        self._on_changed()

    def _end(self, item: WorkItem, acknowledge: Callable[[], None]) -> None:
        """Acknowledge a record and forget it."""
        self._forget(item)
        try:
            acknowledge()
        except (LockLostError, RecordStateError, ClosedError) as error:
            # The record is delivered again.
            self._log.warning(
                "acknowledgement failed", **place_of(item.record), error=str(error)
            )

    def _forget(self, item: WorkItem) -> None:
        self._scheduler.remove(item)
        self._renewals.remove(item)
        self._window.on_done(partition_of(item.record), item.record.offset)
        self._on_changed()

    def _warn_of_release(self, item: WorkItem, reason: str) -> None:
        if self._warned_of_release:
            return
        self._warned_of_release = True
        self._log.warning(
            "failed record released, which uses up a delivery; with retry_topics it "
            "would wait. This is logged once",
            **place_of(item.record),
            reason=reason,
        )


def _is_too_large(error: Error) -> bool:
    return isinstance(error, BrokerError) and error.code in TOO_LARGE


def partition_of(record: Any) -> TopicPartition:
    return TopicPartition(record.topic, record.partition)


def place_of(record: Any) -> dict[str, Any]:
    """Return a record's position, for a log line."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "delivery_count": record.delivery_count,
    }
