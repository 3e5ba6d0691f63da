"""The parts that ShareFetch and ShareAcknowledge share: checks and acknowledgements."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from sharecons.testing.broker.cluster import Cluster
from sharecons.testing.broker.codec import ErrorCode, Request, Response, field_or
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.share.acknowledge import Change
from sharecons.testing.broker.share.deliveries import (
    AcknowledgeError,
    AcknowledgementBatch,
    AcknowledgeType,
)
from sharecons.testing.broker.share.partitions import SharePartitionKey
from sharecons.testing.broker.share.sessions import TopicPartition
from sharecons.testing.broker.topics import Partition

__all__ = [
    "PartitionError",
    "PartitionResult",
    "acknowledgements",
    "all_topics_exist",
    "apply_acknowledgements",
    "check_acknowledgements",
    "error_response",
    "find_partition",
    "has_server_error",
    "partition_fields",
    "request_error",
    "response_of_partitions",
]

MAX_MEMBER_ID_LENGTH: Final = 36
LEADER_MOVED: Final = frozenset(
    {ErrorCode.not_leader_or_follower, ErrorCode.fenced_leader_epoch}
)

Acknowledgements = Mapping[TopicPartition, Sequence[AcknowledgementBatch]]


class PartitionError(NamedTuple):
    """The error of a partition whose acknowledgements are rejected."""

    code: ErrorCode
    message: str | None = None


PartitionResult = PartitionError | list[Change]


def request_error(request: Request, context: Context) -> ErrorCode | None:
    """Return the error of a whole request, before its session is checked, or None."""
    if request.group_id is None:
        return ErrorCode.invalid_request
    if context.cluster.authorizer.denies("READ", "GROUP", request.group_id):
        return ErrorCode.group_authorization_failed
    if not 0 < len(request.member_id or "") <= MAX_MEMBER_ID_LENGTH:
        return ErrorCode.invalid_request
    return None


def find_partition(
    context: Context, topic_partition: TopicPartition
) -> tuple[Partition | None, ErrorCode]:
    """Return a partition, or None and the error."""
    cluster, fault = context.cluster, context.partition_fault
    topic = cluster.topics.by_id(topic_partition.topic_id)
    if topic is None:
        return None, ErrorCode.unknown_topic_id
    if fault is not None and fault.matches(topic.name, topic_partition.partition):
        return None, fault.code
    if cluster.authorizer.denies("READ", "TOPIC", topic.name):
        return None, ErrorCode.topic_authorization_failed
    partition = topic.partition(topic_partition.partition)
    if partition is None:
        return None, ErrorCode.unknown_topic_or_partition
    return partition, ErrorCode.none


def acknowledgements(
    request: Request,
) -> dict[TopicPartition, list[AcknowledgementBatch]]:
    """Return the acknowledgements of a request, unchecked, by partition."""
    return {
        TopicPartition(topic.topic_id or _NO_TOPIC, int(each.partition_index)): [
            AcknowledgementBatch(
                int(batch.first_offset),
                int(batch.last_offset),
                tuple(int(kind) for kind in batch.acknowledge_types),
            )
            for batch in each.acknowledgement_batches
        ]
        for topic in request.topics
        for each in topic.partitions
    }


def all_topics_exist(cluster: Cluster, partitions: Iterable[TopicPartition]) -> bool:
    """Return whether all topic ids exist."""
    return all(cluster.topics.by_id(each.topic_id) for each in partitions)


def check_acknowledgements(
    request: Request, context: Context, entries: Acknowledgements
) -> dict[TopicPartition, PartitionResult]:
    """Validate the acknowledgements of each partition; return changes or errors."""
    may_renew = context.version >= 2 and field_or(request, "is_renew_ack", False)
    results: dict[TopicPartition, PartitionResult] = {}
    empty: dict[TopicPartition, PartitionResult] = {}
    for topic_partition, batches in entries.items():
        partition, error = find_partition(context, topic_partition)
        if _is_malformed(batches, may_renew):
            results[topic_partition] = PartitionError(ErrorCode.invalid_request)
        elif partition is None:
            results[topic_partition] = PartitionError(error)
        elif not batches:
            empty[topic_partition] = []
        else:
            results[topic_partition] = _check_partition(
                request, context, topic_partition, batches
            )
    # Kafka leaves out partitions without acknowledgements if no other one counts.
    return results | empty if _has_changes(results) else results


def has_server_error(results: Mapping[TopicPartition, PartitionResult]) -> bool:
    """Return whether the whole request fails because of one partition."""
    return any(
        isinstance(decision, PartitionError)
        and decision.code is ErrorCode.unknown_server_error
        for decision in results.values()
    )


def apply_acknowledgements(
    context: Context, group_id: str, results: Mapping[TopicPartition, PartitionResult]
) -> bool:
    """Apply the changes; return whether a start offset has moved."""
    has_moved = False
    partitions = context.cluster.share_partitions
    for topic_partition, decision in results.items():
        if not isinstance(decision, list):
            continue
        key = SharePartitionKey(group_id, *topic_partition)
        partition = partitions.get_loaded(key, context.node_id)
        if partition is not None and partition.apply(decision):
            partitions.changed(key).notify()
            has_moved = True
        has_moved |= partitions.write_dead_letters(key)
    return has_moved


def _leader_if_moved(
    context: Context, topic_partition: TopicPartition, code: ErrorCode
) -> Response:
    """Return a partition's leader, if the error says that another broker leads."""
    fault = context.partition_fault
    if fault is not None and fault.leader is not None and code is fault.code:
        leader, epoch = fault.leader()
        return {"leader_id": leader, "leader_epoch": epoch}
    topic = context.cluster.topics.by_id(topic_partition.topic_id)
    partition = (
        topic.partition(topic_partition.partition) if topic is not None else None
    )
    if code not in LEADER_MOVED or partition is None:
        return {}
    return {"leader_id": partition.leader, "leader_epoch": partition.leader_epoch}


