"""ShareAcknowledge 1 and 2 (KIP-932; version 2 renews locks, KIP-1222).

The request advances the epoch of its share session; epoch -1 closes the session after
the acknowledgements. All of one partition succeed or fail together. The response has
each partition of the request. A partition with another leader is unknown here, and an
unknown topic id is UNKNOWN_SERVER_ERROR (both as in Kafka 4.3.0).
"""

from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.share.sessions import (
    CLOSE,
    OPEN,
    Session,
    SessionError,
    TopicPartition,
)
from sharecons.testing.broker.share_requests import (
    PartitionError,
    PartitionResult,
    acknowledgements,
    all_topics_exist,
    apply_acknowledgements,
    check_acknowledgements,
    error_response,
    has_server_error,
    partition_fields,
    request_error,
    response_of_partitions,
)

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    code = request_error(request, context)
    if code is not None:
        return error_response(code)
    try:
        session = _session(request, context)
    except SessionError as error:
        return error_response(error.code)
    entries = acknowledgements(request)
    if not all_topics_exist(context.cluster, entries):
        return error_response(ErrorCode.unknown_server_error)
    results = check_acknowledgements(request, context, entries)
    apply_acknowledgements(context, request.group_id, results)
    if has_server_error(results):
        return error_response(ErrorCode.unknown_server_error)
    if request.share_session_epoch == CLOSE:
        context.cluster.share_sessions.close(session)
    return _response(request, context, results)


def _session(request: Request, context: Context) -> Session:
    """Return the session of the request.

    Raises:
        SessionError: there is none, or its epoch is another one.
    """
    sessions = context.cluster.share_sessions
    who = (context.node_id, request.group_id, request.member_id)
    if request.share_session_epoch == OPEN:
        raise SessionError(ErrorCode.invalid_share_session_epoch)
    if request.share_session_epoch == CLOSE:
        return sessions.find(*who)
    return sessions.next_request(*who, request.share_session_epoch)


def _response(
    request: Request, context: Context, results: dict[TopicPartition, PartitionResult]
) -> Response:
    partitions: dict[TopicPartition, Response] = {}
    for topic_partition, result in results.items():
        code, message = ErrorCode.none, None
        if isinstance(result, PartitionError):
            code, message = result
        fields = partition_fields(context, topic_partition, code)
        partitions[topic_partition] = {**fields, "error_message": message}
    return response_of_partitions(context, request.group_id, partitions)
