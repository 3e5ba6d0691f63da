"""Topics and partitions in requests about offsets, and their error codes."""

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from sharecons.testing.broker.codec import ErrorCode, Request, field_or
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.groups.offsets import TopicPartition

__all__ = ["PartitionHandler", "TopicResults", "each_partition", "same_error"]

KEYS: Final = ("name", "topic_id")
"""The fields that identify a topic, one or the other."""

PartitionHandler: TypeAlias = Callable[[TopicPartition, Request], ErrorCode]
"""Handles one existing partition; returns its error code."""

TopicResults: TypeAlias = list[dict[str, Any]]
"""The `topics` of a response, each with its `partitions`."""


def each_partition(
    context: Context, topics: Iterable[Request], handle: PartitionHandler
) -> TopicResults:
    """Return an error code for every partition: from its checks, or from `handle`."""

    def error_of(topic: Request) -> Callable[[Request], ErrorCode]:
        name, error = _find_name(context, topic)
        if error:
            return lambda partition: error
        return lambda partition: (
            _missing_error(context, name, partition.partition_index)
            or handle((name, partition.partition_index), partition)
        )

    return [_topic_result(topic, error_of(topic)) for topic in topics]


def same_error(topics: Iterable[Request], code: ErrorCode) -> TopicResults:
    """Return the same error code for every partition."""
    return [_topic_result(topic, lambda partition: code) for topic in topics]


def _topic_result(
    topic: Request, error_of: Callable[[Request], ErrorCode]
) -> dict[str, Any]:
    known = {key: getattr(topic, key) for key in KEYS if hasattr(topic, key)}
    return {
        **known,
        "partitions": [
            {
                "partition_index": partition.partition_index,
                "error_code": error_of(partition),
            }
            for partition in topic.partitions
        ],
    }


def _find_name(context: Context, topic: Request) -> tuple[str, ErrorCode]:
    """Return a topic's name, looked up if the request has an id, and an error."""
    cluster = context.cluster
    name: str | None = field_or(topic, "name", None)
    if name is None:
        found = cluster.topics.by_id(topic.topic_id)
        if found is None:
            return "", ErrorCode.unknown_topic_id
        name = found.name
    if cluster.authorizer.denies("READ", "TOPIC", name):
        return name, ErrorCode.topic_authorization_failed
    return name, ErrorCode.none


def _missing_error(context: Context, name: str, index: int) -> ErrorCode:
    topic = context.cluster.topics.by_name(name)
    if topic is None or topic.partition(index) is None:
        return ErrorCode.unknown_topic_or_partition
    return ErrorCode.none
