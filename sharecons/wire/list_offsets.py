"""ListOffsets (2): where a partition's log begins and ends; its leader knows."""

from importlib import import_module

from sharecons.protocol.values import ListOffsets, OffsetListed, OffsetsListed
from sharecons.wire.api import Api, Frame, read_entity, write_entity

__all__ = ["LIST_OFFSETS"]

VERSIONS = range(6, 10)

CONSUMER = -1
READ_UNCOMMITTED = 0
LATEST, EARLIEST = -1, -2
ASKED = {"latest": LATEST, "earliest": EARLIEST}

_SCHEMAS = {
    version: import_module(f"kio.schema.list_offsets.v{version}")
    for version in VERSIONS
}


def _write(request: ListOffsets, version: int) -> bytes:
    schema = _SCHEMAS[version]
    kinds = schema.request
    topics = tuple(
        kinds.ListOffsetsTopic(
            name=topic,
            partitions=tuple(
                kinds.ListOffsetsPartition(
                    partition_index=partition, timestamp=ASKED[request.which]
                )
                for partition in partitions
            ),
        )
        for topic, partitions in request.partitions.items()
    )
    return write_entity(
        schema.ListOffsetsRequest(
            replica_id=CONSUMER, isolation_level=READ_UNCOMMITTED, topics=topics
        )
    )


def _read(frame: Frame, offset: int, version: int) -> OffsetsListed:
    answer = read_entity(_SCHEMAS[version].ListOffsetsResponse, frame, offset)
    return OffsetsListed(
        partitions=tuple(
            OffsetListed(
                topic.name, each.partition_index, int(each.error_code), each.offset
            )
            for topic in answer.topics
            for each in topic.partitions
        )
    )


LIST_OFFSETS: Api[ListOffsets, OffsetsListed] = Api(
    key=2, name="ListOffsets", versions=VERSIONS, write=_write, read=_read
)
