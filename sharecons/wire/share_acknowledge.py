"""ShareAcknowledge (79): acknowledgements without a fetch, and closing a session."""

from importlib import import_module

from sharecons.protocol.partitions import PartitionLeader, SharePartition
from sharecons.protocol.share_messages import (
    PartitionResponse,
    ShareAcknowledge,
    ShareAcknowledgeResponse,
)
from sharecons.wire.codec.api import Api, Frame, read_entity, seconds, write_entity
from sharecons.wire.share_fetch import batches, by_topic, endpoints
from sharecons.wire.topic_ids import topic_id_of, uuid_of

__all__ = ["SHARE_ACKNOWLEDGE"]

VERSIONS = range(1, 3)
RENEW_SINCE = 2

_SCHEMAS = {
    version: import_module(f"kio.schema.share_acknowledge.v{version}")
    for version in VERSIONS
}


def _write(request: ShareAcknowledge, version: int) -> bytes:
    schema = _SCHEMAS[version]
    acknowledgements = request.acknowledgements
    mode = {"is_renew_ack": request.is_renew_ack} if version >= RENEW_SINCE else {}
    topics = tuple(
        schema.request.AcknowledgeTopic(
            topic_id=uuid_of(topic_id),
            partitions=tuple(
                schema.request.AcknowledgePartition(
                    partition_index=p.partition,
                    acknowledgement_batches=batches(
                        schema.request, acknowledgements[p]
                    ),
                )
                for p in partitions
            ),
        )
        for topic_id, partitions in by_topic(acknowledgements).items()
    )
    return write_entity(
        schema.ShareAcknowledgeRequest(
            group_id=request.group_id,
            member_id=request.member_id,
            share_session_epoch=request.share_session_epoch,
            topics=topics,
            **mode,
        )
    )


def _read(frame: Frame, offset: int, version: int) -> ShareAcknowledgeResponse:
    response = read_entity(_SCHEMAS[version].ShareAcknowledgeResponse, frame, offset)
    lock = seconds(response.acquisition_lock_timeout) if version >= RENEW_SINCE else 0.0
    return ShareAcknowledgeResponse(
        error=int(response.error_code),
        message=response.error_message,
        lock_timeout=max(0.0, lock),
        partitions=tuple(
            PartitionResponse(
                share_partition=SharePartition(
                    topic_id_of(topic.topic_id), part.partition_index
                ),
                error=0,
                message=None,
                acknowledge_error=int(part.error_code),
                acknowledge_message=part.error_message,
                leader=PartitionLeader(
                    part.current_leader.leader_id, part.current_leader.leader_epoch
                ),
                records=b"",
                acquired=(),
            )
            for topic in response.responses
            for part in topic.partitions
        ),
        endpoints=endpoints(response.node_endpoints),
        throttle=seconds(response.throttle_time),
    )


SHARE_ACKNOWLEDGE: Api[ShareAcknowledge, ShareAcknowledgeResponse] = Api(
    key=79,
    name="ShareAcknowledge",
    versions=VERSIONS,
    write=_write,
    read=_read,
    since="4.1",
)
