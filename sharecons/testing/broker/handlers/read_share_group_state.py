"""ReadShareGroupState 0 (KIP-932): what the share coordinator keeps of a partition.

Leaders ask their coordinator so; a plain client may as well. Locks are not in it, since
they are in the leader's memory only. A leader epoch older than one already seen is
fenced, a newer one is remembered.
"""

from sharecons.testing.broker.cluster import Cluster
from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.share.partitions import Key

__all__ = ["handle"]

SHARE = 2  # the key type of FindCoordinator


async def handle(request: Request, context: Context) -> Response:
    return {
        "results": [
            {
                "topic_id": topic.topic_id,
                "partitions": [
                    _partition(
                        context, Key(request.group_id, topic.topic_id, index), at
                    )
                    for index, at in (
                        (int(each.partition), int(each.leader_epoch))
                        for each in topic.partitions
                    )
                ],
            }
            for topic in request.topics
        ]
    }


def _partition(context: Context, key: Key, leader_epoch: int) -> Response:
    cluster = context.cluster
    code = _refusal(context, key)
    state = cluster.share_partitions.state(key)
    if code is None and state is None:
        code = ErrorCode.invalid_request
    if code is None and state is not None and leader_epoch < state.leader_epoch:
        code = ErrorCode.fenced_leader_epoch
    if code is not None or state is None:
        return {"partition": key.partition, "error_code": code}
    state.read(leader_epoch)
    return {
        "partition": key.partition,
        "state_epoch": state.state_epoch,
        "start_offset": state.start_offset,
        "state_batches": [
            {
                "first_offset": batch.first_offset,
                "last_offset": batch.last_offset,
                "delivery_state": batch.state,
                "delivery_count": batch.delivery_count,
            }
            for batch in state.batches
        ],
    }


def _refusal(context: Context, key: Key) -> ErrorCode | None:
    cluster = context.cluster
    if _coordinator(cluster, key) != context.node_id:
        return ErrorCode.not_coordinator
    topic = cluster.topics.with_id(key.topic_id)
    if topic is None or topic.partition(key.partition) is None:
        return ErrorCode.unknown_topic_or_partition
    return None


def _coordinator(cluster: Cluster, key: Key) -> int:
    return cluster.coordinators.of(SHARE, key.spelt, cluster.running)
