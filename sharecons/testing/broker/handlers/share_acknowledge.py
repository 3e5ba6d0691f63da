"""ShareAcknowledge 1 and 2 (KIP-932; version 2 renews locks, KIP-1222).

The request advances the epoch of its share session; epoch -1 closes the session after
the acknowledgements. Those of a partition succeed or fail together. The response has
each partition of the request. A partition with another leader is unknown here, and an
unknown topic id is UNKNOWN_SERVER_ERROR (both as in Kafka 4.3.0).
"""

from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.share.requests import (
    Decision,
    Refused,
    acknowledged,
    all_known,
    current_leader,
    decisions,
    endpoints,
    has_failed,
    refusal,
    refused,
    settle,
)
from sharecons.testing.broker.share.sessions import (
    CLOSE,
    OPEN,
    Session,
    SessionError,
    TopicPartition,
)

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    code = refusal(request, context)
    if code is not None:
        return refused(code)
    try:
        session = _session(request, context)
    except SessionError as error:
        return refused(error.code)
    entries = acknowledged(request)
    if not all_known(context.cluster, entries):
        return refused(ErrorCode.unknown_server_error)
    decided = decisions(request, context, entries)
    settle(context, request.group_id, decided)
    if has_failed(decided):
        return refused(ErrorCode.unknown_server_error)
    if request.share_session_epoch == CLOSE:
        context.cluster.share_sessions.close(session)
    return _answer(request, context, decided)


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
    return sessions.enter(*who, request.share_session_epoch)


def _answer(
    request: Request, context: Context, decided: dict[TopicPartition, Decision]
) -> Response:
    cluster = context.cluster
    topics: dict[object, list[Response]] = {}
    for where, decision in decided.items():
        code = decision.code if isinstance(decision, Refused) else ErrorCode.none
        message = decision.message if isinstance(decision, Refused) else None
        topics.setdefault(where.topic_id, []).append(
            {
                "partition_index": where.partition,
                "error_code": code,
                "error_message": message,
                "current_leader": current_leader(cluster, where, code),
            }
        )
    leaders = [each["current_leader"] for parts in topics.values() for each in parts]
    settings = cluster.share_partitions.settings(request.group_id)
    return {
        "acquisition_lock_timeout": settings.lock_duration,
        "responses": [
            {"topic_id": topic_id, "partitions": partitions}
            for topic_id, partitions in topics.items()
        ],
        "node_endpoints": endpoints(context, leaders),
    }
