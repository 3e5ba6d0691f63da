"""Decides the outcome of a record: from an error, its wait, its lease, its deliveries.

Each decision is a function of its arguments, the settings of the record's handler and
the group's settings.
"""

from typing import Final, final

from sharecons.error_text import error_text, text_of
from sharecons.guard import cause_of, guarded, is_a, type_name
from sharecons.plain_copy import plain_copy
from sharecons.worker.machine.isolation import Rank
from sharecons.worker.machine.item import WorkItem
from sharecons.worker.machine.waits import Waits
from sharecons.worker.outcomes import (
    DeadLetterCause,
    DeadLettered,
    RecordOutcome,
    Rejected,
    Released,
    RetryAfter,
    decision_of,
)
from sharecons.worker.retry_policy import RetryPolicy

__all__ = ["DEFAULT_DELIVERY_LIMIT", "Decisions", "held_too_long"]

DEFAULT_DELIVERY_LIMIT: Final = 5
"""Kafka's default of share.delivery.count.limit (KIP-932)."""

SUSPECT_BEFORE: Final = 2
"""The number of deliveries before the last one that are suspect; see `isolation`."""

MIN_SUSPECT: Final = 2
"""The first delivery that can be suspect: one before it had no outcome."""

MIN_SPENT: Final = 3
"""The first last delivery without a call: two before it had no outcome."""

NOT_CALLED: Final = "its handler is not called, because it perhaps ends its process"


