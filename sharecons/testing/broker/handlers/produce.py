"""Produce 3 to 13: append batches of records.

Topics by name up to version 12, by id from 13. One batch per partition. With acks=0
there is no response; an error then closes the connection, since clients would not learn
of it otherwise. Errors of single records exist from version 8 (KIP-467), current
leaders from 10 (KIP-951).

Up to version 11, the partitions of a transaction must have been added by
AddPartitionsToTxn; since 12, writing adds them (KIP-890).
"""

from dataclasses import dataclass
from typing import Final

from sharecons.testing.broker.append import (
    Append,
    Result,
    validate_batch,
    verify_transactions,
    write,
)
from sharecons.testing.broker.codec import ErrorCode, Request, Response, field_or
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.leaders import leader_fields, node_endpoints
from sharecons.testing.broker.log.batches import AppendError, split_batches
from sharecons.testing.broker.topics import Topic
from sharecons.testing.broker.transactions import TransactionSupport
from sharecons.testing.broker.txn_markers import abort_expired
from sharecons.testing.broker.wall_clock import milliseconds

__all__ = ["handle"]

TOPIC_IDS_SINCE: Final = 13
ADD_PARTITION_SINCE: Final = 12
ABORTABLE_SINCE: Final = 11
ACKS: Final = (-1, 0, 1)


@dataclass(slots=True)
class PartitionWrite:
    """One partition of a request: its batch, and then the result."""

    topic: Request
    request: Request
    append: Append | None = None
    result: Result | None = None


async def handle(request: Request, context: Context) -> Response | None:
    now_ms = milliseconds()
    abort_expired(context.cluster, context.now, now_ms)
    writes = [
        PartitionWrite(topic, requested)
        for topic in request.topic_data
        for requested in topic.partition_data
    ]
    _validate(writes, request, context)
    for each in writes:
        if each.append is not None and each.result is None:
            support = _support(context.version)
            each.result = write(each.append, request.acks, support, context, now_ms)
    if request.acks == 0:
        if any(each.result and each.result.code for each in writes):
            context.connection.cut()
        return None
    return _response(request, writes, context)


def _validate(writes: list[PartitionWrite], request: Request, context: Context) -> None:
    """Validate the partitions; store errors as their results."""
    try:
        batches = [split_batches(each.request.records or b"") for each in writes]
    except AppendError as error:
        # Kafka fails at this before it handles single partitions.
        _fail_all(writes, error.code, error.message)
        return
    for each, found in zip(writes, batches, strict=True):
        try:
            each.append = _to_append(each, found, context)
        except AppendError as error:
            each.result = Result(code=error.code)
    _validate_request(writes, request, context)


def _validate_request(
    writes: list[PartitionWrite], request: Request, context: Context
) -> None:
    """Check the request as a whole, and its transaction."""
    appends = [each.append for each in writes if each.append is not None]
    code = _request_error(appends, request, context)
    if code:
        _fail_all(writes, code)
    elif request.transactional_id is not None:
        support = _support(context.version)
        errors = verify_transactions(
            appends, request.transactional_id, support, context
        )
        for each in writes:
            if each.append is not None:
                each.result = errors.get(each.append.topic_partition)


def _fail_all(
    writes: list[PartitionWrite], code: ErrorCode, message: str | None = None
) -> None:
    for each in writes:
        each.result = each.result or Result(code=code, message=message)


def _to_append(item: PartitionWrite, batches: list[bytes], context: Context) -> Append:
    found, unknown = _topic(item.topic, context)
    name = found.name if found else field_or(item.topic, "name", None)
    if name is not None and context.cluster.authorizer.denies("WRITE", "TOPIC", name):
        raise AppendError(ErrorCode.topic_authorization_failed, "not authorized")
    partition = found.partition(item.request.index) if found else None
    if found is None:
        raise AppendError(unknown, "unknown topic")
    if partition is None:
        raise AppendError(ErrorCode.unknown_topic_or_partition, "unknown partition")
    return validate_batch(found, partition, batches, context.version)


def _topic(topic: Request, context: Context) -> tuple[Topic | None, ErrorCode]:
    """Return the topic, and the error if it does not exist."""
    topics = context.cluster.topics
    if context.version < TOPIC_IDS_SINCE:
        return topics.by_name(topic.name), ErrorCode.unknown_topic_or_partition
    return topics.by_id(topic.topic_id), ErrorCode.unknown_topic_id


def _request_error(
    appends: list[Append], request: Request, context: Context
) -> ErrorCode:
    producers = {each.producer for each in appends if each.header.is_transactional}
    if producers:
        name = request.transactional_id
        authorizer = context.cluster.authorizer
        if name is None or authorizer.denies("WRITE", "TRANSACTIONAL_ID", name):
            return ErrorCode.transactional_id_authorization_failed
    if len(producers) > 1:
        return ErrorCode.invalid_producer_id_mapping
    if request.acks not in ACKS:
        return ErrorCode.invalid_required_acks
    return ErrorCode.none


def _support(version: int) -> TransactionSupport:
    if version >= ADD_PARTITION_SINCE:
        return TransactionSupport.ADD_PARTITION
    return (
        TransactionSupport.ABORTABLE
        if version >= ABORTABLE_SINCE
        else TransactionSupport.DEFAULT
    )


def _response(
    request: Request, writes: list[PartitionWrite], context: Context
) -> Response:
    topics: dict[int, list[Response]] = {}
    leaders = []
    for each in writes:
        result = each.result or Result()
        if result.leader is not None:
            leaders.append(result.leader.leader)
        partitions = topics.setdefault(id(each.topic), [])
        partitions.append(_partition_response(each.request.index, result))
    by_id = context.version >= TOPIC_IDS_SINCE
    return {
        "responses": [
            {
                **({"topic_id": each.topic_id} if by_id else {"name": each.name}),
                "partition_responses": topics.get(id(each), []),
            }
            for each in request.topic_data
        ],
        "node_endpoints": node_endpoints(context, leaders),
    }


def _partition_response(index: int, result: Result) -> Response:
    response: dict[str, object] = {
        "index": index,
        "error_code": result.code,
        "base_offset": result.appended.base_offset,
        "log_append_time": result.appended.log_append_time,
        "log_start_offset": result.start_offset,
        "record_errors": [
            {"batch_index": batch_index, "batch_index_error_message": message}
            for batch_index, message in result.record_errors.items()
        ],
        "error_message": result.message,
    }
    if result.leader is not None:
        response["current_leader"] = leader_fields(result.leader)
    return response
