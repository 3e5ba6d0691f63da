"""Writes copies of failed records: to retry topics, and dead letters."""

import time

from sharecons.copies.dead_letter_headers import Origin, without_origin
from sharecons.copies.dead_letter_queue import DeadLetterQueue
from sharecons.copies.dead_letter_writer import (
    TOO_LARGE,
    check_no_return,
    value_bytes,
    write_dead_letter,
)
from sharecons.error_text import error_text, traceback_of
from sharecons.errors import BrokerError
from sharecons.instrumentation import MemberObserver
from sharecons.producer.idempotent import IdempotentProducer
from sharecons.producer.records import RecordPosition
from sharecons.worker.machine.actions import Copy
from sharecons.worker.machine.decisions import Decisions
from sharecons.worker.machine.item import WorkItem
from sharecons.worker.origins import failed_origin
from sharecons.worker.outcomes import DeadLettered, Moved
from sharecons.worker.retry_topics import retry_headers

__all__ = ["CopyWriter", "is_too_large", "topic_of"]


class CopyWriter:
    """Writes each copy once. `sharecons.worker.machine` decides when to repeat it.

    Args:
        decisions: know whether the broker archives a record once it is released.
        observer: connects the copies with the attempts that they follow from.
    """

    def __init__(
        self,
        producer: IdempotentProducer,
        group: str,
        decisions: Decisions,
        observer: MemberObserver | None = None,
    ) -> None:
        self._producer = producer
        self._group = group
        self._decisions = decisions
        self._observer = observer

    async def write(self, copy: Copy) -> RecordPosition:
        """Write a copy; return its position once the brokers have confirmed it.

        Raises:
            Error: it is not confirmed.
        """
        if self._observer is None:
            return await self._write(copy)
        with self._observer.copying(copy.item.record):
            return await self._write(copy)

    async def _write(self, copy: Copy) -> RecordPosition:
        if isinstance(copy.outcome, Moved):
            return await self._move(copy.item, copy.outcome)
        return await self._dead_letter(copy.item, copy.outcome)

    async def _move(self, item: WorkItem, moved: Moved) -> RecordPosition:
        record, error = item.record, moved.error
        due = round((time.time() + moved.seconds) * 1000)
        reason = error_text(error) if error is not None else ""
        origin = self._origin(item, moved.attempt - 1, reason, error)
        return await self._producer.send(
            moved.topic,
            value_bytes(record),
            key=record.key,
            headers=(*without_origin(record.headers), *retry_headers(origin, due)),
        )

    async def _dead_letter(
        self, item: WorkItem, letter: DeadLettered
    ) -> RecordPosition:
        record, error = item.record, letter.error
        queue = DeadLetterQueue(_dead_letter_topic(item))
        origin = self._origin(item, item.attempt, letter.reason, error)
        # The broker archives a last delivery: without a dead letter it would be lost.
        if not self._decisions.is_last_delivery(item):
            check_no_return(origin, queue)
        if error is not None:
            origin = origin._replace(traceback=traceback_of(error))
        return await write_dead_letter(self._producer, queue, record, origin)

    def _origin(
        self, item: WorkItem, attempts: int, reason: str, error: Exception | None
    ) -> Origin:
        return failed_origin(
            item, group=self._group, attempts=attempts, reason=reason, error=error
        )


def topic_of(copy: Copy) -> str:
    """Return the topic to which a copy is written."""
    if isinstance(copy.outcome, Moved):
        return copy.outcome.topic
    return _dead_letter_topic(copy.item)


def is_too_large(error: Exception) -> bool:
    """Return whether a topic takes no record of this size."""
    return isinstance(error, BrokerError) and error.code in TOO_LARGE


def _dead_letter_topic(item: WorkItem) -> str:
    topic = item.settings.dead_letter
    assert topic is not None, "the machine decides by the same settings"
    return topic
