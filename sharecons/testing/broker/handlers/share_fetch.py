"""ShareFetch 1 and 2 (KIP-932; version 2: KIP-1206 acquire mode, KIP-1222 renewal).

In this order, the session is opened, continued or closed, acknowledgements are
validated, and records are acquired: immediately, or as soon as there are `min_bytes`,
at the latest after `max_wait`. The first response has every partition; later ones those
with records or an error, new ones, and ones with acknowledgements.

Acknowledgements are applied after the first attempt to acquire: Kafka's leader writes
them to its coordinator meanwhile. So records that a request releases are not in its own
response, unless it has waited.

A waiting request is woken by new records, by the end of a lock, and by a start offset
that moves, but not by records that another member releases; it gets those at the end of
its wait (measured on Kafka 4.3.0, as is UNKNOWN_SERVER_ERROR for an unknown topic id).

A request that renews locks fetches nothing; all of its limits must be zero.
"""

import time
from dataclasses import dataclass, field

from sharecons.testing.broker.codec import ErrorCode, Request, Response, field_or
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.share.acquire import AcquireRequest
from sharecons.testing.broker.share.deliveries import AcknowledgementBatch
from sharecons.testing.broker.share.fetch import (
    Fetched,
    FetchLimits,
    FetchSource,
    acquire_from,
)
from sharecons.testing.broker.share.partitions import SharePartitionKey
from sharecons.testing.broker.share.sessions import (
    CLOSE,
    OPEN,
    Session,
    SessionError,
    TopicPartition,
)
from sharecons.testing.broker.share_requests import (
    PartitionError,
    PartitionResult,
    acknowledgements,
    all_topics_exist,
    apply_acknowledgements,
    check_acknowledgements,
    error_response,
    find_partition,
    has_server_error,
    partition_fields,
    request_error,
    response_of_partitions,
)
from sharecons.testing.broker.txn_markers import abort_expired

__all__ = ["handle"]

RECORD_LIMIT = 1  # the acquire mode; 0 is batch-optimized


@dataclass(slots=True)
class _Result:
    """The result for one partition."""

    fetched: Fetched = field(default_factory=Fetched)
    code: ErrorCode = ErrorCode.none
    acknowledge_code: ErrorCode = ErrorCode.none
    acknowledge_message: str | None = None


Results = dict[TopicPartition, _Result]


async def handle(request: Request, context: Context) -> Response:
    code = request_error(request, context) or _renewal_error(request)
    if code is not None:
        return error_response(code)
    try:
        session = _session(request, context)
    except SessionError as error:
        if error.code is ErrorCode.share_session_limit_reached:
            await context.wait((), context.now + request.max_wait.total_seconds())
        return error_response(error.code)
    entries = acknowledgements(request)
    fetched = () if request.share_session_epoch == CLOSE else session.partitions
    if not all_topics_exist(context.cluster, (*entries, *fetched)):
        return error_response(ErrorCode.unknown_server_error)
    acknowledged = (
        check_acknowledgements(request, context, entries)
        if _has_acknowledgements(entries)
        else {}
    )
    results = await _fetch(request, context, session, acknowledged)
    if has_server_error(acknowledged):
        return error_response(ErrorCode.unknown_server_error)
    if _is_outdated(request, session):
        return error_response(ErrorCode.invalid_share_session_epoch)
    results = _results_to_send(request, session, results)
    for topic_partition, acknowledgement in acknowledged.items():
        result = results.setdefault(topic_partition, _Result())
        if isinstance(acknowledgement, PartitionError):
            result.acknowledge_code = acknowledgement.code
            result.acknowledge_message = acknowledgement.message
    if request.share_session_epoch == CLOSE:
        context.cluster.share_sessions.close(session)
    return _response(request, context, results)


def _renewal_error(request: Request) -> ErrorCode | None:
    limits = (request.max_bytes, request.min_bytes, request.max_records)
    is_fetch = any(limits) or request.max_wait.total_seconds() != 0
    is_renewal = field_or(request, "is_renew_ack", False)
    return ErrorCode.invalid_request if is_renewal and is_fetch else None


def _session(request: Request, context: Context) -> Session:
    """Open, continue or find the session.

    Raises:
        SessionError: the request does not match its session.
    """
    sessions = context.cluster.share_sessions
    who = (context.node_id, request.group_id, request.member_id)
    named = list(acknowledgements(request))
    if request.share_session_epoch == CLOSE:
        return sessions.find(*who)
    if request.share_session_epoch == OPEN:
        if _has_acknowledgements(acknowledgements(request)):
            raise SessionError(ErrorCode.invalid_request)
        return sessions.open(*who, context.connection, named)
    session = sessions.next_request(*who, request.share_session_epoch)
    session.update(named, _forgotten(request))
    return session


def _forgotten(request: Request) -> list[TopicPartition]:
    return [
        TopicPartition(topic.topic_id, int(partition))
        for topic in request.forgotten_topics_data
        for partition in topic.partitions
    ]


def _has_acknowledgements(
    entries: dict[TopicPartition, list[AcknowledgementBatch]],
) -> bool:
    return any(entries.values())


