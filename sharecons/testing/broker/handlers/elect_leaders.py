"""ElectLeaders 0 to 2 (KIP-183, KIP-460): elect the preferred leaders.

If all partitions are requested (null), the response has only partitions that an
election changed or failed for.
"""

from collections.abc import Iterator

from sharecons.testing.broker.acls import CLUSTER_NAME
from sharecons.testing.broker.cluster import Cluster
from sharecons.testing.broker.codec import ErrorCode, Request, Response, field_or
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.elections import PREFERRED, UNCLEAN, elect
from sharecons.testing.broker.errors import CLUSTER_DENIED, RequestError

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    cluster = context.cluster
    kind = field_or(request, "election_type", PREFERRED)
    if cluster.authorizer.denies("ALTER", "CLUSTER", CLUSTER_NAME):
        return _error_response(request, CLUSTER_DENIED)
    if kind not in (PREFERRED, UNCLEAN):
        message = f"Unknown election type {kind}"
        error = RequestError(ErrorCode.invalid_request, message)
        return _error_response(request, error)
    if request.topic_partitions is None:
        results = list(_all(cluster, kind))
    else:
        results = [
            _topic(cluster, kind, each.topic, each.partitions)
            for each in request.topic_partitions
        ]
    return {"replica_election_results": results}


def _error_response(request: Request, error: RequestError) -> Response:
    """Return an error for the request and, for old versions, for each partition."""
    return {
        "error_code": error.code,
        "replica_election_results": [
            {
                "topic": each.topic,
                "partition_result": [
                    {"partition_id": index, **error.fields} for index in each.partitions
                ],
            }
            for each in request.topic_partitions or ()
        ],
    }


def _all(cluster: Cluster, kind: int) -> Iterator[Response]:
    for topic in cluster.topics:
        indexes = range(len(topic.partitions))
        result = _topic(cluster, kind, topic.name, indexes)
        changed = [
            each
            for each in result["partition_result"]
            if each["error_code"] is not ErrorCode.election_not_needed
        ]
        yield {**result, "partition_result": changed}


def _topic(
    cluster: Cluster, kind: int, topic: str, partitions: tuple[int, ...] | range
) -> Response:
    results = [_partition(cluster, kind, topic, index) for index in partitions]
    return {"topic": topic, "partition_result": results}


def _partition(cluster: Cluster, kind: int, topic: str, index: int) -> Response:
    error_fields: Response = {"error_code": ErrorCode.none}
    try:
        elect(cluster, topic, index, kind)
    except RequestError as error:
        error_fields = error.fields
    return {"partition_id": index, **error_fields}
