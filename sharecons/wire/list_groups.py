"""ListGroups (16): the groups of all types that one broker coordinates.

Version 5 can filter by type (KIP-848). All brokers with share groups support it.
"""

from sharecons.protocol.admin.models import ListedGroup
from sharecons.protocol.admin.requests import ListGroups, Reply
from sharecons.wire.codec.api import Api, Frame, read_entity, write_entity
from sharecons.wire.codec.schema_loader import schema

__all__ = ["LIST_GROUPS"]


def _write(request: ListGroups, version: int) -> bytes:
    kind = schema("list_groups", version).ListGroupsRequest
    return write_entity(kind(states_filter=request.states, types_filter=request.types))


def _read(frame: Frame, offset: int, version: int) -> Reply[tuple[ListedGroup, ...]]:
    response = read_entity(
        schema("list_groups", version).ListGroupsResponse, frame, offset
    )
    groups = tuple(
        ListedGroup(
            group_id=group.group_id,
            state=group.group_state,
            group_type=group.group_type.lower(),
            protocol=group.protocol_type,
        )
        for group in response.groups
    )
    return Reply(int(response.error_code), None, groups)


LIST_GROUPS: Api[ListGroups, Reply[tuple[ListedGroup, ...]]] = Api(
    key=16, name="ListGroups", versions=range(5, 6), write=_write, read=_read
)
