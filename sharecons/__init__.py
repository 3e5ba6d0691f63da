"""An async client for Kafka share groups (KIP-932): a topic as a queue.

async with ShareConsumer("orders", group_id="billing") as consumer:
    async for record in consumer:
        await charge(record.value)
"""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sharecons.admin import ShareGroupAdmin
    from sharecons.batch import Batch
    from sharecons.build import COMPILED
    from sharecons.config.security import Security
    from sharecons.consumer.share_consumer import ShareConsumer
    from sharecons.copies.dead_letter_queue import DeadLetterQueue
    from sharecons.errors import (
        AuthenticationError,
        AuthorizationError,
        BrokerError,
        ClosedError,
        CommitTimeoutError,
        ConfigurationError,
        ConnectionFailedError,
        CorruptRecordsError,
        DeserializationError,
        Error,
        LockLostError,
        RecordStateError,
        RequestTimedOutError,
    )
    from sharecons.producer.client import Producer
    from sharecons.producer.records import ProducerRecord, RecordPosition
    from sharecons.properties.arguments import load_properties, load_security
    from sharecons.protocol.acknowledge.result_log import (
        AcknowledgeFailure,
        AcknowledgeResult,
    )
    from sharecons.record import AcknowledgeType, Record, TimestampType, TopicPartition
    from sharecons.version import __version__ as __version__
    from sharecons.worker.conditions import Condition
    from sharecons.worker.handler import Handler
    from sharecons.worker.handlers import BatchHandler, HandlerBatch
    from sharecons.worker.health_policy import HealthPolicy
    from sharecons.worker.middleware import Attempt, BatchAttempt, CallNext, Middleware
    from sharecons.worker.options import HandlerOptions, WorkerOptions
    from sharecons.worker.outcome_events import OutcomeEvent
    from sharecons.worker.outcomes import DeadLetter, Reject, Retry
    from sharecons.worker.retry_policy import RetryPolicy
    from sharecons.worker.retry_topics import RetryTopic
    from sharecons.worker.share_worker import ShareWorker

__all__ = [
    "COMPILED",
    "AcknowledgeFailure",
    "AcknowledgeResult",
    "AcknowledgeType",
    "Attempt",
    "AuthenticationError",
    "AuthorizationError",
    "Batch",
    "BatchAttempt",
    "BatchHandler",
    "BrokerError",
    "CallNext",
    "ClosedError",
    "CommitTimeoutError",
    "Condition",
    "ConfigurationError",
    "ConnectionFailedError",
    "CorruptRecordsError",
    "DeadLetter",
    "DeadLetterQueue",
    "DeserializationError",
    "Error",
    "Handler",
    "HandlerBatch",
    "HandlerOptions",
    "HealthPolicy",
    "LockLostError",
    "Middleware",
    "OutcomeEvent",
    "Producer",
    "ProducerRecord",
    "Record",
    "RecordPosition",
    "RecordStateError",
    "Reject",
    "RequestTimedOutError",
    "Retry",
    "RetryPolicy",
    "RetryTopic",
    "Security",
    "ShareConsumer",
    "ShareGroupAdmin",
    "ShareWorker",
    "TimestampType",
    "TopicPartition",
    "WorkerOptions",
    "load_properties",
    "load_security",
]

# Loading the client takes 0.2 to 0.6 s, most of it for the codec. The command line's
# help and pytest import this module too and need none of it.
_MODULES: Final[Mapping[str, str]] = {
    "COMPILED": "build",
    "AcknowledgeFailure": "protocol.acknowledge.result_log",
    "AcknowledgeResult": "protocol.acknowledge.result_log",
    "AcknowledgeType": "record",
    "Attempt": "worker.middleware",
    "AuthenticationError": "errors",
    "AuthorizationError": "errors",
    "Batch": "batch",
    "BatchAttempt": "worker.middleware",
    "BatchHandler": "worker.handlers",
    "BrokerError": "errors",
    "CallNext": "worker.middleware",
    "ClosedError": "errors",
    "CommitTimeoutError": "errors",
    "Condition": "worker.conditions",
    "ConfigurationError": "errors",
    "ConnectionFailedError": "errors",
    "CorruptRecordsError": "errors",
    "DeadLetter": "worker.outcomes",
    "DeadLetterQueue": "copies.dead_letter_queue",
    "DeserializationError": "errors",
    "Error": "errors",
    "Handler": "worker.handler",
    "HandlerBatch": "worker.handlers",
    "HandlerOptions": "worker.options",
    "HealthPolicy": "worker.health_policy",
    "LockLostError": "errors",
    "Middleware": "worker.middleware",
    "OutcomeEvent": "worker.outcome_events",
    "Producer": "producer.client",
    "ProducerRecord": "producer.records",
    "Record": "record",
    "RecordPosition": "producer.records",
    "RecordStateError": "errors",
    "Reject": "worker.outcomes",
    "RequestTimedOutError": "errors",
    "Retry": "worker.outcomes",
    "RetryPolicy": "worker.retry_policy",
    "RetryTopic": "worker.retry_topics",
    "Security": "config.security",
    "ShareConsumer": "consumer.share_consumer",
    "ShareGroupAdmin": "admin",
    "ShareWorker": "worker.share_worker",
    "TimestampType": "record",
    "TopicPartition": "record",
    "WorkerOptions": "worker.options",
    "__version__": "version",
    "load_properties": "properties.arguments",
    "load_security": "properties.arguments",
}


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


if not TYPE_CHECKING:  # or type checkers would accept any name

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            text = f"module {__name__!r} has no attribute {name!r}"
            module = import_module(__name__)  # for Python's "Did you mean"
            raise AttributeError(text, name=name, obj=module)
        found: object = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        globals()[name] = found
        return found
