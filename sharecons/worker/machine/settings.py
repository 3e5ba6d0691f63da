"""The settings of a handler, which decide about its records."""

from dataclasses import dataclass, field
from typing import Final, Literal

from sharecons.worker.retry_policy import DAY, RetryPolicy
from sharecons.worker.retry_topics import RetryTopics

__all__ = ["DEFAULTS", "HandlerSettings", "OnDeserializationError"]

OnDeserializationError = Literal["dead_letter", "reject", "release"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HandlerSettings:
    """The settings that decide about the records of one handler.

    Each handler has an object of its own, which identifies it.

    Attributes:
        concurrency: how many of its calls run at a time; None if only the worker's
            concurrency limits them.
        max_records: records of one call; 1 for a handler of one record.
        max_wait: seconds for which an incomplete batch waits for more records.
        dead_letter: the dead-letter topic, or None.
        max_attempts: the highest number of attempts that `retry` allows.
    """

    concurrency: int | None = None
    max_records: int = 1
    max_wait: float = 0.0
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    retry_topics: RetryTopics = field(default_factory=lambda: RetryTopics(()))
    dead_letter: str | None = None
    on_deserialization_error: OnDeserializationError = "dead_letter"
    key_order: bool = False
    max_lock_time: float = DAY
    stop_on_error: bool = False
    max_attempts: int = field(init=False)

    def __post_init__(self) -> None:
        # Read for each record.
        object.__setattr__(self, "max_attempts", self.retry.most_attempts)


DEFAULTS: Final = HandlerSettings()
"""The settings of a record whose handler has none of its own."""
