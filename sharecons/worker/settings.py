"""The settings of a worker as keyword arguments, with their types.

Editors and type checkers read them here; `Unpack` applies them to `ShareWorker`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final, Literal, TypedDict

from sharecons.config.not_given import NotGiven
from sharecons.config.security import Security
from sharecons.copies.dead_letter_writer import DeadLetterQueue
from sharecons.errors import ConfigurationError
from sharecons.instrumentation import Instrumentation
from sharecons.member.record_source import Acknowledged
from sharecons.net.io.transport import Network
from sharecons.worker.health_policy import HealthPolicy
from sharecons.worker.machine.settings import OnDeserializationError
from sharecons.worker.middleware import Middleware
from sharecons.worker.outcome_events import OutcomeEvent
from sharecons.worker.retry_policy import RetryPolicy
from sharecons.worker.retry_topics import RetryTopic

__all__ = [
    "HandlerDefaults",
    "HandlerOptions",
    "MemberOptions",
    "WorkerSettings",
    "check_names",
]


class HandlerDefaults(TypedDict, total=False):
    """Settings of a worker for all its handlers, which each handler can have itself.

    Attributes:
        timeout: seconds for one call of the handler; then it is cancelled, and the
            attempt has failed with a TimeoutError. A thread cannot be cancelled: it
            takes a slot until it ends, see docs/worker.md.
        retry: how often, and after which delays, a failed record is tried again.
        retry_topics: where records wait that would stall their partition. The worker
            consumes these topics as well. Without any, such records are released, which
            uses up a delivery.
        dead_letter: where records are written after their last attempt: a
            `DeadLetterQueue`, or the name of its topic. No topic that the worker
            consumes.
        on_deserialization_error: the outcome of a record that a deserializer cannot
            read: "dead_letter" (rejected without a dead-letter queue), "reject",
            "release".
        key_order: process records with one key one after the other. This holds in this
            worker only: other members of the group can process records with the same
            key at the same time. Such records never move to a retry topic.
        max_lock_time: seconds for which a record's lock is renewed in all, with its
            waits. Then its handler is cancelled, and the attempt has failed with a
            TimeoutError.
        stop_on_error: the first exception of a handler, other than Retry, Reject and
            DeadLetter, stops the worker, and `run` raises it.
    """

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

    Attributes:
        concurrency: how many calls of this handler run at a time; without it, only the
            worker's concurrency limits them.
    """

    concurrency: int


class MemberOptions(TypedDict, total=False):
    """How a worker connects, joins its group and fetches; as `ShareConsumer`.

    Attributes:
        bootstrap_servers: `host:port`, several with commas or as a sequence.
        auto_offset_reset: sets the group's `share.auto.offset.reset` before joining:
            "earliest", "latest" or "by_duration:<ISO 8601>". None leaves the group
            unchanged. If it is not given, the worker sets earliest if the group has no
            value of its own.
        max_records: maximum number of records in one round of fetches, softly: whole
            batches of producers come together.
        acquire_mode: "record_limit" makes `max_records` exact (Kafka 4.2).
        values: "memoryview" delivers values as read-only views of the response's memory
            instead of copies; see docs/consumer.md for what that costs.
        max_wait: seconds that a fetch waits at the broker for records.
        min_bytes, max_bytes: of one fetch response; max_bytes is a soft limit. See
            `max_held_bytes` for the records that a worker holds.
        client_id: for brokers' logs and quotas.
        member_id: identifies this member. A process that keeps its id when it restarts
            (a pod's name, for example) gets its partitions again immediately. Never use
            an id twice at the same time. Any name; it is converted to a UUID.
        client_rack: for brokers that assign by rack.
        security: TLS and SASL; plain TCP by default.
        connect_timeout: seconds to connect to a first broker at the start.
        request_timeout: seconds to wait for one response.
        enable_metrics_push: whether brokers that collect metrics of their clients
            (KIP-714) receive them; needs the extra `telemetry`. See docs/metrics.md.
        network: opens connections, for tests.
        instrumentation: a `sharecons.otel.OpenTelemetry`, or None. If it is not given,
            what `sharecons.otel.instrument` has set.
    """

    bootstrap_servers: str | Sequence[str]
    auto_offset_reset: str | None | NotGiven
    max_records: int
    acquire_mode: Literal["batch_optimized", "record_limit"]
    values: Literal["bytes", "memoryview"]
    max_wait: float
    min_bytes: int
    max_bytes: int
    client_id: str
    member_id: str | None
    client_rack: str | None
    security: Security | None
    connect_timeout: float
    request_timeout: float
    enable_metrics_push: bool
    network: Network | None
    instrumentation: Instrumentation | None | NotGiven


class WorkerSettings(HandlerDefaults, MemberOptions, total=False):
    """All keyword arguments of `ShareWorker` except group and deserializers.

    Attributes:
        concurrency: how many calls run at a time, of all handlers.
        max_held_bytes: no more records are taken while the records that the worker
            holds have this many bytes.
        create_topics: create the retry topics and the dead-letter topics if they do not
            exist, with the retention and the partitions of the topics that are
            consumed. Otherwise a missing topic is an error of the start.
        shutdown_grace: seconds for handlers to finish when the worker stops.
        handle_signals: stop on SIGTERM and SIGINT; a second one cancels the handlers.
            They are received while a worker runs in the main thread. Earlier signal
            handlers of the application are called as well, and are restored.
        health: when the worker counts as not ready, and as not live; see
            `HealthPolicy`.
        middleware: coroutine functions with an `Attempt` and `call_next` as arguments,
            which wrap each call of a handler; the first one is the outermost.
        collect_metrics: count for `worker.metrics()`. This takes 1 to 2 µs for each
            record, of 20 in a worker whose handlers do nothing.
        on_outcome: a plain function with an `OutcomeEvent` as its argument, called for
            each outcome of a record, even without a call of the handler.
        on_acknowledged: called with the results (`AcknowledgeResult`) of
            acknowledgements: whether a broker has confirmed an outcome. A plain
            function; its exceptions are logged.
    """

    concurrency: int
    max_held_bytes: int
    create_topics: bool
    shutdown_grace: float
    handle_signals: bool
    health: HealthPolicy | None
    middleware: Sequence[Middleware]
    on_outcome: Callable[[OutcomeEvent[Any, Any]], object] | None
    on_acknowledged: Acknowledged | None
    collect_metrics: bool


WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "acknowledgement": (
        "has no effect in a worker, which accepts a record when its handler has "
        "returned; omit it"
    ),
    "max_attempts": (
        "is an argument of RetryPolicy: pass retry=RetryPolicy(max_attempts=...)"
    ),
}
"""Reasons by names that users of other classes know."""


def check_names(owner: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Check that every keyword argument exists.

    Args:
        owner: the called function, for the message.
        given: the names of the arguments.
        known: the names that exist.

    Raises:
        ConfigurationError: one does not; the message has the nearest name.
    """
    names = sorted(known)
    for name in given:
        if name in names:
            continue
        if reason := WITHOUT_EFFECT.get(name):
            raise ConfigurationError(f"{owner}: {name} {reason}")
        close = get_close_matches(name, names, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise ConfigurationError(f"{owner} has no argument {name}{hint}")
