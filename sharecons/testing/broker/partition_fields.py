"""A partition with its leader and replicas, as two APIs describe it."""

from collections.abc import Sequence

from sharecons.testing.broker.codec import ErrorCode, Response
from sharecons.testing.broker.topics import NO_LEADER, Partition

__all__ = ["describe_partition"]


def describe_partition(place: Partition, running: Sequence[int]) -> Response:
    missing = place.leader == NO_LEADER
    return {
        "error_code": ErrorCode.leader_not_available if missing else ErrorCode.none,
        "partition_index": place.index,
        "leader_id": place.leader,
        "leader_epoch": place.leader_epoch,
        "replica_nodes": place.replicas,
        "isr_nodes": place.in_sync(running),
        "offline_replicas": [node for node in place.replicas if node not in running],
    }
