"""Commits of offsets, inside a transaction or not.

Unknown partitions get their own error; for all others the group decides, if there are
any. Metadata that is too long rejects only its partition's offset; a commit that is too
large as a whole is rejected as a whole.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Final, TypeAlias

from sharecons.testing.broker.codec import ErrorCode, Request, field_or
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.errors import GroupError
from sharecons.testing.broker.group_checks import check_writable, new_group
from sharecons.testing.broker.groups.classic import ClassicGroup
from sharecons.testing.broker.groups.commit_size import commit_size
from sharecons.testing.broker.groups.offsets import Offset, TopicPartition
from sharecons.testing.broker.offset_partitions import (
    TopicResults,
    each_partition,
)

__all__ = ["NO_RETENTION_TIME", "Store", "commit_each", "get_or_create_group"]

NO_RETENTION_TIME: Final = timedelta(milliseconds=-1)

Store: TypeAlias = Callable[[ClassicGroup, Mapping[TopicPartition, Offset]], None]


def commit_each(
    context: Context,
    topics: Iterable[Request],
    get_group: Callable[[], ClassicGroup],
    store: Store,
    *,
    retention: timedelta = NO_RETENTION_TIME,
) -> TopicResults:
    """Commit the valid offsets, and return the response for every partition.

    Args:
        topics: the topics of the request.
        get_group: returns the group, or raises GroupError.
        store: stores the offsets in the group.
        retention: how long the offsets stay; -1 ms for the broker's setting.
    """
    topics = list(topics)
    requested: list[tuple[TopicPartition, Offset | None]] = []

    def note(topic_partition: TopicPartition, partition: Request) -> ErrorCode:
        offset = _requested_offset(context, partition, retention)
        requested.append((topic_partition, offset))
        return ErrorCode.none if offset else ErrorCode.offset_metadata_too_large

    results = each_partition(context, topics, note)
    if not requested:
        return results
    try:
        group = get_group()
        offsets = [(where, offset) for where, offset in requested if offset]
        _check_size(context, group.group_id, offsets)
        if offsets:
            check_writable(context)
    except GroupError as error:
        code = error.code
        return each_partition(context, topics, lambda topic_partition, partition: code)
    if offsets:
        context.cluster.groups.add(group)
        store(group, dict(offsets))
    return results


def get_or_create_group(
    context: Context, group_id: str, *, named: bool, missing: ErrorCode
) -> ClassicGroup:
    """Return a group, created if it does not exist and no generation is named.

    Raises:
        GroupError: `missing`, or the group is a share group.
    """
    found = context.cluster.groups.get(group_id)
    if found is None:
        if named:
            raise GroupError(missing)
        return new_group(context, group_id)
    if not isinstance(found, ClassicGroup):
        raise GroupError(ErrorCode.group_id_not_found)
    return found


def _check_size(
    context: Context, group_id: str, offsets: Iterable[tuple[TopicPartition, Offset]]
) -> None:
    """Check that the commit fits into a batch of the coordinator's log.

    Raises:
        GroupError: it does not.
    """
    size = commit_size(group_id, ((topic, o.metadata) for (topic, _), o in offsets))
    if size > int(context.cluster.configs.broker_value("message.max.bytes")):
        raise GroupError(ErrorCode.unknown_server_error)


def _requested_offset(
    context: Context, partition: Request, retention: timedelta
) -> Offset | None:
    """Return the offset to commit, or None if its metadata is too long."""
    metadata: str = partition.committed_metadata or ""
    if len(metadata) > int(
        context.cluster.configs.broker_value("offset.metadata.max.bytes")
    ):
        return None
    leader_epoch = field_or(partition, "committed_leader_epoch", -1)
    expires_at = None
    if retention != NO_RETENTION_TIME:
        expires_at = context.now + retention.total_seconds()
    return Offset(
        partition.committed_offset, leader_epoch, metadata, context.now, expires_at
    )
