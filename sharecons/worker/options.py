"""The options of a worker, checked."""

from dataclasses import dataclass

from sharecons.worker.dead_letters import DeadLetterQueue
from sharecons.worker.placement import Undeserializable
from sharecons.worker.retry_policy import RetryPolicy
from sharecons.worker.retry_topics import RetryTopics

__all__ = ["WorkerOptions"]


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
