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
from sharecons.testing.broker.share.partitions import Key
from sharecons.testing.broker.share.sessions import TopicPartition
from sharecons.testing.broker.topics import Partition

__all__ = [
    "Decision",
    "Refused",
    "acknowledged",
    "all_known",
    "current_leader",
    "decisions",
    "endpoints",
    "has_failed",
    "place_of",
    "refusal",
    "refused",
    "settle",
]

LONGEST_MEMBER_ID: Final = 36
MOVED: Final = frozenset(
    {ErrorCode.not_leader_or_follower, ErrorCode.fenced_leader_epoch}
)

Acknowledged = Mapping[TopicPartition, Sequence[AcknowledgementBatch]]


class Refused(NamedTuple):
    """The error of a partition whose acknowledgements are rejected."""

    code: ErrorCode
    message: str | None = None


Decision = Refused | list[Change]


def refusal(request: Request, context: Context) -> ErrorCode | None:
    """Return the error of a whole request, before its session is checked, or None."""
    if request.group_id is None:
        return ErrorCode.invalid_request
    if context.cluster.authorizer.denies("READ", "GROUP", request.group_id):
        return ErrorCode.group_authorization_failed
    if not 0 < len(request.member_id or "") <= LONGEST_MEMBER_ID:
        return ErrorCode.invalid_request
    return None


def place_of(
    cluster: Cluster, where: TopicPartition
) -> tuple[Partition | None, ErrorCode]:
    """Return a partition, or None and the error."""
    topic = cluster.topics.by_id(where.topic_id)
    if topic is None:
        return None, ErrorCode.unknown_topic_id
    if cluster.authorizer.denies("READ", "TOPIC", topic.name):
        return None, ErrorCode.topic_authorization_failed
    place = topic.partition(where.partition)
    if place is None:
        return None, ErrorCode.unknown_topic_or_partition
    return place, ErrorCode.none


def acknowledged(request: Request) -> dict[TopicPartition, list[AcknowledgementBatch]]:
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


def all_known(cluster: Cluster, named: Iterable[TopicPartition]) -> bool:
    """Return whether all topic ids exist."""
    return all(cluster.topics.by_id(each.topic_id) for each in named)


def decisions(
    request: Request, context: Context, entries: Acknowledged
) -> dict[TopicPartition, Decision]:
    """Validate the acknowledgements of each partition; return changes or errors."""
    may_renew = context.version >= 2 and field_or(request, "is_renew_ack", False)
    decided: dict[TopicPartition, Decision] = {}
    empty: dict[TopicPartition, Decision] = {}
    for where, batches in entries.items():
        place, error = place_of(context.cluster, where)
        if _is_malformed(batches, may_renew):
            decided[where] = Refused(ErrorCode.invalid_request)
        elif place is None:
            decided[where] = Refused(error)
        elif not batches:
            empty[where] = []
        else:
            decided[where] = _decision(request, context, where, batches)
    # Kafka leaves out partitions without acknowledgements if no other one counts.
    return decided | empty if _any_counts(decided) else decided


def has_failed(decided: Mapping[TopicPartition, Decision]) -> bool:
    """Return whether the whole request fails because of one partition."""
    return any(
        isinstance(decision, Refused)
        and decision.code is ErrorCode.unknown_server_error
        for decision in decided.values()
    )


def settle(
    context: Context, group_id: str, decided: Mapping[TopicPartition, Decision]
) -> bool:
    """Apply the changes; return whether a start offset has moved."""
    has_moved = False
    partitions = context.cluster.share_partitions
    for where, decision in decided.items():
        if not isinstance(decision, list):
            continue
        key = Key(group_id, *where)
        partition = partitions.led(key, context.node_id)
        if partition is not None and partition.settle(decision):
            partitions.changed(key).notify()
            has_moved = True
        has_moved |= partitions.bury(key)
    return has_moved


def current_leader(
    cluster: Cluster, where: TopicPartition, code: ErrorCode
) -> Response:
    """Return a partition's leader, if the error says that another broker leads."""
    topic = cluster.topics.by_id(where.topic_id)
    place = topic.partition(where.partition) if topic is not None else None
    if code not in MOVED or place is None:
        return {}
    return {"leader_id": place.leader, "leader_epoch": place.leader_epoch}


def endpoints(context: Context, leaders: Iterable[Response]) -> list[Response]:
    """Return the addresses of the brokers that `current_leader` has returned."""
    named = {leader["leader_id"] for leader in leaders if leader}
    return [
        context.endpoint(broker)
        for broker in context.cluster.brokers.values()
        if broker.node_id in named and broker.running
    ]


def refused(code: ErrorCode) -> Response:
    return {"error_code": code}


_NO_TOPIC: Final = uuid.UUID(int=0)


def _decision(
    request: Request,
    context: Context,
    where: TopicPartition,
    batches: Sequence[AcknowledgementBatch],
) -> Decision:
    partitions = context.cluster.share_partitions
    key = Key(request.group_id, *where)
    partition = partitions.led(key, context.node_id)
    if partition is None:
        return Refused(ErrorCode.unknown_topic_or_partition)
    settings = partitions.settings(request.group_id)
    if partition.advance(settings, context.now):
        partitions.changed(key).notify()
    partitions.bury(key)
    try:
        return partition.acknowledge(request.member_id, batches, settings, context.now)
    except AcknowledgeError as error:
        return Refused(error.code, str(error))


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


def _any_counts(decided: Mapping[TopicPartition, Decision]) -> bool:
    return any(isinstance(decision, list) for decision in decided.values())
