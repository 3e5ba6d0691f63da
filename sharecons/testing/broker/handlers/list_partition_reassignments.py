"""ListPartitionReassignments 0 (KIP-455): none, as they take effect immediately."""

from sharecons.testing.broker.acls import CLUSTER_NAME
from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    if context.cluster.authorizer.denies("DESCRIBE", "CLUSTER", CLUSTER_NAME):
        return {
            "error_code": ErrorCode.cluster_authorization_failed,
            "error_message": "Cluster authorization failed.",
        }
    return {}
