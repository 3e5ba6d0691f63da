"""The settings of a worker that do not concern one handler."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from sharecons.config.callables import check_callback
from sharecons.config.options import Flag, option
from sharecons.config.validation import check_bool, check_count, check_number
from sharecons.worker.arguments import check_on_outcome
from sharecons.worker.health_policy import HealthPolicy, check_health
from sharecons.worker.middleware import Middleware, check_middleware
from sharecons.worker.retry_policy import DAY

if TYPE_CHECKING:  # slow to import, and the command line's help imports this module
    from sharecons.member.record_source import Acknowledged
    from sharecons.worker.outcome_events import OutcomeEvent

__all__ = ["NO_OPTIONS", "WorkerSettings"]

MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """The settings of `ShareWorker` that do not concern one handler.

    `WorkerOptions` has their types as arguments.
    """

    concurrency: int = option(
        10,
        partial(check_count, minimum=1),
        "how many calls run at a time in each process, of all handlers",
        flag=Flag("--concurrency", "N"),
    )
    max_held_bytes: int = option(
        64 * MIB,
        partial(check_count, minimum=1),
        "no more records are taken while the records that the worker holds have this "
        "many bytes",
        shown="64 MiB",
    )
    create_topics: bool = option(
        False,
        check_bool,
        "create the retry topics and the dead-letter topics if they do not exist. They "
        "have the retention and the partitions of the topics that are consumed. "
        "Otherwise a missing topic is an error of the start",
        flag=Flag("--create-topics"),
    )
    shutdown_grace: float = option(
        30.0,
        partial(check_number, minimum=0.0, maximum=DAY),
        "seconds for handlers to finish when the worker stops",
        flag=Flag("--grace", "SECONDS"),
    )
    handle_signals: bool = option(
        True,
        check_bool,
        "stop on SIGTERM and SIGINT; a second one cancels the handlers. They are "
        "received while a worker runs in the main thread. Earlier signal handlers of "
        "the application are called as well, and are restored",
    )
    health: HealthPolicy = option(
        HealthPolicy(),
        check_health,
        "when the worker counts as not ready, and as not live",
        shown="HealthPolicy()",
    )
    middleware: tuple[Middleware, ...] = option(
        (),
        check_middleware,
        "coroutine functions with an `Attempt` and `call_next` as arguments, which "
        "wrap each call of a handler; the first one is the outermost",
        shown="none",
    )
    on_outcome: "Callable[[OutcomeEvent[Any, Any]], object] | None" = option(
        None,
        check_on_outcome,
        "a plain function with an `OutcomeEvent` as its argument, called for each "
        "outcome of a record, even without a call of the handler",
    )
    on_acknowledged: "Acknowledged | None" = option(
        None,
        check_callback,
        "a plain function, called with the results (`AcknowledgeResult`) of "
        "acknowledgements: whether a broker has confirmed an outcome. Its exceptions "
        "are logged",
    )
    collect_metrics: bool = option(
        True,
        check_bool,
        "count for `worker.metrics()`. This takes 1 to 2 µs for each record, of 20 in "
        "a worker whose handlers do nothing",
    )


NO_OPTIONS: Final[Mapping[str, str]] = {
    "acknowledgement": (
        "has no effect in a worker, which accepts a record when its handler has "
        "returned; omit it, and share.acknowledgement.mode in properties"
    ),
    "max_attempts": (
        "is an argument of RetryPolicy: pass retry=RetryPolicy(max_attempts=...)"
    ),
}
"""Reasons by names that users of other classes know."""
