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
    rule_fields,
)
from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.errors import CLUSTER_DENIED

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    authorizer = context.cluster.authorizer
    # All filters are matched first: a rule can be in the results of two of them.
    results = [_result(authorizer, each) for each in request.filters]
    for _, acls in results:
        authorizer.remove(acls)
    return {"filter_results": [response for response, _ in results]}


def _result(authorizer: Authorizer, request: Request) -> tuple[Response, list[Acl]]:
    if authorizer.denies("ALTER", "CLUSTER", CLUSTER_NAME):
        return CLUSTER_DENIED.fields, []
    acl_filter = filter_from_request(request)
    if fault := _filter_error(acl_filter):
        return {"error_code": ErrorCode.invalid_request, "error_message": fault}, []
    acls = authorizer.find(acl_filter)
    return {"matching_acls": [_matching(acl) for acl in acls]}, acls


def _filter_error(acl_filter: AclFilter) -> str | None:
    if Pattern.UNKNOWN is acl_filter.pattern or Resource.UNKNOWN is acl_filter.resource:
        return "Unknown patternFilter."
    unknown = acl_filter.operation is Operation.UNKNOWN
    if unknown or acl_filter.permission is Permission.UNKNOWN:
        return "Unknown entryFilter."
    return None


def _matching(acl: Acl) -> Response:
    return {
        "resource_type": acl.resource,
        "resource_name": acl.name,
        "pattern_type": acl.pattern,
        **rule_fields(acl),
    }