@final
class Decisions:
    """The decisions of one worker.

    Attributes:
        delivery_limit: how often the group delivers a record before it is archived.
    """

    def __init__(self, waits: Waits) -> None:
        self._waits = waits
        self.delivery_limit = DEFAULT_DELIVERY_LIMIT

    def before_call(self, item: WorkItem) -> RecordOutcome:
        """Return the outcome of a record with more deliveries than attempts.

        Earlier deliveries have used up its attempts: it perhaps kills its worker.
        """
        return self.without_call(
            item,
            f"delivered {item.record.delivery_count} times without an outcome; "
            f"max_attempts is {item.settings.max_attempts}",
            "deliveries",
        )

    def suspect_rank(self, item: WorkItem) -> Rank | None:
        """Return the rank of a record that runs alone, as `Isolation` needs it.

        Records with the most deliveries run first: they have none to lose.
        """
        count: int = item.record.delivery_count
        left = self.delivery_limit - count
        if count < MIN_SUSPECT or left > SUSPECT_BEFORE:
            return None
        sign = -1 if left % 2 else 1
        return -count, sign * item.record.partition, sign * item.record.offset

    def is_spent(self, item: WorkItem) -> bool:
        """Return whether a record becomes a dead letter without a call.

        It is on its last delivery: if it ends the process again, no dead letter exists.
        """
        return item.record.delivery_count >= MIN_SPENT and self.needs_dead_letter(item)

    def uncalled(self, item: WorkItem, reason: str) -> RecordOutcome:
        """Return the outcome of a record that no handler is called with.

        Args:
            reason: why, unless it is on its last delivery.
        """
        if not self.is_spent(item):
            return self.without_call(item, reason, "no_handler")
        before = item.record.delivery_count - 1
        text = f"its last delivery, after {before} without an outcome: {NOT_CALLED}"
        return self.without_call(item, text, "deliveries")

    def without_call(
        self, item: WorkItem, reason: str, cause: DeadLetterCause
    ) -> RecordOutcome:
        """Return the outcome of a record that has failed without another call."""
        return _give_up(item, reason, item.error, cause)

    def on_error(
        self, item: WorkItem, error: Exception, now: float, chance: float
    ) -> RecordOutcome:
        """Return the outcome of a record whose handler raised `error`.

        Args:
            chance: a random number from 0.0 to 1.0, for the jitter of a delay.
        """
        settings = item.settings
        # The worker ends at this record: another one can process it after a mend.
        if settings.stop_on_error and decision_of(error) is None:
            return Released("its handler raised", error)

        def decide(policy: RetryPolicy, error: Exception) -> RecordOutcome:
            outcome = policy.decide(
                error,
                attempt=item.attempt,
                chance=chance,
                has_dead_letter_queue=settings.dead_letter is not None,
            )
            if not is_a(outcome, (RetryAfter, Rejected, DeadLettered)):
                raise TypeError(f"decide() returned a {type_name(outcome)}")
            return outcome

        def on_failed_decision(failure: BaseException) -> RecordOutcome:
            raised = error_text(plain_copy(failure))
            text = f"{type_name(error)}; deciding about it raised {raised}"
            default = RetryPolicy(max_attempts=settings.max_attempts)
            return decide(default, RuntimeError(text))

        # The policy can be a subclass, and the exception's class have a metaclass.
        outcome = guarded(lambda: decide(settings.retry, error), on_failed_decision)
        if isinstance(outcome, RetryAfter):
            return self._wait(item, outcome, now)
        return outcome

    def on_deserialization_error(
        self, item: WorkItem, error: Exception
    ) -> RecordOutcome:
        """Return the outcome of a record that a deserializer could not read."""
        cause = cause_of(error)
        reason = text_of(error if cause is None else cause)
        choice = item.settings.on_deserialization_error
        if choice == "release":
            return Released(reason, error)
        if choice == "reject":
            return Rejected(reason, error)
        return _give_up(item, reason, error, "deserialization")

    def continue_wait(self, item: WorkItem, now: float) -> RecordOutcome:
        """Return where a record waits for the rest of its delay."""
        seconds = max(0.0, item.due - now)
        return self._wait(item, RetryAfter(seconds, item.attempt, item.error), now)

    def _wait(self, item: WorkItem, retry: RetryAfter, now: float) -> RecordOutcome:
        is_suspect = self.suspect_rank(item) is not None
        return self._waits.decide(item, retry, now, is_suspect=is_suspect)

    def is_last_delivery(self, item: WorkItem) -> bool:
        """Return whether the broker archives the record once it is released."""
        delivery_count: int = item.record.delivery_count
        return delivery_count >= self.delivery_limit

    def can_be_delivered_again(self, item: WorkItem) -> bool:
        """Return whether a record that is released can be processed afterwards."""
        has_attempts = item.attempt < item.settings.max_attempts
        return has_attempts and not self.is_last_call(item)

    def is_last_call(self, item: WorkItem) -> bool:
        """Return whether no delivery with a call follows a release."""
        count: int = item.record.delivery_count
        has_call = count < max(self.delivery_limit - 1, MIN_SPENT - 1)
        has_queue = item.settings.dead_letter is not None
        return self.is_last_delivery(item) or (has_queue and not has_call)

    def needs_dead_letter(self, item: WorkItem) -> bool:
        """Return whether a record must be copied before it returns to the broker."""
        return item.settings.dead_letter is not None and self.is_last_delivery(item)

    def as_carried_out(self, item: WorkItem, outcome: RecordOutcome) -> RecordOutcome:
        """Return the outcome to report: see `instead_of_release`."""
        if isinstance(outcome, Released):
            return self.instead_of_release(item, outcome)
        return outcome

    def instead_of_release(
        self, item: WorkItem, released: Released
    ) -> Released | DeadLettered:
        """Return the outcome of a record that would be released.

        On its last delivery the broker would archive it, so it becomes a dead letter.
        So does one whose next delivery has no call: its error is known now.
        """
        if item.settings.dead_letter is None or not self.is_last_call(item):
            return released
        reason = f"delivered for the last time: {released.reason}"
        return DeadLettered(reason, released.error, "last_delivery")


def held_too_long(item: WorkItem) -> TimeoutError:
    """Return the error of an attempt at the end of its record's lease."""
    seconds = item.settings.max_lock_time
    return TimeoutError(f"the record was held for max_lock_time ({seconds:g} s)")


def _give_up(
    item: WorkItem, reason: str, error: Exception | None, cause: DeadLetterCause
) -> RecordOutcome:
    if item.settings.dead_letter is not None:
        return DeadLettered(reason, error, cause)
    return Rejected(reason, error)
