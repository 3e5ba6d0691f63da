"""ReadShareGroupState 0 (KIP-932): the share coordinator's state of a partition.

Leaders send it to the coordinator; clients can do so as well. The state has no locks,
which are in the leader's memory only. A leader epoch older than a previous one is
fenced; a newer one is stored.
"""

from typing import Final

from sharecons.testing.broker.acls import CLUSTER_NAME
from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.share.partitions import SharePartitionKey

__all__ = ["check_request", "handle"]

SHARE: Final = 2
"""The key type of FindCoordinator."""

UNINITIALIZED: Final = "Read operation on uninitialized share partition not allowed."
FENCED: Final = "The leader epoch in the request is older than the epoch on the broker."


async def handle(request: Request, context: Context) -> Response:
    return {
        "results": [
            {
                "topic_id": topic.topic_id,
                "partitions": [
                    _partition(
                        context,
                        SharePartitionKey(request.group_id, topic.topic_id, index),
                        at,
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


def _partition(context: Context, key: SharePartitionKey, leader_epoch: int) -> Response:
    error = check_request(context, key)
    if error is not None:
        return error
    state = context.cluster.share_partitions.state(key)
    if state is None:
        code, message = ErrorCode.invalid_request, UNINITIALIZED
        return {
            "partition": key.partition,
            "error_code": code,
            "error_message": message,
        }
    if leader_epoch < state.leader_epoch:
        code, message = ErrorCode.fenced_leader_epoch, FENCED
        return {
            "partition": key.partition,
            "error_code": code,
            "error_message": message,
        }
    state.note_leader_epoch(leader_epoch)
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


def check_request(context: Context, key: SharePartitionKey) -> Response | None:
    """Return the error if access is denied or this broker cannot respond, else None."""
    cluster = context.cluster
    if cluster.authorizer.denies("CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME):
        code = ErrorCode.cluster_authorization_failed
        return {"partition": key.partition, "error_code": code}
    coordinators, name = cluster.coordinators, key.coordinator_key
    if coordinators.node_for(SHARE, name, cluster.running) != context.node_id:
        return {"partition": key.partition, "error_code": ErrorCode.not_coordinator}
    if coordinators.is_loading(SHARE, name):
        code = ErrorCode.coordinator_load_in_progress
        return {"partition": key.partition, "error_code": code}
    return None
