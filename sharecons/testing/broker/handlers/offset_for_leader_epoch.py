"""OffsetForLeaderEpoch 2 to 4 (KIP-320): the end offset of a leader epoch.

After a change of leaders, consumers check with it whether the log was truncated. Here
it never is.
"""

from sharecons.testing.broker.codec import ErrorCode, Request, Response, field_or
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.leaders import leader_error

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    return {
        "topics": [
            {
                "topic": topic.topic,
                "partitions": [
                    {
                        "partition": wanted.partition,
                        **_end_of_epoch(topic.topic, wanted, context),
                    }
                    for wanted in topic.partitions
                ],
            }
            for topic in request.topics
        ]
    }


def _end_of_epoch(name: str, request: Request, context: Context) -> Response:
    if context.cluster.authorizer.denies("DESCRIBE", "TOPIC", name):
        return {"error_code": ErrorCode.topic_authorization_failed}
    topic = context.cluster.topics.by_name(name)
    partition = topic.partition(request.partition) if topic else None
    if partition is None:
        return {"error_code": ErrorCode.unknown_topic_or_partition}
    known = field_or(request, "current_leader_epoch", -1)
    if code := leader_error(partition, known, context.node_id):
        return {"error_code": code}
    epoch, end = partition.log.end_of_epoch(
        request.leader_epoch, partition.leader_epoch
    )
    return {"leader_epoch": epoch, "end_offset": end}
