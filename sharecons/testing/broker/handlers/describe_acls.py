"""DescribeAcls 1 to 3: the rules that match a filter, by resource."""

from sharecons.testing.broker.acls import (
    CLUSTER_NAME,
    Acl,
    Pattern,
    Resource,
    filter_from_request,
    rule_fields,
)
from sharecons.testing.broker.codec import Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.errors import CLUSTER_DENIED

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    authorizer = context.cluster.authorizer
    if authorizer.denies("DESCRIBE", "CLUSTER", CLUSTER_NAME):
        return CLUSTER_DENIED.fields
    found = authorizer.find(filter_from_request(request))
    return {"error_message": "", "resources": _by_resource(found)}


def _by_resource(acls: list[Acl]) -> list[Response]:
    found: dict[tuple[Resource, str, Pattern], list[Acl]] = {}
    for acl in acls:
        found.setdefault((acl.resource, acl.name, acl.pattern), []).append(acl)
    return [
        {
            "resource_type": resource,
            "resource_name": name,
            "pattern_type": pattern,
            "acls": [rule_fields(acl) for acl in rules],
        }
        for (resource, name, pattern), rules in found.items()
    ]
