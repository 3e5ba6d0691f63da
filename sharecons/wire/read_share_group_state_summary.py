"""ReadShareGroupStateSummary (87): a summary of a share coordinator's stored state.

Version 1 adds the delivery complete count (KIP-1226): the number of acknowledged and
archived records. The coordinator ignores the leader epoch in the request, even for
fencing.
"""

from collections.abc import Mapping
from typing import Any

from sharecons.protocol.admin.models import StateSummary
from sharecons.protocol.admin.requests import ReadStateSummary, Reply
from sharecons.protocol.partitions import SharePartition
from sharecons.wire.codec.api import Api, Frame, read_entity, write_entity
from sharecons.wire.codec.schema_loader import NO_EPOCH, none_if_negative, schema
from sharecons.wire.share_fetch import by_topic
from sharecons.wire.topic_ids import topic_id_of, uuid_of

__all__ = ["READ_SHARE_GROUP_STATE_SUMMARY"]

Summaries = Mapping[SharePartition, Reply[StateSummary]]

COUNT_SINCE = 1


def _write(request: ReadStateSummary, version: int) -> bytes:
    v = schema("read_share_group_state_summary", version)
    return write_entity(
        v.ReadShareGroupStateSummaryRequest(
            group_id=request.group_id,
            topics=tuple(
                v.request.ReadStateSummaryData(
                    topic_id=uuid_of(topic_id),
                    partitions=tuple(
                        v.request.PartitionData(
                            partition=each.partition, leader_epoch=NO_EPOCH
                        )
                        for each in partitions
                    ),
                )
                for topic_id, partitions in by_topic(request.partitions).items()
            ),
        )
    )


def _read(frame: Frame, offset: int, version: int) -> Summaries:
    v = schema("read_share_group_state_summary", version)
    response = read_entity(v.ReadShareGroupStateSummaryResponse, frame, offset)
    return {
        SharePartition(topic_id_of(topic.topic_id), partition.partition): Reply(
            int(partition.error_code),
            partition.error_message,
            _summary(partition, version),
        )
        for topic in response.results
        for partition in topic.partitions
    }


def _summary(partition: Any, version: int) -> StateSummary:
    counted = version >= COUNT_SINCE
    return StateSummary(
        start_offset=none_if_negative(partition.start_offset),
        state_epoch=partition.state_epoch,
        leader_epoch=partition.leader_epoch,
        delivery_complete_count=none_if_negative(partition.delivery_complete_count)
        if counted
        else None,
    )


READ_SHARE_GROUP_STATE_SUMMARY: Api[ReadStateSummary, Summaries] = Api(
    key=87,
    name="ReadShareGroupStateSummary",
    versions=range(0, 2),
    write=_write,
    read=_read,
    since="4.1",
)
