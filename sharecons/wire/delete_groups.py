"""DeleteGroups (42): deletes groups of any type."""

from collections.abc import Mapping

from sharecons.protocol.admin.requests import DeleteGroups, Reply
from sharecons.wire.codec.api import Api, Frame, read_entity, write_entity
from sharecons.wire.codec.schema_loader import schema

__all__ = ["DELETE_GROUPS"]

Deleted = Mapping[str, Reply[None]]


def _write(request: DeleteGroups, version: int) -> bytes:
    kind = schema("delete_groups", version).DeleteGroupsRequest
    return write_entity(kind(groups_names=request.group_ids))


def _read(frame: Frame, offset: int, version: int) -> Deleted:
    kind = schema("delete_groups", version).DeleteGroupsResponse
    return {
        result.group_id: Reply(int(result.error_code), None, None)
        for result in read_entity(kind, frame, offset).results
    }


DELETE_GROUPS: Api[DeleteGroups, Deleted] = Api(
    key=42, name="DeleteGroups", versions=range(2, 3), write=_write, read=_read
)