def response_of_partitions(
    context: Context, group_id: str, results: Mapping[TopicPartition, Response]
) -> Response:
    """Return a response with a result for each partition; see `partition_fields`."""
    topics: dict[object, list[Response]] = {}
    for topic_partition, fields in results.items():
        topics.setdefault(topic_partition.topic_id, []).append(fields)
    leaders = [each["current_leader"] for each in results.values()]
    settings = context.cluster.share_partitions.group_settings(group_id)
    return {
        "acquisition_lock_timeout": settings.lock_duration,
        "responses": [
            {"topic_id": topic_id, "partitions": partitions}
            for topic_id, partitions in topics.items()
        ],
        "node_endpoints": _leader_endpoints(context, leaders),
    }


def partition_fields(
    context: Context, topic_partition: TopicPartition, code: ErrorCode
) -> Response:
    """Return the fields that a partition has in both responses."""
    return {
        "partition_index": topic_partition.partition,
        "error_code": code,
        "current_leader": _leader_if_moved(context, topic_partition, code),
    }


def _leader_endpoints(context: Context, leaders: Iterable[Response]) -> list[Response]:
    """Return the addresses of the brokers that `_leader_if_moved` has returned."""
    named = {leader["leader_id"] for leader in leaders if leader}
    return [
        context.endpoint(broker)
        for broker in context.cluster.brokers.values()
        if broker.node_id in named and broker.running
    ]


def error_response(code: ErrorCode) -> Response:
    return {"error_code": code}


_NO_TOPIC: Final = uuid.UUID(int=0)


def _check_partition(
    request: Request,
    context: Context,
    topic_partition: TopicPartition,
    batches: Sequence[AcknowledgementBatch],
) -> PartitionResult:
    partitions = context.cluster.share_partitions
    key = SharePartitionKey(request.group_id, *topic_partition)
    partition = partitions.get_loaded(key, context.node_id)
    if partition is None:
        return PartitionError(ErrorCode.unknown_topic_or_partition)
    settings = partitions.group_settings(request.group_id)
    if partition.advance(settings, context.now):
        partitions.changed(key).notify()
    partitions.write_dead_letters(key)
    try:
        return partition.acknowledge(request.member_id, batches, settings, context.now)
    except AcknowledgeError as error:
        return PartitionError(error.code, str(error))


def _is_malformed(batches: Sequence[AcknowledgementBatch], may_renew: bool) -> bool:
    last = -1
    for first_offset, last_offset, types in batches:
        if not last <= first_offset <= last_offset:
            return True
        if len(types) != 1 and len(types) != last_offset - first_offset + 1:
            return True
        highest = AcknowledgeType.RENEW if may_renew else AcknowledgeType.REJECT
        if not all(AcknowledgeType.GAP <= kind <= highest for kind in types):
            return True
        last = last_offset
    return False


def _has_changes(results: Mapping[TopicPartition, PartitionResult]) -> bool:
    return any(isinstance(decision, list) for decision in results.values())
