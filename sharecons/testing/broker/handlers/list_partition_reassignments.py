"""ListPartitionReassignments 0 (KIP-455): none, as they take effect immediately."""

from sharecons.testing.broker.acls import CLUSTER_NAME
from sharecons.testing.broker.codec import Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.errors import CLUSTER_DENIED

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    if context.cluster.authorizer.denies("DESCRIBE", "CLUSTER", CLUSTER_NAME):
        return CLUSTER_DENIED.fields
    return {}
