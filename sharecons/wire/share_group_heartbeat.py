"""ShareGroupHeartbeat (76): joins a share group, stays in it and leaves it."""

from importlib import import_module
from typing import Any

from sharecons.protocol.group.messages import Heartbeat, HeartbeatResponse
from sharecons.protocol.partitions import SharePartition
from sharecons.wire.codec.api import Api, Frame, read_entity, seconds, write_entity
from sharecons.wire.topic_ids import topic_id_of

__all__ = ["SHARE_GROUP_HEARTBEAT"]

v1: Any = import_module("kio.schema.share_group_heartbeat.v1")


def _write(request: Heartbeat, version: int) -> bytes:
    return write_entity(
        v1.ShareGroupHeartbeatRequest(
            group_id=request.group_id,
            member_id=request.member_id,
            member_epoch=request.member_epoch,
            rack_id=request.rack,
            subscribed_topic_names=request.topics,
        )
    )


def _read(frame: Frame, offset: int, version: int) -> HeartbeatResponse:
    response = read_entity(v1.ShareGroupHeartbeatResponse, frame, offset)
    assignment = None
    if response.assignment is not None:
        assignment = frozenset(
            SharePartition(topic_id_of(topic.topic_id), partition)
            for topic in response.assignment.topic_partitions
            for partition in topic.partitions
            # Brokers have been observed (in another client's tests) to assign -1.
            if topic.topic_id is not None and partition >= 0
        )
    return HeartbeatResponse(
        error=int(response.error_code),
        message=response.error_message,
        member_epoch=response.member_epoch,
        heartbeat_interval=seconds(response.heartbeat_interval),
        assignment=assignment,
        throttle=seconds(response.throttle_time),
    )


SHARE_GROUP_HEARTBEAT: Api[Heartbeat, HeartbeatResponse] = Api(
    key=76,
    name="ShareGroupHeartbeat",
    versions=range(1, 2),
    write=_write,
    read=_read,
    since="4.1",
)
