"""OffsetFetch 1 to 10: the committed offsets of groups, or -1.

Version 2 can request all partitions, and has an error per group. Version 7 can require
stable offsets: one with a pending commit of a transaction is an error (KIP-447). From
version 8 on it takes several groups (KIP-709), from 9 member ids, which only other
kinds of groups use, from 10 topic ids.

A group that does not exist has no committed offsets.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from sharecons.testing.broker.codec import ErrorCode, Request, Response, field_or
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.errors import GroupError
from sharecons.testing.broker.group_checks import check_access, check_coordinator
from sharecons.testing.broker.groups.offsets import GroupOffsets, TopicPartition
from sharecons.testing.broker.txn_markers import abort_expired
from sharecons.testing.broker.wall_clock import milliseconds

__all__ = ["handle"]

NO_OFFSET: Final = {
    "committed_offset": -1,
    "committed_leader_epoch": -1,
    "metadata": "",
}


async def handle(request: Request, context: Context) -> Response:
    require_stable: bool = field_or(request, "require_stable", False)
    if require_stable:
        abort_expired(context.cluster, context.now, milliseconds())
    if context.version >= 8:
        return {
            "groups": [_group(each, context, require_stable) for each in request.groups]
        }
    result = _group(request, context, require_stable)
    if result["error_code"] and context.version < 2:
        # Version 1 has no error per group.
        result["topics"] = _all_errors(request.topics, result["error_code"])
    del result["group_id"]
    return result


def _group(request: Request, context: Context, require_stable: bool) -> dict[str, Any]:
    """Return the offsets of one group; `request` has its `group_id` and `topics`."""
    topics: list[dict[str, Any]] = []
    code = ErrorCode.none
    try:
        check_access(context, "DESCRIBE", request.group_id)
        check_coordinator(context, request.group_id)
    except GroupError as error:
        code = error.code
    else:
        group = context.cluster.groups.classic(request.group_id)
        offsets = group.offsets if group else GroupOffsets()
        if request.topics is None:
            topics = _all(context, offsets, require_stable)
        else:
            topics = [
                _topic(each, context, offsets, require_stable)
                for each in request.topics
            ]
    return {"group_id": request.group_id, "topics": topics, "error_code": code}


def _all(
    context: Context, offsets: GroupOffsets, require_stable: bool
) -> list[dict[str, Any]]:
    """Return all committed offsets that the client is allowed to see."""
    by_topic: dict[str, list[int]] = {}
    for name, partition in offsets:
        by_topic.setdefault(name, []).append(partition)
    return [
        {
            **key,
            "partitions": [
                _offset(offsets, (name, p), require_stable) for p in partitions
            ],
        }
        for name, partitions in by_topic.items()
        if not context.cluster.authorizer.denies("DESCRIBE", "TOPIC", name)
        and (key := _key(context, name)) is not None
    ]


def _key(context: Context, name: str) -> dict[str, Any] | None:
    """Return the topic's name or id, depending on the version; None without id."""
    if context.version < 10:
        return {"name": name}
    topic = context.cluster.topics.by_name(name)
    return None if topic is None else {"topic_id": topic.topic_id}


def _topic(
    request: Request, context: Context, offsets: GroupOffsets, require_stable: bool
) -> dict[str, Any]:
    if context.version < 10:
        key, name = {"name": request.name}, request.name
    else:
        key, found = {"topic_id": request.topic_id}, context.cluster.topics
        topic = found.by_id(request.topic_id)
        if topic is None:
            return {**key, "partitions": _errors(request, ErrorCode.unknown_topic_id)}
        name = topic.name
    if context.cluster.authorizer.denies("DESCRIBE", "TOPIC", name):
        code = ErrorCode.topic_authorization_failed
        return {**key, "partitions": _errors(request, code)}
    topic_partitions = ((name, index) for index in request.partition_indexes)
    return {
        **key,
        "partitions": [
            _offset(offsets, each, require_stable) for each in topic_partitions
        ],
    }


def _offset(
    offsets: GroupOffsets, topic_partition: TopicPartition, require_stable: bool
) -> dict[str, Any]:
    index = topic_partition[1]
    if require_stable and offsets.is_pending(topic_partition):
        return _error(index, ErrorCode.unstable_offset_commit)
    found = offsets.get(topic_partition)
    if found is None:
        return {"partition_index": index, **NO_OFFSET}
    return {
        "partition_index": index,
        "committed_offset": found.offset,
        "committed_leader_epoch": found.leader_epoch,
        "metadata": found.metadata,
    }


def _all_errors(topics: Sequence[Request], code: ErrorCode) -> list[dict[str, Any]]:
    return [{"name": each.name, "partitions": _errors(each, code)} for each in topics]


def _errors(request: Request, code: ErrorCode) -> list[dict[str, Any]]:
    indexes: Iterable[int] = request.partition_indexes
    return [_error(index, code) for index in indexes]


def _error(index: int, code: ErrorCode) -> dict[str, Any]:
    return {"partition_index": index, **NO_OFFSET, "error_code": code}
