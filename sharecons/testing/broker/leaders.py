"""Leader checks, and the leader that a response names (KIP-320, KIP-951)."""

from collections.abc import Iterable
from typing import Final

from sharecons.testing.broker.codec import ErrorCode, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.topics import Partition

__all__ = ["leader_error", "leader_fields", "node_endpoints"]

NO_EPOCH: Final = -1


def leader_error(
    partition: Partition, leader_epoch: int, node_id: int, *, any_replica: bool = False
) -> ErrorCode:
    """Return the error of a broker that a client takes for the leader, or `none`.

    `leader_epoch` is the client's, or -1 for unknown. A broker without a replica does
    not know the epoch. With `any_replica` it need not be the leader (KIP-392).
    """
    if node_id not in partition.replicas:
        return ErrorCode.not_leader_or_follower
    if NO_EPOCH < leader_epoch < partition.leader_epoch:
        return ErrorCode.fenced_leader_epoch
    if leader_epoch > partition.leader_epoch:
        return ErrorCode.unknown_leader_epoch
    if partition.leader != node_id and not any_replica:
        return ErrorCode.not_leader_or_follower
    return ErrorCode.none


def leader_fields(partition: Partition) -> Response:
    return {"leader_id": partition.leader, "leader_epoch": partition.leader_epoch}


def node_endpoints(context: Context, leaders: Iterable[int]) -> list[Response]:
    """Return the addresses of those leaders that run."""
    brokers = context.cluster.brokers
    running = [brokers[node_id] for node_id in sorted(set(leaders) - {-1})]
    return [context.endpoint(broker) for broker in running if broker.running]
