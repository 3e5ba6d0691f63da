"""A partition with its leader and replicas, as two APIs describe it."""

from collections.abc import Sequence

from sharecons.testing.broker.codec import ErrorCode, Response
from sharecons.testing.broker.topics import NO_LEADER, Partition

__all__ = ["describe_partition"]


def describe_partition(partition: Partition, running: Sequence[int]) -> Response:
    missing = partition.leader == NO_LEADER
    return {
        "error_code": ErrorCode.leader_not_available if missing else ErrorCode.none,
        "partition_index": partition.index,
        "leader_id": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "replica_nodes": partition.replicas,
        "isr_nodes": partition.in_sync(running),
        "offline_replicas": [
            node for node in partition.replicas if node not in running
        ],
    }
