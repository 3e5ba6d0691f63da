"""ReadShareGroupStateSummary 0 and 1 (KIP-932; version 1 has counts: KIP-1226).

Unlike ReadShareGroupState it ignores the request's leader epoch, and returns -1 for a
share partition without state.
"""

from typing import Final

from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.handlers.read_share_group_state import check_request
from sharecons.testing.broker.share.coordinator_state import CoordinatorState
from sharecons.testing.broker.share.partitions import SharePartitionKey

__all__ = ["handle"]

NOT_HOSTED: Final = "This server does not host this topic-partition."


async def handle(request: Request, context: Context) -> Response:
    return {
        "results": [
            {
                "topic_id": topic.topic_id,
                "partitions": [
                    _partition(
                        context,
                        SharePartitionKey(
                            request.group_id, topic.topic_id, int(each.partition)
                        ),
                    )
                    for each in topic.partitions
                ],
            }
            for topic in request.topics
        ]
    }


def _partition(context: Context, key: SharePartitionKey) -> Response:
    error = check_request(context, key)
    if error is not None:
        return error
    cluster = context.cluster
    topic = cluster.topics.by_id(key.topic_id)
    if topic is None or topic.partition(key.partition) is None:
        return {
            "partition": key.partition,
            "error_code": ErrorCode.unknown_topic_or_partition,
            "error_message": NOT_HOSTED,
        }
    state = cluster.share_partitions.state(key) or CoordinatorState()
    return {
        "partition": key.partition,
        "state_epoch": state.state_epoch,
        "leader_epoch": state.leader_epoch,
        "start_offset": state.start_offset,
        "delivery_complete_count": state.delivery_complete,
    }
