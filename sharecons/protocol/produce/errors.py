"""The errors of records that are not confirmed; each says whether it can be written."""

from collections.abc import Mapping, Sequence
from typing import Final

from sharecons._record import TopicPartition
from sharecons.errors import (
    AuthorizationError,
    BrokerError,
    Error,
    RequestTimedOutError,
)
from sharecons.protocol.codes import Code, code_name
from sharecons.protocol.produce.batches import PendingRecord
from sharecons.protocol.produce.messages import AppendResult
from sharecons.protocol.produce.topics import TopicQueue

__all__ = [
    "UNAUTHORIZED",
    "append_error",
    "expired_error",
    "identity_error",
    "no_partition_error",
    "rejected_error",
    "topic_error",
]

UNAUTHORIZED: Final = (
    Code.TOPIC_AUTHORIZATION_FAILED,
    Code.CLUSTER_AUTHORIZATION_FAILED,
)

_ADVICE: Final[Mapping[int, str]] = {
    Code.INVALID_TIMESTAMP: "; correct this host's clock or the record's timestamp, or "
    "set message.timestamp.type=LogAppendTime of the topic"
}
_TOO_LARGE: Final = (Code.MESSAGE_TOO_LARGE, Code.RECORD_LIST_TOO_LARGE)


def append_error(where: TopicPartition, result: AppendResult) -> BrokerError:
    """Return the error of a batch that a leader has not appended."""
    return _broker_error(
        f"{where.topic}-{where.partition} did not take a batch: {_reason(result)}"
        f"{_ADVICE.get(result.error, '')}",
        result.error,
    )


def rejected_error(
    where: TopicPartition, records: Sequence[PendingRecord], result: AppendResult
) -> BrokerError:
    """Return the error of records that a leader has rejected for good."""
    if result.error in _TOO_LARGE:
        largest = max(record.size for record in records)
        return _broker_error(
            f"{where.topic}-{where.partition} did not take a record of about {largest} "
            f"bytes: {_reason(result)}; write smaller records, or raise "
            f"max.message.bytes of topic {where.topic!r}",
            result.error,
        )
    if result.error == Code.TOPIC_AUTHORIZATION_FAILED:
        return topic_error(where.topic, result.error)
    return append_error(where, result)


def topic_error(topic: str, code: int) -> BrokerError:
    """Return the error of a topic whose metadata cannot be read, or not written to."""
    advice = ""
    if code == Code.TOPIC_AUTHORIZATION_FAILED:
        advice = "; grant WRITE on it to this client"
    return _broker_error(
        f"cannot produce to topic {topic!r}: {code_name(code)}{advice}", code
    )


def identity_error(code: int) -> AuthorizationError:
    """Return the error of a client that is not allowed to have a producer id."""
    name = code_name(code)
    return AuthorizationError(
        f"producing idempotently is not allowed: {name}; grant WRITE on a topic, or "
        "IDEMPOTENT_WRITE on the cluster, to this client",
        code=code,
        name=name,
    )


def no_partition_error(record: PendingRecord, topic: TopicQueue) -> BrokerError:
    return _broker_error(
        f"topic {record.topic!r} has no partition {record.partition}: it has "
        f"{topic.partitions}",
        Code.UNKNOWN_TOPIC_OR_PARTITION,
    )


def expired_error(record: PendingRecord, topic: TopicQueue) -> Error:
    """Return the error of a record that was not confirmed by its deadline."""
    missing = topic.lookup_error
    if (
        isinstance(missing, BrokerError)
        and missing.code == Code.UNKNOWN_TOPIC_OR_PARTITION
        and not record.was_sent
    ):
        return _broker_error(
            f"topic {record.topic!r} does not exist, so a record was not written: "
            f"{missing.name}; create the topic",
            missing.code,
        )
    last = topic.error
    reason = f"; last error: {last}" if last is not None else ""
    outcome = "might have been" if record.was_sent else "was not"
    error = RequestTimedOutError(
        f"a record for topic {record.topic!r} was not confirmed in time; it {outcome} "
        f"written{reason}"
    )
    error.__cause__ = last
    return error


def _reason(result: AppendResult) -> str:
    name = code_name(result.error)
    return f"{name}: {result.message}" if result.message else name


def _broker_error(text: str, code: int) -> BrokerError:
    kind = AuthorizationError if code in UNAUTHORIZED else BrokerError
    return kind(text, code=code, name=code_name(code))
