"""DeleteAcls 1 to 3: delete the rules that match each filter."""

from sharecons.testing.broker.acls import (
    CLUSTER_NAME,
    Acl,
    AclFilter,
    Authorizer,
    Operation,
    Pattern,
    Permission,
    Resource,
    filter_from_request,
)
from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    access = context.cluster.authorizer
    # All filters are matched first: a rule may be in the results of two of them.
    results = [_result(access, each) for each in request.filters]
    for _, acls in results:
        access.remove(acls)
    return {"filter_results": [answer for answer, _ in results]}


def _result(access: Authorizer, wanted: Request) -> tuple[Response, list[Acl]]:
    if access.denies("ALTER", "CLUSTER", CLUSTER_NAME):
        refused = {
            "error_code": ErrorCode.cluster_authorization_failed,
            "error_message": "Cluster authorization failed.",
        }
        return refused, []
    asked = filter_from_request(wanted)
    if fault := _fault(asked):
        return {"error_code": ErrorCode.invalid_request, "error_message": fault}, []
    acls = access.find(asked)
    return {"matching_acls": [_rule(acl) for acl in acls]}, acls


def _fault(wanted: AclFilter) -> str | None:
    if Pattern.UNKNOWN is wanted.pattern or Resource.UNKNOWN is wanted.resource:
        return "Unknown patternFilter."
    unknown = wanted.operation is Operation.UNKNOWN
    if unknown or wanted.permission is Permission.UNKNOWN:
        return "Unknown entryFilter."
    return None


def _rule(acl: Acl) -> Response:
    return {
        "resource_type": acl.resource,
        "resource_name": acl.name,
        "pattern_type": acl.pattern,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation,
        "permission_type": acl.permission,
    }
