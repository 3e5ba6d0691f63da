"""The settings of a handler, which decide about its records."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal, get_args

from sharecons.config.callables import check_callable
from sharecons.config.options import Flag, option
from sharecons.config.validation import (
    check_bool,
    check_choice,
    check_count,
    check_number,
)
from sharecons.copies.dead_letter_queue import dead_letter_topic
from sharecons.worker.retry_policy import DAY, RetryPolicy, check_retry
from sharecons.worker.retry_topics import RetryTopics, check_retry_topics

__all__ = ["DEFAULTS", "HandlerSettings", "OnDeserializationError"]

OnDeserializationError = Literal["dead_letter", "reject", "release"]

MIN_TIMEOUT: Final = 0.001
YEAR: Final = 365 * DAY


def _check_timeout(name: str, value: float | None) -> float | None:
    return None if value is None else check_number(name, value, MIN_TIMEOUT, YEAR)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HandlerSettings:
    """The settings that decide about the records of one handler.

    Each handler has an object of its own, which identifies it. These are the options of
    `Handler`; all except `concurrency` can be given to the worker as well, for handlers
    that do not have them. `HandlerDefaults` has their types as arguments.

    Attributes:
        max_records: records of one call; 1 for a handler of one record.
        max_wait: seconds for which an incomplete batch waits for more records.
        max_attempts: the highest number of attempts that `retry` allows.
    """

    concurrency: int | None = option(
        None,
        partial(check_count, minimum=1),
        "how many calls of this handler run at a time; without it, only the worker's "
        "concurrency limits them",
    )
    timeout: float | None = option(
        None,
        _check_timeout,
        "seconds for one call of the handler; then it is cancelled, and the attempt "
        "has failed with a TimeoutError. A thread cannot be cancelled: it takes a slot "
        "until it ends",
        shown="no limit",
        flag=Flag("--handler-timeout", "SECONDS"),
    )
    retry: RetryPolicy = option(
        RetryPolicy(),
        check_retry,
        "how often, and after which delays, a failed record is tried again",
        shown="RetryPolicy()",
    )
    retry_topics: RetryTopics = option(
        RetryTopics(()),
        check_retry_topics,
        "topics for records that wait so long that they would stall their partition. "
        "The worker consumes these topics as well. Without any, such records are "
        "released, which uses up a delivery",
        shown="none",
        flag=Flag("--retry-topic", "NAME=SECONDS", is_repeatable=True),
    )
    dead_letter: str | None = option(
        None,
        dead_letter_topic,
        "the topic to which records are written after their last attempt; without it "
        "they are rejected. A `DeadLetterQueue`, or the name of its topic; no topic "
        "that the worker consumes",
        flag=Flag("--dead-letter", "TOPIC"),
    )
    on_deserialization_error: OnDeserializationError = option(
        "dead_letter",
        partial(check_choice, choices=get_args(OnDeserializationError)),
        'the outcome of a record that a deserializer cannot read: "dead_letter" '
        '(rejected without a dead-letter queue), "reject" or "release"',
    )
    key_order: bool = option(
        False,
        check_bool,
        "process records with the same key one after the other, in each process. Other "
        "members of the group can process records with the same key at the same time. "
        "Such records never move to a retry topic",
        flag=Flag("--key-order"),
    )
    max_lock_time: float = option(
        DAY,
        partial(check_number, minimum=0.0, maximum=YEAR),
        "seconds for which a record is held, its lock renewed, waits included. Then "
        "its handler is cancelled, and the attempt has failed with a TimeoutError",
        shown="a day",
        flag=Flag("--max-lock-time", "SECONDS"),
    )
    stop_on_error: bool = option(
        False,
        check_bool,
        "the first exception of a handler, other than Retry, Reject and DeadLetter, "
        "stops the worker, and `run` raises it",
    )
    key_deserializer: Callable[[bytes], Any] | None = option(
        None, check_callable, "a plain function, bytes to an object; None stays None"
    )
    value_deserializer: Callable[[bytes], Any] | None = option(
        None, check_callable, "as `key_deserializer`"
    )
    max_records: int = 1
    max_wait: float = 0.0
    max_attempts: int = field(init=False)

    def __post_init__(self) -> None:
        # Read for each record.
        object.__setattr__(self, "max_attempts", self.retry.most_attempts)


DEFAULTS: Final = HandlerSettings()
"""The settings of a record whose handler has none of its own."""
