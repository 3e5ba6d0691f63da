"""Produce (0): writes record batches. Version 13 identifies topics by id."""

from datetime import timedelta
from typing import Final

from sharecons._record import TopicPartition
from sharecons.protocol.produce.messages import AppendResult, Produce, ProduceResponse
from sharecons.wire.codec.api import Api, Frame, read_entity, write_entity
from sharecons.wire.codec.schema_loader import by_topic, schema

__all__ = ["PRODUCE"]

ALL_IN_SYNC: Final = -1
"""The value of `acks` for which a leader waits for all in-sync replicas."""


def _write(request: Produce, version: int) -> bytes:
    v = schema("produce", version)
    return write_entity(
        v.ProduceRequest(
            transactional_id=None,
            acks=ALL_IN_SYNC,
            timeout=timedelta(seconds=request.timeout),
            topic_data=tuple(
                v.request.TopicProduceData(
                    name=topic,
                    partition_data=tuple(
                        v.request.PartitionProduceData(
                            index=partition,
                            records=request.batches[TopicPartition(topic, partition)],
                        )
                        for partition in partitions
                    ),
                )
                for topic, partitions in by_topic(request.batches).items()
            ),
        )
    )


def _read(frame: Frame, offset: int, version: int) -> ProduceResponse:
    response = read_entity(schema("produce", version).ProduceResponse, frame, offset)
    return ProduceResponse(
        partitions={
            TopicPartition(topic.name, partition.index): AppendResult(
                int(partition.error_code),
                partition.error_message,
                int(partition.base_offset),
            )
            for topic in response.responses
            for partition in topic.partition_responses
        },
        throttle=response.throttle_time.total_seconds(),
    )


PRODUCE: Api[Produce, ProduceResponse] = Api(
    key=0, name="Produce", versions=range(9, 13), write=_write, read=_read
)
