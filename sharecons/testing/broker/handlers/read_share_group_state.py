"""ReadShareGroupState 0 (KIP-932): the share coordinator's state of a partition.

Leaders send it to the coordinator; clients can do so as well. The state has no locks,
which are in the leader's memory only. A leader epoch older than a previous one is
fenced; a newer one is stored.
"""

import uuid
from collections.abc import Callable
from typing import Final

from sharecons.testing.broker.acls import CLUSTER_NAME
from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.coordinators import SHARE
from sharecons.testing.broker.errors import RequestError
from sharecons.testing.broker.share.partitions import SharePartitionKey

__all__ = ["each_partition", "handle"]

UNINITIALIZED: Final = "Read operation on uninitialized share partition not allowed."
FENCED: Final = "The leader epoch in the request is older than the epoch on the broker."


async def handle(request: Request, context: Context) -> Response:
    return each_partition(request, context, _state)


def each_partition(
    request: Request,
    context: Context,
    read: Callable[[Request, Context, SharePartitionKey], Response],
) -> Response:
    """Return a response with the fields, or the error, of each partition."""

    def result(topic: Request, partition: Request) -> Response:
        index = int(partition.partition)
        # The codec reads the id of zeros as null.
        topic_id = topic.topic_id or uuid.UUID(int=0)
        key = SharePartitionKey(request.group_id, topic_id, index)
        try:
            _check_request(context, key)
            return {"partition": index, **read(partition, context, key)}
        except RequestError as error:
            return {"partition": index, **error.fields}

    return {
        "results": [
            {
                "topic_id": topic.topic_id,
                "partitions": [result(topic, each) for each in topic.partitions],
            }
            for topic in request.topics
        ]
    }


def _state(request: Request, context: Context, key: SharePartitionKey) -> Response:
    leader_epoch = int(request.leader_epoch)
    state = context.cluster.share_partitions.state(key)
    if state is None:
        raise RequestError(ErrorCode.invalid_request, UNINITIALIZED)
    if leader_epoch < state.leader_epoch:
        raise RequestError(ErrorCode.fenced_leader_epoch, FENCED)
    state.note_leader_epoch(leader_epoch)
    return {
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


def _check_request(context: Context, key: SharePartitionKey) -> None:
    """Check that access is allowed, and that this broker can respond.

    Raises:
        RequestError: it is not, or it cannot.
    """
    cluster = context.cluster
    if cluster.authorizer.denies("CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME):
        raise RequestError(ErrorCode.cluster_authorization_failed)
    coordinators, name = cluster.coordinators, key.coordinator_key
    if coordinators.node_for(SHARE, name, cluster.running) != context.node_id:
        raise RequestError(ErrorCode.not_coordinator)
    if coordinators.is_loading(SHARE, name):
        raise RequestError(ErrorCode.coordinator_load_in_progress)
