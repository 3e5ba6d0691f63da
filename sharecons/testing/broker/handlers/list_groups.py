"""ListGroups 0 to 5: the groups of all kinds that this broker coordinates.

Version 4 has states and a filter for them (KIP-518), version 5 the same for types
(KIP-848, KIP-932), here "classic" and "share". Filters ignore case.
"""

from collections.abc import Iterable

from sharecons.testing.broker.codec import ErrorCode, Request, Response, field_or
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.coordinators import GROUP
from sharecons.testing.broker.group_checks import is_coordinator
from sharecons.testing.broker.groups.classic import ClassicGroup
from sharecons.testing.broker.groups.registry import Group

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    states = _lower(field_or(request, "states_filter", ()))
    types = _lower(field_or(request, "types_filter", ()))
    visible = _visible(context)
    is_loading = context.cluster.coordinators.is_loading
    if any(is_loading(GROUP, group.group_id) for group in visible):
        return {"error_code": ErrorCode.coordinator_load_in_progress}
    listed = [_describe(group, context) for group in visible]
    return {
        "groups": [
            group
            for group in listed
            if _matches(group["group_state"], states)
            and _matches(group["group_type"], types)
        ]
    }


def _lower(wanted: Iterable[str]) -> set[str]:
    return {each.strip().lower() for each in wanted}


def _matches(value: str, accepted: set[str]) -> bool:
    return not accepted or value.lower() in accepted


def _visible(context: Context) -> list[Group]:
    """Return the groups that the cluster's or their own ACLs show to the client."""
    cluster = context.cluster
    for group in cluster.groups:
        cluster.groups.advance_classic(group.group_id, context.now)
    coordinated = [
        each for each in cluster.groups if is_coordinator(context, each.group_id)
    ]
    if not cluster.authorizer.denies("DESCRIBE", "CLUSTER", "kafka-cluster"):
        return coordinated
    denies = cluster.authorizer.denies
    return [
        each for each in coordinated if not denies("DESCRIBE", "GROUP", each.group_id)
    ]


def _describe(group: Group, context: Context) -> dict[str, str]:
    group.advance(context.now)
    if isinstance(group, ClassicGroup):
        kind, protocol_type = "classic", group.protocol_type or ""
    else:
        kind, protocol_type = "share", "share"
    return {
        "group_id": group.group_id,
        "protocol_type": protocol_type,
        "group_state": str(group.state),
        "group_type": kind,
    }
