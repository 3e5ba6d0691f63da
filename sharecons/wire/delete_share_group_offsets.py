"""DeleteShareGroupOffsets (92): deletes an empty group's topic offsets (KIP-932)."""

from collections.abc import Mapping

from sharecons.protocol.admin.requests import DeleteShareGroupOffsets, Reply
from sharecons.wire.codec.api import Api, Frame, read_entity, write_entity
from sharecons.wire.codec.schema_loader import schema

__all__ = ["DELETE_SHARE_GROUP_OFFSETS"]

Deleted = Reply[Mapping[str, Reply[None]]]


def _write(request: DeleteShareGroupOffsets, version: int) -> bytes:
    v = schema("delete_share_group_offsets", version)
    kind = v.request.DeleteShareGroupOffsetsRequestTopic
    return write_entity(
        v.DeleteShareGroupOffsetsRequest(
            group_id=request.group_id,
            topics=tuple(kind(topic_name=topic) for topic in request.topics),
        )
    )


def _read(frame: Frame, offset: int, version: int) -> Deleted:
    v = schema("delete_share_group_offsets", version)
    response = read_entity(v.DeleteShareGroupOffsetsResponse, frame, offset)
    deleted: Mapping[str, Reply[None]] = {
        topic.topic_name: Reply(int(topic.error_code), topic.error_message, None)
        for topic in response.responses
    }
    return Reply(int(response.error_code), response.error_message, deleted)


DELETE_SHARE_GROUP_OFFSETS: Api[DeleteShareGroupOffsets, Deleted] = Api(
    key=92,
    name="DeleteShareGroupOffsets",
    versions=range(0, 1),
    write=_write,
    read=_read,
    since="4.1",
)
