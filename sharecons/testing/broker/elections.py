"""Leader elections and partition reassignments by an operator.

A reassignment takes effect immediately, since there is nothing to copy; so none is ever
in progress.
"""

from collections.abc import Sequence
from typing import Final

from sharecons.testing.broker.cluster import Cluster
from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.errors import RequestError
from sharecons.testing.broker.placement import check_assignment
from sharecons.testing.broker.topics import NO_LEADER, Partition

__all__ = ["PREFERRED", "UNCLEAN", "elect", "reassign"]

PREFERRED: Final = 0
UNCLEAN: Final = 1


def elect(cluster: Cluster, topic: str, index: int, election_type: int) -> None:
    """Make the first replica the leader (or any replica, if there is no leader).

    Raises:
        RequestError: the election is not possible or not needed.
    """
    partition = _find_partition(
        cluster,
        topic,
        index,
        unknown_topic=f"No such topic as {topic}",
        unknown_partition=f"No such partition as {topic}-{index}",
    )
    first = partition.replicas[0]
    not_needed = (
        partition.leader == first
        if election_type == PREFERRED
        else _has_leader(partition)
    )
    if not_needed:
        raise RequestError(ErrorCode.election_not_needed, NOT_NEEDED)
    if election_type == UNCLEAN:
        # A running replica is always the leader: all replicas have the whole log.
        raise RequestError(ErrorCode.eligible_leaders_not_available, NO_ELIGIBLE_LEADER)
    if first not in cluster.running:
        raise RequestError(
            ErrorCode.preferred_leader_not_available, NO_PREFERRED_LEADER
        )
    cluster.move_leader(topic, index, first)


def reassign(
    cluster: Cluster,
    topic: str,
    index: int,
    replicas: Sequence[int] | None,
    *,
    may_resize: bool = True,
) -> None:
    """Move a partition to other brokers; None cancels a reassignment in progress.

    Raises:
        RequestError: the partition is unknown, or the assignment is invalid.
    """
    partition = _find_partition(
        cluster,
        topic,
        index,
        unknown_topic=f"Unable to find a topic named {topic}.",
        unknown_partition=f"Unable to find partition {topic}:{index}.",
    )
    if replicas is None:
        raise RequestError(ErrorCode.no_reassignment_in_progress)
    check_assignment(cluster.nodes, replicas, None)
    if not may_resize and len(replicas) != len(partition.replicas):
        raise RequestError(
            ErrorCode.invalid_replication_factor,
            f"The replication factor is changed from {len(partition.replicas)} "
            f"to {len(replicas)}",
        )
    cluster.reassign(topic, partition, replicas)


NOT_NEEDED: Final = "Leader election not needed for topic partition."
NO_PREFERRED_LEADER: Final = "The preferred leader was not available."
NO_ELIGIBLE_LEADER: Final = "Eligible topic partition leaders are not available."


def _has_leader(partition: Partition) -> bool:
    return partition.leader != NO_LEADER


def _find_partition(
    cluster: Cluster,
    topic: str,
    index: int,
    *,
    unknown_topic: str,
    unknown_partition: str,
) -> Partition:
    found = cluster.topics.by_name(topic)
    if found is None:
        raise RequestError(ErrorCode.unknown_topic_or_partition, unknown_topic)
    partition = found.partition(index)
    if partition is None:
        raise RequestError(ErrorCode.unknown_topic_or_partition, unknown_partition)
    return partition
