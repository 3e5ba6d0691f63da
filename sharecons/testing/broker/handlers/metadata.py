"""Metadata 0 to 13: brokers, topics and leaders.

Topics are requested by name, by id (from version 12, KIP-516), or all. Topics without
permission to describe are left out of all topics, and errors if requested. A topic that
is created by this request (auto.create.topics.enable) is still unknown in the response,
as in Kafka, where creation takes longer; clients retry.
"""

import uuid
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from sharecons.testing.broker.acls import CLUSTER_NAME
from sharecons.testing.broker.cluster import Cluster
from sharecons.testing.broker.codec import ErrorCode, Request, Response, field_or
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.create_topics import create_topic
from sharecons.testing.broker.errors import RequestError
from sharecons.testing.broker.internal_topics import new_topic
from sharecons.testing.broker.partition_fields import describe_partition
from sharecons.testing.broker.topics import (
    INTERNAL,
    Partition,
    Topic,
    topic_name_error,
)

__all__ = ["handle"]

TOPIC_IDS_SINCE: Final = 12


async def handle(request: Request, context: Context) -> Response:
    cluster = context.cluster
    if error := _request_error(request, context.version):
        return _error_response(request, error)
    return {
        "brokers": [
            context.endpoint(cluster.brokers[node_id])
            for node_id in sorted(cluster.running)
        ],
        "cluster_id": cluster.cluster_id,
        "controller_id": cluster.controller,
        "topics": _topics(request, context),
        **_cluster_operations(request, cluster),
    }


def _request_error(request: Request, version: int) -> ErrorCode | None:
    """Return the error of the whole request: ids in an old version, or no name."""
    ids = [field_or(each, "topic_id", None) for each in request.topics or ()]
    names = [each.name for each in request.topics or ()]
    if version < TOPIC_IDS_SINCE:
        return ErrorCode.invalid_request if any(ids) or None in names else None
    # With one id, all topics count as ids; else Kafka fails at a missing name.
    return ErrorCode.unknown_server_error if None in names and not any(ids) else None


def _error_response(request: Request, code: ErrorCode) -> Response:
    return {
        "topics": [
            _unknown(each.name or "", code, topic_id=field_or(each, "topic_id", None))
            for each in request.topics
        ]
    }


def _cluster_operations(request: Request, cluster: Cluster) -> Response:
    """Return the operations for versions 8 to 10; later, DescribeCluster has them."""
    if not field_or(request, "include_cluster_authorized_operations", False):
        return {}
    operations = cluster.authorizer.cluster_operations()
    return {"cluster_authorized_operations": operations}


def _topics(request: Request, context: Context) -> list[Response]:
    if request.topics is None or (context.version == 0 and not request.topics):
        return _all_topics(request, context)
    ids = dict.fromkeys(
        each.topic_id for each in request.topics if field_or(each, "topic_id", None)
    )
    if ids:
        return [_topic_by_id(topic_id, request, context) for topic_id in ids]
    names = dict.fromkeys(each.name for each in request.topics)
    return _topics_by_name(names, request, context)


def _all_topics(request: Request, context: Context) -> list[Response]:
    authorizer = context.cluster.authorizer
    return [
        _known(topic, request, context)
        for topic in context.cluster.topics
        if not authorizer.denies("DESCRIBE", "TOPIC", topic.name)
    ]


def _topic_by_id(topic_id: uuid.UUID, request: Request, context: Context) -> Response:
    cluster = context.cluster
    topic = cluster.topics.by_id(topic_id)
    if topic is None:
        return _unknown(None, ErrorCode.unknown_topic_id, topic_id=topic_id)
    if cluster.authorizer.denies("DESCRIBE", "TOPIC", topic.name):
        error = ErrorCode.topic_authorization_failed
        return _unknown(None, error, topic_id=topic_id)
    return _known(topic, request, context)


def _topics_by_name(
    names: Iterable[str], request: Request, context: Context
) -> list[Response]:
    authorizer = context.cluster.authorizer
    found = []
    for name in names:
        topic = context.cluster.topics.by_name(name)
        if authorizer.denies("DESCRIBE", "TOPIC", name):
            found.append(_unknown(name, ErrorCode.topic_authorization_failed))
        elif topic is not None:
            found.append(_known(topic, request, context))
        else:
            found.append(_missing(name, request, context.cluster))
    return found


def _missing(name: str, request: Request, cluster: Cluster) -> Response:
    """Return the error of a topic that does not exist; create it if allowed."""
    code = ErrorCode.unknown_topic_or_partition
    if topic_name_error(name):
        code = ErrorCode.invalid_topic_exception
    elif _auto_creates(request, cluster):
        if _may_create(name, cluster):
            with suppress(RequestError):
                create_topic(cluster, new_topic(cluster, name))
        else:
            code = ErrorCode.topic_authorization_failed
    result = _unknown(name, code, internal=name in INTERNAL)
    if code is ErrorCode.topic_authorization_failed:
        return result
    return {**result, **_operations(name, request, cluster)}


def _auto_creates(request: Request, cluster: Cluster) -> bool:
    is_allowed: bool = field_or(request, "allow_auto_topic_creation", True)
    return (
        is_allowed
        and cluster.configs.broker_value("auto.create.topics.enable") == "true"
    )


def _may_create(name: str, cluster: Cluster) -> bool:
    denies = cluster.authorizer.denies
    return not (
        denies("CREATE", "CLUSTER", CLUSTER_NAME) and denies("CREATE", "TOPIC", name)
    )


def _unknown(
    name: str | None,
    code: ErrorCode,
    *,
    topic_id: uuid.UUID | None = None,
    internal: bool = False,
) -> Response:
    return {
        "error_code": code,
        "name": name,
        "topic_id": topic_id,
        "is_internal": internal,
    }


def _known(topic: Topic, request: Request, context: Context) -> Response:
    running = context.cluster.running
    describe = _describe_v0 if context.version == 0 else describe_partition
    return {
        "name": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": topic.internal,
        "partitions": [describe(partition, running) for partition in topic.partitions],
        **_operations(topic.name, request, context.cluster),
    }


def _operations(name: str, request: Request, cluster: Cluster) -> Response:
    if not field_or(request, "include_topic_authorized_operations", False):
        return {}
    return {
        "topic_authorized_operations": cluster.authorizer.authorized_operations(
            "TOPIC", name
        )
    }


def _describe_v0(partition: Partition, running: list[int]) -> Response:
    """Describe a partition for version 0: stopped replicas are left out, an error."""
    result = dict(describe_partition(partition, running))
    result["replica_nodes"] = in_sync = partition.in_sync(running)
    if in_sync and in_sync != partition.replicas:
        result["error_code"] = ErrorCode.replica_not_available
    return result
