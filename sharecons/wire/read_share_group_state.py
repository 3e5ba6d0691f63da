"""ReadShareGroupState (84): the state that a share coordinator stores (KIP-932)."""

from collections.abc import Mapping
from typing import Any

from sharecons.protocol.admin.models import (
    DeliveryState,
    SharePartitionState,
    StateBatch,
)
from sharecons.protocol.admin.requests import ReadState, Reply
from sharecons.protocol.partitions import SharePartition
from sharecons.wire.codec.api import Api, Frame, read_entity, write_entity
from sharecons.wire.codec.schema_loader import none_if_negative, schema
from sharecons.wire.share_fetch import by_topic
from sharecons.wire.topic_ids import topic_id_of, uuid_of

__all__ = ["READ_SHARE_GROUP_STATE"]

States = Mapping[SharePartition, Reply[SharePartitionState]]


def _write(request: ReadState, version: int) -> bytes:
    v = schema("read_share_group_state", version)
    return write_entity(
        v.ReadShareGroupStateRequest(
            group_id=request.group_id,
            topics=tuple(
                v.request.ReadStateData(
                    topic_id=uuid_of(topic_id),
                    partitions=tuple(
                        v.request.PartitionData(
                            partition=each.partition,
                            leader_epoch=request.leader_epochs[each],
                        )
                        for each in partitions
                    ),
                )
                for topic_id, partitions in by_topic(request.leader_epochs).items()
            ),
        )
    )


def _read(frame: Frame, offset: int, version: int) -> States:
    kind = schema("read_share_group_state", version).ReadShareGroupStateResponse
    return {
        SharePartition(topic_id_of(topic.topic_id), partition.partition): Reply(
            int(partition.error_code), partition.error_message, _state(partition)
        )
        for topic in read_entity(kind, frame, offset).results
        for partition in topic.partitions
    }


def _state(partition: Any) -> SharePartitionState:
    return SharePartitionState(
        start_offset=none_if_negative(partition.start_offset),
        state_epoch=partition.state_epoch,
        batches=tuple(
            StateBatch(
                first_offset=batch.first_offset,
                last_offset=batch.last_offset,
                state=DeliveryState(batch.delivery_state),
                delivery_count=batch.delivery_count,
            )
            for batch in partition.state_batches
        ),
    )


READ_SHARE_GROUP_STATE: Api[ReadState, States] = Api(
    key=84,
    name="ReadShareGroupState",
    versions=range(0, 1),
    write=_write,
    read=_read,
    since="4.1",
)
