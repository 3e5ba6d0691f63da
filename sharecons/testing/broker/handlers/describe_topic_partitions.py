"""DescribeTopicPartitions 0 (KIP-966): topics, and their partitions in pages.

Topics are ordered by name. If a page is full the response has a cursor for the next
request. There are never eligible leader replicas, since all replicas are in sync.
"""

from collections.abc import Iterator
from typing import Final

from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.partition_fields import describe_partition
from sharecons.testing.broker.topics import INTERNAL, Topic, topic_name_error

__all__ = ["handle"]

MAX_PAGE: Final = 2000  # partitions: max.request.partition.size.limit


async def handle(request: Request, context: Context) -> Response:
    cursor = request.cursor
    if cursor is not None and cursor.partition_index < 0:
        return _error_response(request)
    names = _names(request, context)
    denied = {
        n for n in names if context.cluster.authorizer.denies("DESCRIBE", "TOPIC", n)
    }
    topics, next_cursor = _page(request, context, [n for n in names if n not in denied])
    if request.topics:
        error = ErrorCode.topic_authorization_failed
        topics += [_unknown(name, error) for name in sorted(denied)]
    return {"topics": topics, "next_cursor": next_cursor}


def _error_response(request: Request) -> Response:
    code = ErrorCode.invalid_request
    return {"topics": [_unknown(topic.name, code) for topic in request.topics]}


def _names(request: Request, context: Context) -> list[str]:
    """Return the requested topics, starting at the cursor; all if none is named."""
    first = "" if request.cursor is None else request.cursor.topic_name
    names = {topic.name for topic in request.topics or context.cluster.topics}
    return sorted(name for name in names if name >= first)


def _page(
    request: Request, context: Context, names: list[str]
) -> tuple[list[Response], Response | None]:
    """Describe topics until the page is full; return the cursor as well."""
    remaining = max(1, min(MAX_PAGE, request.response_partition_limit))
    described: list[Response] = []
    for name, first in _from_cursor(request, names):
        if remaining <= 0:
            return described, {"topic_name": name, "partition_index": 0}
        topic = context.cluster.topics.by_name(name)
        if topic is None:
            described.append(_missing(name, context))
            continue
        described.append(_known(topic, context, first, first + remaining))
        if len(topic.partitions) > first + remaining:
            return described, {"topic_name": name, "partition_index": first + remaining}
        remaining -= len(topic.partitions) - first
    return described, None


def _from_cursor(request: Request, names: list[str]) -> Iterator[tuple[str, int]]:
    """Yield each topic with its first requested partition."""
    cursor = request.cursor
    first_partitions = (
        {} if cursor is None else {cursor.topic_name: cursor.partition_index}
    )
    for name in names:
        yield name, first_partitions.get(name, 0)


def _missing(name: str, context: Context) -> Response:
    is_invalid = topic_name_error(name)
    code = ErrorCode.unknown_topic_or_partition
    result = _unknown(name, ErrorCode.invalid_topic_exception if is_invalid else code)
    return {**result, **_operations(name, context)}


def _unknown(name: str, code: ErrorCode) -> Response:
    return {"error_code": code, "name": name, "is_internal": name in INTERNAL}


def _known(topic: Topic, context: Context, first: int, end: int) -> Response:
    running = context.cluster.running
    return {
        "name": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": topic.internal,
        "partitions": [
            {
                **describe_partition(partition, running),
                "eligible_leader_replicas": [],
                "last_known_elr": [],
            }
            for partition in topic.partitions[first:end]
        ],
        **_operations(topic.name, context),
    }


def _operations(name: str, context: Context) -> Response:
    operations = context.cluster.authorizer.authorized_operations("TOPIC", name)
    return {"topic_authorized_operations": operations}
