"""Common parts of ShareFetch and ShareAcknowledge messages."""

from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

from sharecons.protocol.messages import Endpoint, Range, SharePartition, TopicId

__all__ = ["batches", "by_topic", "endpoints"]


def by_topic(
    partitions: Iterable[SharePartition],
) -> dict[TopicId, list[SharePartition]]:
    """Return the partitions of each topic, sorted, as requests list them."""
    topics: dict[TopicId, list[SharePartition]] = {}
    for share_partition in sorted(partitions):
        topics.setdefault(share_partition.topic_id, []).append(share_partition)
    return topics


def batches(schema: ModuleType, ranges: Sequence[Range]) -> tuple[Any, ...]:
    return tuple(
        schema.AcknowledgementBatch(
            first_offset=first, last_offset=last, acknowledge_types=tuple(kinds)
        )
        for first, last, kinds in ranges
    )


def endpoints(nodes: Iterable[Any]) -> Mapping[int, Endpoint]:
    return {node.node_id: Endpoint(node.host, node.port) for node in nodes}
