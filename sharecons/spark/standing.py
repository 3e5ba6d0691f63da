"""How far the group is, and what its topics hold: asked of the brokers now and then."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sharecons.errors import BrokerError, Error
from sharecons.log import get_logger
from sharecons.net.cluster import Cluster
from sharecons.protocol.codes import Code, code_name
from sharecons.protocol.values import (
    DescribeShareGroupOffsets,
    DescribeTopics,
    Endpoint,
    FindCoordinator,
    ListOffsets,
    ShareGroupOffsets,
    SharePartition,
    SharePartitionOffset,
    TopicDescription,
)

__all__ = ["Logs", "Standing", "read_logs", "read_standing"]

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where the share partitions of a group start; empty if that cannot be known."""

    partitions: Sequence[SharePartitionOffset] = ()

    @property
    def lag(self) -> int:
        """Offsets that the group has not worked off; -1 if that is unknown."""
        if not self.partitions or any(each.lag < 0 for each in self.partitions):
            return -1
        return sum(each.lag for each in self.partitions)

    @property
    def starts(self) -> Mapping[SharePartition, int]:
        return {each.share_partition: each.start_offset for each in self.partitions}


@dataclass(frozen=True, slots=True, kw_only=True)
class Logs:
    """What topics hold: their ids, and each partition's first and next offset.

    A partition without a leader just now is not among them.
    """

    topic_ids: Mapping[str, bytes] = field(default_factory=dict)
    bounds: Mapping[SharePartition, tuple[int, int]] = field(default_factory=dict)


async def read_standing(cluster: Cluster, group_id: str, timeout: float) -> Standing:
    """Ask the group's coordinator; what it does not say is left out.

    Nothing depends on it but how long ranges are remembered, and what is shown.
    """
    try:
        where = await _coordinator(cluster, group_id, timeout)
        request = DescribeShareGroupOffsets(group_id=group_id)
        answer: ShareGroupOffsets = await _ask(cluster, where, request, timeout)
    except Error as error:
        _log.debug("standing of the group unknown", group=group_id, reason=str(error))
        return Standing()
    return Standing(partitions=answer.partitions)


async def read_logs(cluster: Cluster, topics: Sequence[str], timeout: float) -> Logs:
    """Ask the leaders of all partitions of these topics.

    Raises:
        ConnectionFailedError, BrokerError: it cannot be known.
    """
    connection = await cluster.connect_any()
    try:
        request = DescribeTopics(names=tuple(topics), ids=())
        told = await connection.ask(request, timeout)
    finally:
        await connection.aclose()
    found = [topic for topic in told.topics if topic.error == Code.NONE]
    ids = {topic.name: topic.topic_id for topic in found}
    bounds: dict[SharePartition, tuple[int, int]] = {}
    for node_id, partitions in _by_leader(found).items():
        if node_id in told.brokers:
            where = told.brokers[node_id]
            listed = await _bounds(cluster, where, partitions, timeout)
            for (name, partition), bound in listed.items():
                bounds[SharePartition(ids[name], partition)] = bound
    return Logs(topic_ids=ids, bounds=bounds)


def _by_leader(
    topics: Sequence[TopicDescription],
) -> dict[int, dict[str, tuple[int, ...]]]:
    leaders: defaultdict[int, dict[str, tuple[int, ...]]] = defaultdict(dict)
    for topic in topics:
        for partition, leader in topic.leaders.items():
            led = leaders[leader.leader_id]
            name = topic.name or ""
            led[name] = (*led.get(name, ()), partition)
    return leaders


async def _bounds(
    cluster: Cluster,
    where: Endpoint,
    partitions: Mapping[str, tuple[int, ...]],
    timeout: float,
) -> dict[tuple[str, int], tuple[int, int]]:
    connection = await cluster.connect(where)
    try:
        first = await connection.ask(
            ListOffsets(which="earliest", partitions=partitions), timeout
        )
        after = await connection.ask(
            ListOffsets(which="latest", partitions=partitions), timeout
        )
    finally:
        await connection.aclose()
    firsts = {(f.topic, f.partition): f.offset for f in first.partitions if not f.error}
    return {
        (each.topic, each.partition): (
            firsts[each.topic, each.partition],
            each.offset,
        )
        for each in after.partitions
        if not each.error and (each.topic, each.partition) in firsts
    }


async def _coordinator(cluster: Cluster, group_id: str, timeout: float) -> Endpoint:
    connection = await cluster.connect_any()
    try:
        found = await connection.ask(FindCoordinator(group_id=group_id), timeout)
    finally:
        await connection.aclose()
    if found.error != Code.NONE:
        name = code_name(found.error)
        text = f"group {group_id!r} has no coordinator just now: {name}"
        raise BrokerError(text, code=found.error, name=name)
    endpoint: Endpoint = found.endpoint
    return endpoint


async def _ask(cluster: Cluster, where: Endpoint, request: Any, timeout: float) -> Any:
    connection = await cluster.connect(where)
    try:
        return await connection.ask(request, timeout)
    finally:
        await connection.aclose()
