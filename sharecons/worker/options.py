"""The types of a worker's keyword arguments, for type checkers and editors.

`Unpack` applies them to `ShareWorker`, `Handler` and `@worker.handler`. The entries in
`HandlerSettings`, `WorkerSettings` and `MemberSettings` describe them.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypedDict

from sharecons.copies.dead_letter_queue import DeadLetterQueue
from sharecons.member.record_source import Acknowledged
from sharecons.member.settings import MemberOptions
from sharecons.worker.health_policy import HealthPolicy
from sharecons.worker.machine.settings import OnDeserializationError
from sharecons.worker.middleware import Middleware
from sharecons.worker.outcome_events import OutcomeEvent
from sharecons.worker.retry_policy import RetryPolicy
from sharecons.worker.retry_topics import RetryTopic

__all__ = ["HandlerDefaults", "HandlerOptions", "WorkerOptions"]


class HandlerDefaults(TypedDict, total=False):
    """Settings of a worker for all its handlers, which each handler can have itself."""

    timeout: float | None
    retry: RetryPolicy | None
    retry_topics: Iterable[RetryTopic]
    dead_letter: DeadLetterQueue | str | None
    on_deserialization_error: OnDeserializationError
    key_order: bool
    max_lock_time: float
    stop_on_error: bool


class HandlerOptions(HandlerDefaults, total=False):
    """All keyword arguments of `Handler` except deserializers.

    Arguments that are not given have the worker's values.
    """

    concurrency: int


class WorkerOptions(HandlerDefaults, MemberOptions, total=False):
    """All keyword arguments of `ShareWorker` except group and deserializers."""

    concurrency: int
    max_held_bytes: int
    create_topics: bool
    shutdown_grace: float
    handle_signals: bool
    health: HealthPolicy | None
    middleware: Iterable[Middleware]
    on_outcome: Callable[[OutcomeEvent[Any, Any]], object] | None
    on_acknowledged: Acknowledged | None
    collect_metrics: bool
