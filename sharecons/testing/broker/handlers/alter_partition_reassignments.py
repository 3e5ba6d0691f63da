"""AlterPartitionReassignments 0 and 1 (KIP-455, KIP-860): move partitions.

A reassignment is complete with its response: there is one log, and nothing to copy.
"""

from sharecons.testing.broker.acls import CLUSTER_NAME
from sharecons.testing.broker.cluster import Cluster
from sharecons.testing.broker.codec import Request, Response, field_or
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.elections import reassign
from sharecons.testing.broker.errors import CLUSTER_DENIED, RequestError

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    cluster = context.cluster
    may_resize = field_or(request, "allow_replication_factor_change", True)
    is_denied = cluster.authorizer.denies("ALTER", "CLUSTER", CLUSTER_NAME)
    error_fields = CLUSTER_DENIED.fields if is_denied else {}
    return {
        **error_fields,
        "allow_replication_factor_change": may_resize,
        "responses": [
            {
                "name": topic.name,
                "partitions": [
                    {"partition_index": each.partition_index, **error_fields}
                    if is_denied
                    else _reassign(cluster, topic.name, each, may_resize)
                    for each in topic.partitions
                ],
            }
            for topic in request.topics
        ],
    }


def _reassign(
    cluster: Cluster, topic: str, request: Request, may_resize: bool
) -> Response:
    index = request.partition_index
    try:
        reassign(cluster, topic, index, request.replicas, may_resize=may_resize)
    except RequestError as error:
        return {"partition_index": index, **error.fields}
    return {"partition_index": index}
