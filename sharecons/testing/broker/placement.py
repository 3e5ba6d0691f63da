"""Replica placement of new partitions, and checks of manual assignments.

Kafka starts at a random broker. Here partition 0 starts at the first running broker and
each further one at the next, so that a test can predict the leaders.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.errors import RequestError

__all__ = ["Nodes", "check_assignment", "place_replicas"]


@dataclass(frozen=True, slots=True)
class Nodes:
    """The brokers of a cluster, by node id."""

    running: Sequence[int]
    stopped: Sequence[int] = ()

    @property
    def registered(self) -> list[int]:
        return [*self.running, *self.stopped]


def place_replicas(
    nodes: Nodes, partitions: range, replication: int
) -> list[list[int]]:
    """Return the replicas of each partition: running brokers first, in turn.

    Raises:
        RequestError: there are too few brokers, or none that runs.
    """
    if error := _replication_error(nodes, replication):
        raise RequestError(ErrorCode.invalid_replication_factor, error)
    return [
        (_rotate(nodes.running, index) + _rotate(nodes.stopped, index))[:replication]
        for index in partitions
    ]


def check_assignment(
    nodes: Nodes, replicas: Sequence[int], replication: int | None
) -> None:
    """Check a manual replica assignment of one partition.

    Raises:
        RequestError: the assignment is invalid.
    """
    if error := _assignment_error(nodes, replicas, replication):
        raise RequestError(ErrorCode.invalid_replica_assignment, error)


def _rotate(nodes: Sequence[int], index: int) -> list[int]:
    start = index % len(nodes) if nodes else 0
    return [*nodes[start:], *nodes[:start]]


def _replication_error(nodes: Nodes, replication: int) -> str | None:
    if replication <= 0:
        return (
            f"Invalid replication factor {replication}: "
            "the replication factor must be positive."
        )
    if not nodes.running:
        return "All brokers are currently fenced."
    if replication > len(nodes.registered):
        return (
            f"The target replication factor of {replication} cannot be reached "
            f"because only {len(nodes.registered)} broker(s) are registered "
            "or some brokers have all their log directories cordoned."
        )
    return None


def _assignment_error(
    nodes: Nodes, replicas: Sequence[int], replication: int | None
) -> str | None:
    if not replicas:
        return "The manual partition assignment includes an empty replica list."
    for node_id in sorted(replicas):
        if node_id not in nodes.registered:
            return (
                f"The manual partition assignment includes broker {node_id}, "
                "but no such broker is registered."
            )
        if replicas.count(node_id) > 1:
            return (
                f"The manual partition assignment includes the broker {node_id} "
                "more than once."
            )
    if replication not in (None, len(replicas)):
        return (
            "The manual partition assignment includes a partition with "
            f"{len(replicas)} replica(s), but this is not consistent with previous "
            f"partitions, which have {replication} replica(s)."
        )
    return None
