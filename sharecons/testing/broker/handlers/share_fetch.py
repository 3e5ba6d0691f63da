"""ShareFetch 1 and 2 (KIP-932; version 2: KIP-1206 acquire mode, KIP-1222 renewal).

In this order, the session is opened, continued or closed, acknowledgements are
validated, and records are acquired: at once, or as soon as there are `min_bytes`, at
the latest after `max_wait`. The first response has every partition; later ones those
with records or an error, new ones, and those with acknowledgements.

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
from sharecons.testing.broker.share.acquire import Wanted
from sharecons.testing.broker.share.deliveries import AcknowledgementBatch
from sharecons.testing.broker.share.fetching import (
    Fetched,
    FetchLimits,
    Source,
    looked,
)
from sharecons.testing.broker.share.partitions import Key
from sharecons.testing.broker.share.requests import (
    Decision,
    Refused,
    acknowledged,
    all_known,
    current_leader,
    decisions,
    endpoints,
    has_failed,
    place_of,
    refusal,
    refused,
    settle,
)
from sharecons.testing.broker.share.sessions import (
    CLOSE,
    OPEN,
    Session,
    SessionError,
    TopicPartition,
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


Results = dict[TopicPartition, _Result]


async def handle(request: Request, context: Context) -> Response:
    code = refusal(request, context) or _refused_renewal(request)
    if code is not None:
        return refused(code)
    try:
        session = _session(request, context)
    except SessionError as error:
        if error.code is ErrorCode.share_session_limit_reached:
            await context.wait((), context.now + request.max_wait.total_seconds())
        return refused(error.code)
    entries = acknowledged(request)
    fetched = () if request.share_session_epoch == CLOSE else session.partitions
    if not all_known(context.cluster, (*entries, *fetched)):
        return refused(ErrorCode.unknown_server_error)
    decided = decisions(request, context, entries) if _any(entries) else {}
    results = await _fetch(request, context, session, decided)
    if has_failed(decided):
        return refused(ErrorCode.unknown_server_error)
    if _is_outrun(request, session):
        return refused(ErrorCode.invalid_share_session_epoch)
    results = _answered(request, session, results)
    for where, decision in decided.items():
        result = results.setdefault(where, _Result())
        if isinstance(decision, Refused):
            result.acknowledge_code = decision.code
    if request.share_session_epoch == CLOSE:
        context.cluster.share_sessions.close(session)
    return _response(request, context, results)


def _refused_renewal(request: Request) -> ErrorCode | None:
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
    named = list(acknowledged(request))
    if request.share_session_epoch == CLOSE:
        return sessions.find(*who)
    if request.share_session_epoch == OPEN:
        if _any(acknowledged(request)):
            raise SessionError(ErrorCode.invalid_request)
        return sessions.open(*who, context.connection, named)
    session = sessions.enter(*who, request.share_session_epoch)
    session.update(named, _forgotten(request))
    return session


def _forgotten(request: Request) -> list[TopicPartition]:
    return [
        TopicPartition(topic.topic_id, int(partition))
        for topic in request.forgotten_topics_data
        for partition in topic.partitions
    ]


def _any(entries: dict[TopicPartition, list[AcknowledgementBatch]]) -> bool:
    return any(entries.values())


async def _fetch(
    request: Request,
    context: Context,
    session: Session,
    decided: dict[TopicPartition, Decision],
) -> Results:
    """Acquire records, and apply the acknowledgements meanwhile."""
    results: Results = {}
    sources: list[Source] = []
    is_fetch = not field_or(request, "is_renew_ack", False)
    if is_fetch and request.share_session_epoch != CLOSE:
        sources = _sources(request, context, session, results)
    if not (sources and request.max_records and request.max_bytes):
        settle(context, request.group_id, decided)
        return results
    until = context.now + request.max_wait.total_seconds()
    found = _look(request, context, sources, is_last=False)
    look_again = settle(context, request.group_id, decided)
    while found is None:
        if not look_again:
            await _wait(request, context, sources, until)
        look_again = False
        found = _look(request, context, sources, is_last=context.now >= until)
    for where, part in found.items():
        results[where] = _Result(part)
    return results


def _sources(
    request: Request, context: Context, session: Session, results: Results
) -> list[Source]:
    """Return the partitions to fetch from; store the errors of others."""
    partitions = context.cluster.share_partitions
    sources = []
    for where in session.in_turn(request.share_session_epoch):
        place, code = place_of(context.cluster, where)
        if place is not None and place.leader != context.node_id:
            place, code = None, ErrorCode.not_leader_or_follower
        partition = None
        if place is not None:
            key = Key(request.group_id, *where)
            partition = partitions.lead(key, place, int(time.time() * 1000))
            # The coordinator gets the state when a member subscribes.
            code = ErrorCode.unknown_server_error
        if place is None or partition is None:
            results[where] = _Result(code=code)
            continue
        sources.append(Source(where, partition, place.log))
    return sources


def _look(
    request: Request, context: Context, sources: list[Source], *, is_last: bool
) -> dict[TopicPartition, Fetched] | None:
    """Acquire from all partitions, if there are enough bytes or time is over."""
    abort_expired(context.cluster, context.now, int(time.time() * 1000))
    partitions = context.cluster.share_partitions
    settings = partitions.settings(request.group_id)
    limits = _limits(request, context)
    able = []
    for source in sources:
        key = Key(request.group_id, *source.where)
        if partitions.led(key, context.node_id) is not source.partition:
            continue
        if source.partition.advance(settings, context.now):
            partitions.changed(key).notify()
        partitions.bury(key)
        if source.partition.may_acquire(settings):
            able.append(source)
    wanted = _wanted(request)
    return looked(able, limits, wanted, settings, context.now, is_last=is_last)


async def _wait(
    request: Request, context: Context, sources: list[Source], until: float
) -> None:
    partitions = context.cluster.share_partitions
    signals = [source.log.grown for source in sources]
    until = min(until, context.cluster.transactions.next_deadline)
    for source in sources:
        signals.append(partitions.changed(Key(request.group_id, *source.where)))
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


def _wanted(request: Request) -> Wanted:
    return Wanted(
        member=request.member_id,
        max_records=request.max_records,
        batch_size=request.batch_size,
        record_limit=field_or(request, "share_acquire_mode", 0) == RECORD_LIMIT,
    )


def _is_outrun(request: Request, session: Session) -> bool:
    """Return whether a later request of the session arrived before this was done."""
    epoch = request.share_session_epoch
    return epoch not in (OPEN, CLOSE) and session.epoch != _next(epoch)


def _next(epoch: int) -> int:
    return 1 if epoch == 2**31 - 1 else epoch + 1


def _answered(request: Request, session: Session, results: Results) -> Results:
    """Leave out the partitions that have not changed for the client."""
    if request.share_session_epoch in (OPEN, CLOSE):
        return results
    return {
        where: result
        for where, result in results.items()
        if session.must_answer(
            where,
            has_error=result.code is not ErrorCode.none,
            has_records=bool(result.fetched.acquired),
        )
    }


def _response(request: Request, context: Context, results: Results) -> Response:
    cluster = context.cluster
    topics: dict[object, list[Response]] = {}
    for where, result in results.items():
        topics.setdefault(where.topic_id, []).append(_partition(context, where, result))
    leaders = [each["current_leader"] for parts in topics.values() for each in parts]
    settings = cluster.share_partitions.settings(request.group_id)
    return {
        "acquisition_lock_timeout": settings.lock_duration,
        "responses": [
            {"topic_id": topic_id, "partitions": partitions}
            for topic_id, partitions in topics.items()
        ],
        "node_endpoints": endpoints(context, leaders),
    }


def _partition(context: Context, where: TopicPartition, result: _Result) -> Response:
    return {
        "partition_index": where.partition,
        "error_code": result.code,
        "acknowledge_error_code": result.acknowledge_code.value,
        "current_leader": current_leader(context.cluster, where, result.code),
        "records": result.fetched.records,
        "acquired_records": [part._asdict() for part in result.fetched.acquired],
    }
