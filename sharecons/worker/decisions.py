"""Decides the outcome of a record: from an error, its wait, its lease, its deliveries.

Each decision is a function of its arguments and of the group's settings.
"""

from collections.abc import Callable
from typing import Final, final

from sharecons.worker.error_text import text_of
from sharecons.worker.machine.item import WorkItem
from sharecons.worker.machine.window import WindowTracker
from sharecons.worker.options import WorkerOptions
from sharecons.worker.outcomes import (
    DeadLettered,
    RecordOutcome,
    Rejected,
    Released,
    RetryAfter,
    decision_of,
)
from sharecons.worker.placement import place_retry

__all__ = ["DEFAULT_DELIVERY_LIMIT", "Decisions"]

DEFAULT_DELIVERY_LIMIT: Final = 5
"""Kafka's default of share.delivery.count.limit (KIP-932)."""


@final
class Decisions:
    """The decisions of one worker.

    Args:
        renews: returns whether locks are renewed.

    Attributes:
        delivery_limit: how often the group delivers a record before it is archived.
        is_stopping: no record is held any longer for its next attempt.
    """

    def __init__(
        self,
        options: WorkerOptions,
        window: WindowTracker,
        renews: Callable[[], bool],
    ) -> None:
        self._options = options
        self._most_attempts = options.retry.most_attempts
        self._window = window
        self._renews = renews
        self.delivery_limit = DEFAULT_DELIVERY_LIMIT
        self.is_stopping = False

    def before_call(self, item: WorkItem) -> RecordOutcome | None:
        """Return the outcome of a record that is not processed; None for any other.

        Earlier deliveries have used up its attempts: it perhaps kills its worker.
        """
        if item.attempt <= self._most_attempts:
            return None
        return self._give_up(
            f"delivered {item.record.delivery_count} times without an outcome; "
            f"max_attempts is {self._most_attempts}",
            item.error,
        )

    def on_error(
        self, item: WorkItem, error: Exception, now: float, chance: float
    ) -> RecordOutcome:
        """Return the outcome of a record whose handler raised `error`.

        Args:
            chance: a random number from 0.0 to 1.0, for the jitter of a delay.
        """
        if self._options.stop_on_error and decision_of(error) is None:
            return Released("its handler raised", error)
        outcome = self._options.retry.decide(
            error,
            attempt=item.attempt,
            chance=chance,
            has_dead_letter_queue=self._options.dead_letter is not None,
        )
        if isinstance(outcome, RetryAfter):
            return self.place(item, outcome, now)
        return outcome

    def on_undeserializable(self, error: Exception) -> RecordOutcome:
        """Return the outcome of a record that a deserializer could not read."""
        reason = text_of(error.__cause__ or error)
        policy = self._options.undeserializable
        if policy == "release":
            return Released(reason, error)
        if policy == "reject":
            return Rejected(reason, error)
        return self._give_up(reason, error)

    def held_too_long(self) -> TimeoutError:
        """Return the error of an attempt at the end of its record's lease."""
        seconds = self._options.max_lease
        return TimeoutError(f"the record was held for max_lease ({seconds:g} s)")

    def continue_wait(self, item: WorkItem, now: float) -> RecordOutcome:
        """Return where a record waits for the rest of its delay."""
        seconds = max(0.0, item.due - now)
        return self.place(item, RetryAfter(seconds, item.attempt, item.error), now)

    def place(self, item: WorkItem, outcome: RetryAfter, now: float) -> RecordOutcome:
        """Return where a record waits for its next attempt."""
        record, delay = item.record, outcome.seconds
        keeps_lock = self._renews() or delay < record.lock_remaining
        return place_retry(
            outcome,
            is_leased=keeps_lock and now + delay < item.lease_end,
            can_wait=self._window.can_wait(item, delay, now),
            topics=self._options.retry_topics,
            key_order=item.lane is not None,
            stopping=self.is_stopping,
        )

    def is_last_delivery(self, item: WorkItem) -> bool:
        """Return whether the broker archives the record once it is released."""
        delivery_count: int = item.record.delivery_count
        return delivery_count >= self.delivery_limit

    def instead_of_release(self, item: WorkItem, released: Released) -> RecordOutcome:
        """Return the outcome of a record that would be released.

        On its last delivery the broker would archive it, so it becomes a dead letter.
        """
        if self._options.dead_letter is None or not self.is_last_delivery(item):
            return released
        reason = f"delivered for the last time: {released.reason}"
        return DeadLettered(reason, released.error)

    def _give_up(self, reason: str, error: Exception | None) -> RecordOutcome:
        if self._options.dead_letter is not None:
            return DeadLettered(reason, error)
        return Rejected(reason, error)
