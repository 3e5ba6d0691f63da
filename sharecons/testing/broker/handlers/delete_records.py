"""DeleteRecords 0 to 2: delete a partition's records before an offset.

Offset -1 is the end of the log. A topic without cleanup.policy=delete is rejected.
"""

from typing import Final

from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.topics import Topic

__all__ = ["handle"]

TO_END: Final = -1
NO_OFFSET: Final = -1


async def handle(request: Request, context: Context) -> Response:
    return {
        "topics": [
            {
                "name": topic.name,
                "partitions": [
                    _delete(topic.name, each, context) for each in topic.partitions
                ],
            }
            for topic in request.topics
        ]
    }


def _delete(name: str, request: Request, context: Context) -> Response:
    index, offset = request.partition_index, request.offset
    found = context.cluster.topics.by_name(name)
    code = _partition_error(name, found, index, context)
    if found is None or code:
        return _result(index, NO_OFFSET, code)
    log = found.partitions[index].log
    if not TO_END <= offset <= log.end_offset:
        return _result(index, NO_OFFSET, ErrorCode.offset_out_of_range)
    log.truncate_before(log.end_offset if offset == TO_END else offset)
    return _result(index, log.start_offset, ErrorCode.none)


def _partition_error(
    name: str, found: Topic | None, index: int, context: Context
) -> ErrorCode:
    if context.cluster.authorizer.denies("DELETE", "TOPIC", name):
        return ErrorCode.topic_authorization_failed
    partition = found.partition(index) if found else None
    if found is None or partition is None:
        return ErrorCode.unknown_topic_or_partition
    if found.internal:
        return ErrorCode.invalid_topic_exception
    if partition.leader != context.node_id:
        return ErrorCode.not_leader_or_follower
    policy = context.cluster.configs.topic_value(found.config, "cleanup.policy")
    if "delete" not in policy.split(","):
        return ErrorCode.policy_violation
    return ErrorCode.none


def _result(index: int, low_watermark: int, code: ErrorCode) -> Response:
    return {
        "partition_index": index,
        "low_watermark": low_watermark,
        "error_code": code,
    }
