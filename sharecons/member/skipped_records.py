"""Stores where a new group starts that starts at the end, and what it skips.

Kafka's default is that a group starts at the end of a partition that it has not read:
`share.auto.offset.reset` is latest. The records that are there already are never
delivered, and nothing shows that. So the consumer logs their number before it joins.

Brokers store a start with the first acknowledgement. Before that, a leader that moves,
or the last member that stops, moves the start to the new end, past records that were
written meanwhile. So the first member stores it, as `sharecons groups reset-offsets`
does. Brokers reject that once the group has members.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import anyio

from sharecons._record import TopicPartition
from sharecons.errors import Error
from sharecons.log import get_logger
from sharecons.member.group_setup import OFFSET_RESET, configure_command
from sharecons.net.admin_executor import AdminExecutor
from sharecons.net.broker_pool import BrokerPool, Deadline
from sharecons.net.cluster import Cluster
from sharecons.net.connection import Connection
from sharecons.net.log_offsets import list_offsets
from sharecons.protocol.admin.broker_errors import broker_error, check_altered
from sharecons.protocol.admin.fanout import RETRIABLE
from sharecons.protocol.admin.models import GroupOffset, OffsetSpec
from sharecons.protocol.admin.requests import (
    AlterShareGroupOffsets,
    ListShareGroupOffsets,
    Reply,
)
from sharecons.protocol.codes import Code

__all__ = ["new_partitions", "new_topics", "start_at_end"]

GroupOffsets = Mapping[TopicPartition, Reply[GroupOffset]]

ACTION: Final = "list the offsets of"
STORE_TIMEOUT: Final = 5.0
"""Seconds. On a new cluster brokers first create a topic: 2 s on Kafka 4.4.0. A topic
that cannot be created must not delay a start for long."""

STORE_ACTION: Final = "store the start offsets of"

_log = get_logger(__name__)


async def start_at_end(
    connection: Connection,
    cluster: Cluster,
    group_id: str,
    topics: Sequence[str],
    timeout: float,
    *,
    is_chosen: bool,
) -> None:
    """Store the starts of a group that starts at the end, and log what it skips.

    A group that has read all topics costs one request to its coordinator. Errors are
    ignored, and this returns after `timeout` seconds: the group starts without it.

    Args:
        connection: to any broker.
        is_chosen: latest was set for the group, so that this is no warning.
    """
    try:
        with anyio.move_on_after(timeout):
            offsets = await _read_offsets(connection, cluster, group_id, timeout)
            names = new_topics(topics, offsets)
            if names:
                counts = await _start(cluster, group_id, names, offsets, timeout)
            else:
                counts = {}
            if any(counts.values()):
                _log_counts(group_id, counts, is_chosen)
    except Error as error:
        _log.debug("start at the end not stored", group=group_id, reason=str(error))


def new_topics(topics: Sequence[str], offsets: GroupOffsets) -> list[str]:
    """Return the topics of which the group has not read each partition.

    A partition that was added to a topic since the group has read it is not noticed:
    that would take a request for metadata at each start.
    """
    started = _started(offsets)
    read = {key.topic for key in started}
    unread = {key.topic for key in offsets if key not in started}
    return [name for name in topics if name in unread or name not in read]


def new_partitions(
    partitions: Sequence[TopicPartition], offsets: GroupOffsets
) -> list[TopicPartition]:
    """Return the partitions that the group has not read."""
    started = _started(offsets)
    return [each for each in partitions if each not in started]


def _started(offsets: GroupOffsets) -> set[TopicPartition]:
    return {
        key
        for key, reply in offsets.items()
        if reply.value is not None and reply.value.start_offset is not None
    }


async def _read_offsets(
    connection: Connection, cluster: Cluster, group_id: str, timeout: float
) -> GroupOffsets:
    """Read the start offsets of the group, from this broker or from its coordinator."""
    request = ListShareGroupOffsets(groups={group_id: None})
    reply = _only(await connection.send(request, timeout), group_id)
    if reply.code in RETRIABLE:
        reply = await _read_at_coordinator(cluster, group_id, timeout)
    # A group that does not exist has no offsets: in some versions it is an error.
    if reply.code not in (Code.NONE, Code.GROUP_ID_NOT_FOUND):
        raise broker_error(ACTION, f"group {group_id!r}", reply.code, reply.message)
    return reply.value or {}


async def _read_at_coordinator(
    cluster: Cluster, group_id: str, timeout: float
) -> Reply[GroupOffsets]:
    request = ListShareGroupOffsets(groups={group_id: None})
    async with BrokerPool(cluster) as brokers:
        executor = AdminExecutor(brokers, Deadline(timeout))

        async def send(
            node_id: int, keys: tuple[str, ...]
        ) -> Mapping[str, Reply[Reply[GroupOffsets]]]:
            reply = _only(await executor.send(node_id, request), group_id)
            if reply.code in RETRIABLE:
                return {group_id: Reply(reply.code, reply.message, None)}
            return {group_id: Reply(Code.NONE, None, reply)}

        return (await executor.of_groups([group_id], ACTION, send))[group_id].value


def _only(
    response: Mapping[str, Reply[GroupOffsets]], group_id: str
) -> Reply[GroupOffsets]:
    missing: Reply[GroupOffsets] = Reply(Code.UNKNOWN_SERVER_ERROR, None, None)
    return response.get(group_id, missing)


async def _start(
    cluster: Cluster,
    group_id: str,
    names: Sequence[str],
    offsets: GroupOffsets,
    timeout: float,
) -> dict[str, int]:
    """Store the starts; return how many records new partitions have, by topic."""
    async with BrokerPool(cluster) as brokers:
        executor = AdminExecutor(brokers, Deadline(timeout))
        described = await brokers.request_topics(names, executor.deadline)
        existing = [
            TopicPartition(name, partition)
            for name, reply in described.topics.items()
            if reply.value is not None
            for partition in reply.value.partitions
        ]
        new = new_partitions(existing, offsets)
        counts: dict[str, int] = {}
        first = await list_offsets(
            executor, dict.fromkeys(new, OffsetSpec.EARLIEST), False
        )
        end = await list_offsets(executor, dict.fromkeys(new, OffsetSpec.LATEST), False)
        ends = end.found
        starts = {key: found.offset or 0 for key, found in ends.items()}
        if starts:
            with anyio.move_on_after(STORE_TIMEOUT):
                await _store(executor, group_id, starts)
    for key, log_offset in first.found.items():
        if key in ends:
            count = max(0, (ends[key].offset or 0) - (log_offset.offset or 0))
            counts[key.topic] = counts.get(key.topic, 0) + count
    return counts


async def _store(
    executor: AdminExecutor, group_id: str, starts: Mapping[TopicPartition, int]
) -> None:
    """Store start offsets, unless the group has members."""
    request = AlterShareGroupOffsets(group_id=group_id, offsets=starts)

    async def send(
        node_id: int, keys: tuple[str, ...]
    ) -> Mapping[str, Reply[Mapping[TopicPartition, Reply[None]]]]:
        reply = await executor.send(node_id, request)
        check_altered(reply)
        return {group_id: reply}

    results = await executor.of_groups([group_id], STORE_ACTION, send)
    if error := results[group_id].error:
        _log.debug("start at the end not stored", group=group_id, reason=str(error))


def _log_counts(group_id: str, counts: Mapping[str, int], is_chosen: bool) -> None:
    (_log.info if is_chosen else _log.warning)(
        "the group starts at the end of partitions that it has not read: records that "
        f"are there already are not delivered. {OFFSET_RESET} is latest; run the "
        'command before the first start, or pass auto_offset_reset="earliest" '
        "(commands have --auto-offset-reset earliest)",
        group=group_id,
        records=sum(counts.values()),
        topics=", ".join(f"{name}: {n}" for name, n in counts.items() if n),
        command=configure_command(group_id, "earliest"),
    )
