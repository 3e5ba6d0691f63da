"""Setting and deleting start offsets of share groups, which must have no members."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from sharecons._record import TopicPartition
from sharecons.admin.client_executor import ClientExecutor
from sharecons.admin.missing import missing_partitions, missing_topics
from sharecons.config.validation import INT64_MAX, check_count, check_string
from sharecons.errors import ConfigurationError, ConnectionFailedError, Error
from sharecons.net.log_offsets import list_offsets
from sharecons.protocol.admin.broker_errors import check_altered
from sharecons.protocol.admin.fanout import merge_replies, part_results
from sharecons.protocol.admin.models import CommittedOffset, OffsetSpec
from sharecons.protocol.admin.requests import (
    AlterShareGroupOffsets,
    DeleteShareGroupOffsets,
    Reply,
)
from sharecons.protocol.admin.results import Result, Results
from sharecons.protocol.codes import Code

__all__ = [
    "alter_share_group_offsets",
    "check_committed",
    "check_offsets",
    "check_specs",
    "delete_share_group_offsets",
]

P = TypeVar("P")
V = TypeVar("V")

NewOffsets = Mapping[TopicPartition, int | OffsetSpec]
Deleted = Mapping[str, Reply[None]]

ALTER_ACTION = "set the offset of"
DELETE_ACTION = "delete the offsets of"


def check_offsets(offsets: NewOffsets, *, allow_specs: bool = True) -> None:
    """Check that all values are offsets, or can be looked up.

    Raises:
        ConfigurationError: a value is not an offset.
    """
    for (topic, partition), offset in offsets.items():
        if isinstance(offset, OffsetSpec) and allow_specs:
            _check_timestamp(topic, partition, offset)
            continue
        if (
            isinstance(offset, bool)
            or not isinstance(offset, int)
            or not 0 <= offset <= INT64_MAX
        ):
            raise ConfigurationError(
                f"{topic}-{partition}: an offset is an integer from 0 to 2**63 - 1, "
                f"not {offset!r}"
            )


def check_committed(offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
    """Check committed offsets.

    Raises:
        ConfigurationError: an offset, an epoch or metadata cannot be in a request.
    """
    plain = {key: committed.offset for key, committed in offsets.items()}
    check_offsets(plain, allow_specs=False)
    for (topic, partition), committed in offsets.items():
        if committed.leader_epoch is not None:
            name = f"leader_epoch of {topic}-{partition}"
            check_count(name, committed.leader_epoch, 0)
        check_string(f"metadata of {topic}-{partition}", committed.metadata)


def check_specs(specs: Mapping[TopicPartition, OffsetSpec]) -> None:
    """Check that all values can be looked up.

    Raises:
        ConfigurationError: a value is no `OffsetSpec`, or its timestamp is out of
            range.
    """
    for (topic, partition), spec in specs.items():
        if not isinstance(spec, OffsetSpec):
            raise ConfigurationError(
                f"{topic}-{partition}: spec must be an OffsetSpec, not {spec!r}"
            )
        _check_timestamp(topic, partition, spec)


def _check_timestamp(topic: str, partition: int, spec: OffsetSpec) -> None:
    name = f"timestamp of the OffsetSpec of {topic}-{partition}"
    check_count(name, spec.timestamp, -INT64_MAX, INT64_MAX)


async def alter_share_group_offsets(
    executor: ClientExecutor, group_id: str, offsets: NewOffsets
) -> Results[TopicPartition, int]:
    missing = await missing_partitions(executor, offsets, ALTER_ACTION)
    existing = {key: spec for key, spec in offsets.items() if key not in missing}
    resolved = await _resolve(executor, existing)
    altered = await _send_alter(executor, group_id, resolved.found)
    results = {
        key: Result(one.value, altered[key].error) if one.ok else one
        for key, one in resolved.items()
    }
    return _with_missing(offsets, missing, results)


async def delete_share_group_offsets(
    executor: ClientExecutor, group_id: str, topics: tuple[str, ...]
) -> Results[str, None]:
    missing = await missing_topics(executor, topics, DELETE_ACTION)
    existing = tuple(topic for topic in topics if topic not in missing)
    deleted = await _send_delete(executor, group_id, existing)
    return _with_missing(topics, missing, deleted)


async def _send_alter(
    executor: ClientExecutor, group_id: str, offsets: Mapping[TopicPartition, int]
) -> Results[TopicPartition, None]:
    if not offsets:
        return Results({})
    request = AlterShareGroupOffsets(group_id=group_id, offsets=offsets)

    async def send(
        node_id: int, keys: tuple[str, ...]
    ) -> Mapping[str, Reply[Mapping[TopicPartition, Reply[None]]]]:
        reply = await executor.send(node_id, request)
        check_altered(reply)
        if reply.code != Code.NONE:
            return {group_id: reply._replace(value=None)}
        # Other brokers know the topics; the coordinator will in a moment.
        unknown = (Code.UNKNOWN_TOPIC_OR_PARTITION,)
        return {group_id: merge_replies(reply.value, unknown)}

    results = await executor.of_groups([group_id], "set the offsets of", send)
    return part_results(
        results[group_id],
        offsets,
        ALTER_ACTION,
        lambda key: f"{key.topic}-{key.partition} in group {group_id!r}",
    )


async def _send_delete(
    executor: ClientExecutor, group_id: str, topics: tuple[str, ...]
) -> Results[str, None]:
    if not topics:
        return Results({})
    request = DeleteShareGroupOffsets(group_id=group_id, topics=topics)
    is_repeated = False

    async def send(node_id: int, keys: tuple[str, ...]) -> Mapping[str, Reply[Deleted]]:
        nonlocal is_repeated
        try:
            reply: Reply[Deleted] = await executor.send(node_id, request)
        except ConnectionFailedError:
            is_repeated = True
            raise
        if reply.code != Code.NONE or reply.value is None:
            return {group_id: reply._replace(value=None)}
        value = _ignore_unknown_topics(reply.value) if is_repeated else reply.value
        return {group_id: merge_replies(value)}

    results = await executor.of_groups([group_id], "delete offsets of", send)
    return part_results(
        results[group_id],
        topics,
        DELETE_ACTION,
        lambda topic: f"topic {topic!r} in group {group_id!r}",
    )


def _ignore_unknown_topics(deleted: Deleted) -> Deleted:
    """Treat unknown topics as deleted by an earlier try whose response was lost."""
    done = Reply[None](Code.NONE, None, None)
    return {
        topic: done if reply.code == Code.UNKNOWN_TOPIC_OR_PARTITION else reply
        for topic, reply in deleted.items()
    }


def _with_missing(
    keys: Iterable[P], missing: Mapping[P, Error], results: Mapping[P, Result[V]]
) -> Results[P, V]:
    return Results(
        {
            key: Result(error=missing[key]) if key in missing else results[key]
            for key in keys
        }
    )


async def _resolve(
    executor: ClientExecutor, offsets: NewOffsets
) -> Results[TopicPartition, int]:
    specs = {key: spec for key, spec in offsets.items() if isinstance(spec, OffsetSpec)}
    looked_up = await list_offsets(executor, specs, False)
    # No record is that late: use the end of the log.
    beyond = [key for key, found in looked_up.found.items() if found.offset is None]
    ends = await list_offsets(executor, dict.fromkeys(beyond, OffsetSpec.LATEST), False)

    def offset_of(key: TopicPartition, spec: int | OffsetSpec) -> Result[int]:
        if not isinstance(spec, OffsetSpec):
            return Result(spec)
        one = ends.get(key, looked_up[key])
        return Result(None if one.error else one.value.offset, one.error)

    return Results({key: offset_of(key, spec) for key, spec in offsets.items()})
