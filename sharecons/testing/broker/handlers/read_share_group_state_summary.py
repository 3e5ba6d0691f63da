"""ReadShareGroupStateSummary 0 and 1 (KIP-932; version 1 has counts: KIP-1226).

Unlike ReadShareGroupState it ignores the request's leader epoch, and returns -1 for a
share partition without state.
"""

from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.errors import NO_SUCH_PARTITION, RequestError
from sharecons.testing.broker.handlers.read_share_group_state import each_partition
from sharecons.testing.broker.share.coordinator_state import CoordinatorState
from sharecons.testing.broker.share.partitions import SharePartitionKey

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    return each_partition(request, context, _summary)


def _summary(_: Request, context: Context, key: SharePartitionKey) -> Response:
    cluster = context.cluster
    topic = cluster.topics.by_id(key.topic_id)
    if topic is None or topic.partition(key.partition) is None:
        code = ErrorCode.unknown_topic_or_partition
        raise RequestError(code, NO_SUCH_PARTITION.message)
    state = cluster.share_partitions.state(key) or CoordinatorState()
    return {
        "state_epoch": state.state_epoch,
        "leader_epoch": state.leader_epoch,
        "start_offset": state.start_offset,
        "delivery_complete_count": state.delivery_complete,
    }
