"""The options of a worker, checked."""

from dataclasses import dataclass

from sharecons.errors import ConfigurationError
from sharecons.worker.dead_letters import DeadLetterQueue
from sharecons.worker.placement import Undeserializable
from sharecons.worker.retry_policy import RetryPolicy
from sharecons.worker.retry_topics import RetryTopics

__all__ = ["WorkerOptions", "check_lease"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """The options of `ShareWorker`."""

    concurrency: int
    max_bytes: int
    retry: RetryPolicy
    retry_topics: RetryTopics
    dead_letter: DeadLetterQueue | None
    undeserializable: Undeserializable
    key_order: bool
    max_lease: float
    shutdown_grace: float
    stop_on_error: bool


def check_lease(max_lease: float, timeout: float | None, topics: RetryTopics) -> None:
    """Check that a record is held long enough for a call, and in a retry topic.

    A longer delay of a policy is no error: such a record waits elsewhere.

    Raises:
        ConfigurationError: one of them is longer than `max_lease`.
    """
    held = [("timeout is", timeout)]
    if topics:
        held.append(
            ("records of retry_topics are held for up to", topics.longest_delay)
        )
    for what, seconds in held:
        if seconds is not None and seconds > max_lease:
            raise ConfigurationError(
                f"{what} {seconds:g} s, but max_lease, for which a record is held in "
                f"all, is {max_lease:g} s: increase max_lease"
            )
