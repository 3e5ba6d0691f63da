"""ShareFetch (78): records to acquire, acknowledgements that ride along.

Version 1 (Kafka 4.1) has no acquire mode and no renewals; there `record_limit`
cannot be asked for, and a fetch brings whole batches.
"""

from importlib import import_module
from typing import Any

from sharecons.errors import ProtocolError
from sharecons.protocol.values import (
    FetchedPartition,
    PartitionLeader,
    ShareFetch,
    ShareFetched,
    SharePartition,
)
from sharecons.wire.api import Api, milliseconds, read_entity, seconds, write_entity
from sharecons.wire.share_topics import batches, by_topic, endpoints

__all__ = ["SHARE_FETCH"]

VERSIONS = range(1, 3)
RECORD_LIMIT_SINCE = 2

_SCHEMAS = {
    version: import_module(f"kio.schema.share_fetch.v{version}") for version in VERSIONS
}


def _write(request: ShareFetch, version: int) -> bytes:
    schema = _SCHEMAS[version]
    if version >= RECORD_LIMIT_SINCE:
        mode = {"share_acquire_mode": int(request.record_limit), "is_renew_ack": False}
    else:
        mode = {}
    return write_entity(
        schema.ShareFetchRequest(
            group_id=request.group_id,
            member_id=request.member_id,
            share_session_epoch=request.share_session_epoch,
            max_wait=milliseconds(request.max_wait),
            min_bytes=request.min_bytes,
            max_bytes=request.max_bytes,
            max_records=request.max_records,
            batch_size=request.max_records,
            topics=_topics(schema.request, request),
            forgotten_topics_data=tuple(
                schema.request.ForgottenTopic(
                    topic_id=topic_id,
                    partitions=tuple(p.partition for p in partitions),
                )
                for topic_id, partitions in by_topic(request.forgotten).items()
            ),
            **mode,
        )
    )


def _topics(schema: Any, request: ShareFetch) -> tuple[Any, ...]:
    said = request.acknowledgements
    return tuple(
        schema.FetchTopic(
            topic_id=topic_id,
            partitions=tuple(
                schema.FetchPartition(
                    partition_index=p.partition,
                    acknowledgement_batches=batches(schema, said.get(p, ())),
                )
                for p in partitions
            ),
        )
        for topic_id, partitions in by_topic(request.added | said.keys()).items()
    )


def _read(frame: bytes, offset: int, version: int) -> ShareFetched:
    answer = read_entity(_SCHEMAS[version].ShareFetchResponse, frame, offset)
    return ShareFetched(
        error=int(answer.error_code),
        message=answer.error_message,
        lock_timeout=max(0.0, seconds(answer.acquisition_lock_timeout)),
        renewable=version >= RECORD_LIMIT_SINCE,
        partitions=tuple(
            _partition(SharePartition(topic.topic_id, part.partition_index), part)
            for topic in answer.responses
            for part in topic.partitions
        ),
        endpoints=endpoints(answer.node_endpoints),
        throttle=seconds(answer.throttle_time),
    )


def _partition(share_partition: SharePartition, part: Any) -> FetchedPartition:
    acquired = tuple(
        (a.first_offset, a.last_offset, a.delivery_count) for a in part.acquired_records
    )
    _check(share_partition, acquired)
    return FetchedPartition(
        share_partition=share_partition,
        error=int(part.error_code),
        message=part.error_message,
        acknowledge_error=int(part.acknowledge_error_code),
        acknowledge_message=part.acknowledge_error_message,
        leader=PartitionLeader(
            part.current_leader.leader_id, part.current_leader.leader_epoch
        ),
        records=part.records or b"",
        acquired=acquired,
    )


def _check(where: SharePartition, acquired: tuple[tuple[int, int, int], ...]) -> None:
    after = -1
    for first, last, _ in acquired:
        if not after < first <= last:
            raise ProtocolError(
                f"acquired ranges of {where} are not ascending: {acquired[:4]}"
            )
        after = last


SHARE_FETCH: Api[ShareFetch, ShareFetched] = Api(
    key=78,
    name="ShareFetch",
    versions=VERSIONS,
    write=_write,
    read=_read,
    since="4.1",
)