async def _fetch(
    request: Request,
    context: Context,
    session: Session,
    acknowledged: dict[TopicPartition, PartitionResult],
) -> Results:
    """Acquire records, and apply the acknowledgements meanwhile."""
    results: Results = {}
    sources: list[FetchSource] = []
    is_fetch = not field_or(request, "is_renew_ack", False)
    if is_fetch and request.share_session_epoch != CLOSE:
        sources = _sources(request, context, session, results)
    if not sources:
        apply_acknowledgements(context, request.group_id, acknowledged)
        return results
    until = context.now + request.max_wait.total_seconds()
    found = _try_acquire(request, context, sources, is_last=False)
    retry_now = apply_acknowledgements(context, request.group_id, acknowledged)
    while found is None:
        if not retry_now:
            await _wait(request, context, sources, until)
        retry_now = False
        found = _try_acquire(request, context, sources, is_last=context.now >= until)
    for topic_partition, part in found.items():
        results[topic_partition] = _Result(part)
    return results


def _sources(
    request: Request, context: Context, session: Session, results: Results
) -> list[FetchSource]:
    """Return the partitions to fetch from; store the errors of others."""
    partitions = context.cluster.share_partitions
    sources = []
    for topic_partition in session.rotated(request.share_session_epoch):
        partition, code = find_partition(context, topic_partition)
        if partition is not None and not (request.max_records and request.max_bytes):
            continue  # not even loaded, so that a group's start is not fixed
        if partition is not None and partition.leader != context.node_id:
            partition, code = None, ErrorCode.not_leader_or_follower
        share_partition = None
        if partition is not None:
            key = SharePartitionKey(request.group_id, *topic_partition)
            share_partition = partitions.load(key, partition, int(time.time() * 1000))
            # The coordinator gets the state when a member subscribes.
            code = ErrorCode.unknown_server_error
        if partition is None or share_partition is None:
            results[topic_partition] = _Result(code=code)
            continue
        sources.append(FetchSource(topic_partition, share_partition, partition.log))
    return sources


def _try_acquire(
    request: Request, context: Context, sources: list[FetchSource], *, is_last: bool
) -> dict[TopicPartition, Fetched] | None:
    """Acquire from all partitions, if there are enough bytes or time is over."""
    abort_expired(context.cluster, context.now, int(time.time() * 1000))
    partitions = context.cluster.share_partitions
    settings = partitions.group_settings(request.group_id)
    limits = _limits(request, context)
    available = []
    for source in sources:
        key = SharePartitionKey(request.group_id, *source.topic_partition)
        if partitions.get_loaded(key, context.node_id) is not source.partition:
            continue
        if source.partition.advance(settings, context.now):
            partitions.changed(key).notify()
        partitions.write_dead_letters(key)
        if source.partition.can_acquire(settings):
            available.append(source)
    acquire_request = _acquire_request(request)
    return acquire_from(
        available, limits, acquire_request, settings, context.now, is_last=is_last
    )


async def _wait(
    request: Request, context: Context, sources: list[FetchSource], until: float
) -> None:
    partitions = context.cluster.share_partitions
    signals = [source.log.changed for source in sources]
    until = min(until, context.cluster.transactions.next_deadline)
    for source in sources:
        key = SharePartitionKey(request.group_id, *source.topic_partition)
        signals.append(partitions.changed(key))
        # The locks of an unloaded partition are lost; nothing passes their end.
        if partitions.get_loaded(key, context.node_id) is source.partition:
            until = min(until, source.partition.next_deadline())
    await context.wait(signals, until)


def _limits(request: Request, context: Context) -> FetchLimits:
    level = context.cluster.configs.group_value(
        request.group_id, "share.isolation.level"
    )
    return FetchLimits(
        max_bytes=request.max_bytes,
        min_bytes=request.min_bytes,
        read_committed=level == "read_committed",
    )


def _acquire_request(request: Request) -> AcquireRequest:
    return AcquireRequest(
        member=request.member_id,
        max_records=request.max_records,
        batch_size=request.batch_size,
        record_limit=field_or(request, "share_acquire_mode", 0) == RECORD_LIMIT,
    )


def _is_outdated(request: Request, session: Session) -> bool:
    """Return whether a later request of the session arrived before this was done."""
    epoch = request.share_session_epoch
    return epoch not in (OPEN, CLOSE) and session.epoch != _next_epoch(epoch)


def _next_epoch(epoch: int) -> int:
    return 1 if epoch == 2**31 - 1 else epoch + 1


def _results_to_send(request: Request, session: Session, results: Results) -> Results:
    """Leave out the partitions that have not changed for the client."""
    if request.share_session_epoch in (OPEN, CLOSE):
        return results
    return {
        where: result
        for where, result in results.items()
        if session.must_respond(
            where,
            has_error=result.code is not ErrorCode.none,
            has_records=bool(result.fetched.acquired),
        )
    }


def _response(request: Request, context: Context, results: Results) -> Response:
    partitions = {
        where: _partition(context, where, result) for where, result in results.items()
    }
    return response_of_partitions(context, request.group_id, partitions)


def _partition(context: Context, where: TopicPartition, result: _Result) -> Response:
    return {
        **partition_fields(context, where, result.code),
        "acknowledge_error_code": result.acknowledge_code.value,
        "acknowledge_error_message": result.acknowledge_message,
        "records": result.fetched.records,
        "acquired_records": [part._asdict() for part in result.fetched.acquired],
    }
