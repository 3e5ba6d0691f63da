"""CreateAcls 1 to 3: add rules to acls.py.

A filter instead of a rule (ANY) fails the whole request, as in Kafka. For a rule with a
type of number 0 Kafka closes the connection; here it is rejected like other unknown
types.
"""

from sharecons.testing.broker.acls import (
    CLUSTER_NAME,
    Acl,
    Operation,
    Permission,
    Resource,
    acl_from_creation,
)
from sharecons.testing.broker.cluster import Cluster
from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.errors import CLUSTER_DENIED

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    cluster = context.cluster
    acls = [acl_from_creation(each) for each in request.creations]
    if cluster.authorizer.denies("ALTER", "CLUSTER", CLUSTER_NAME):
        return {"results": [CLUSTER_DENIED.fields for _ in acls]}
    if any(acl.is_filter for acl in acls):
        failed = {"error_code": ErrorCode.unknown_server_error}
        return {"results": [failed for _ in acls]}
    return {"results": [_create(cluster, acl) for acl in acls]}


def _create(cluster: Cluster, acl: Acl) -> Response:
    if fault := _rule_error(acl):
        return {"error_code": ErrorCode.invalid_request, "error_message": fault}
    cluster.authorizer.add(acl)
    return {"error_message": ""}


def _rule_error(acl: Acl) -> str | None:
    """Return why a rule is invalid, or None."""
    if acl.resource is Resource.CLUSTER and acl.name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not acl.name:
        return "Invalid empty resource name"
    if acl.resource is Resource.UNKNOWN:
        return "Invalid resourceType UNKNOWN"
    if acl.operation is Operation.UNKNOWN:
        return "Invalid operation UNKNOWN"
    if acl.permission is Permission.UNKNOWN:
        return "Invalid permissionType UNKNOWN"
    if ":" not in acl.principal:
        return (
            f"Could not parse principal from `{acl.principal}` (no colon is present "
            "separating the principal type from the principal name)"
        )
    return None
