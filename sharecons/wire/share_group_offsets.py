"""DescribeShareGroupOffsets (90): how far a share group is; its coordinator knows."""

from importlib import import_module

from sharecons.errors import ProtocolError
from sharecons.protocol.values import (
    DescribeShareGroupOffsets,
    ShareGroupOffsets,
    SharePartition,
    SharePartitionOffset,
)
from sharecons.wire.api import Api, Frame, read_entity, write_entity
from sharecons.wire.topic_ids import topic_id_of

__all__ = ["DESCRIBE_SHARE_GROUP_OFFSETS"]

VERSIONS = range(2)

UNKNOWN = -1

_SCHEMAS = {
    version: import_module(f"kio.schema.describe_share_group_offsets.v{version}")
    for version in VERSIONS
}


def _write(request: DescribeShareGroupOffsets, version: int) -> bytes:
    schema = _SCHEMAS[version]
    group = schema.request.DescribeShareGroupOffsetsRequestGroup(
        group_id=request.group_id, topics=None
    )
    return write_entity(schema.DescribeShareGroupOffsetsRequest(groups=(group,)))


def _read(frame: Frame, offset: int, version: int) -> ShareGroupOffsets:
    kind = _SCHEMAS[version].DescribeShareGroupOffsetsResponse
    groups = read_entity(kind, frame, offset).groups
    if len(groups) != 1:
        raise ProtocolError(f"asked for one group, the answer names {len(groups)}")
    group = groups[0]
    return ShareGroupOffsets(
        error=int(group.error_code),
        message=group.error_message,
        partitions=tuple(
            SharePartitionOffset(
                topic.topic_name,
                SharePartition(topic_id_of(topic.topic_id), each.partition_index),
                each.start_offset,
                each.lag if version else UNKNOWN,
            )
            for topic in group.topics
            for each in topic.partitions
            if not each.error_code
        ),
    )


DESCRIBE_SHARE_GROUP_OFFSETS: Api[DescribeShareGroupOffsets, ShareGroupOffsets] = Api(
    key=90,
    name="DescribeShareGroupOffsets",
    versions=VERSIONS,
    write=_write,
    read=_read,
    since="4.1",
)
