"""Reads a dead-letter topic as a log: nothing is consumed, locked, or counted."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Final, NamedTuple

import anyio

from sharecons._record import Record, TopicPartition
from sharecons.admin import OffsetSpec, ShareGroupAdmin
from sharecons.admin.log_bounds import log_bounds
from sharecons.config.validation import check_topic
from sharecons.copies.dead_letter_headers import (
    Origin,
    needs_source,
    read_origin,
    read_redrives,
    with_first_origin,
    without_origin,
)
from sharecons.dead_letters.models import (
    DeadLetterRecord,
    LetterOffset,
    SourceStatus,
)
from sharecons.dead_letters.offset_ranges import OffsetRanges
from sharecons.dead_letters.origins import Origins
from sharecons.dead_letters.sources import Position, SourceResult, fetch_sources
from sharecons.errors import (
    BrokerError,
    ConfigurationError,
    Error,
    RequestTimedOutError,
)
from sharecons.protocol.admin.models import LogBounds
from sharecons.protocol.backoff import Backoff
from sharecons.protocol.codes import Code

__all__ = [
    "Candidate",
    "CandidateSlice",
    "RecordSlice",
    "dead_letters_of",
    "is_topic",
    "load_origins",
    "log_ranges",
    "range_of",
    "read_candidates",
    "read_records",
]

FIRST_MAX_BYTES: Final = 256 << 10
MAX_BYTES: Final = 4 << 20
MAX_TRIES: Final = 8
"""Consecutive responses without a batch after which a partition has failed."""


class RecordSlice(NamedTuple):
    """Consecutive records, where to continue, and what could not be decoded.

    `is_removed`: the log no longer has the offsets up to `next_offset`.
    """

    records: Sequence[Record]
    next_offset: int
    damaged: Sequence[str]
    is_removed: bool = False


class Candidate(NamedTuple):
    """A dead letter, and the first of the offsets without a record before it.

    `since` is its own offset if there are none, or if records before it are damaged.
    """

    letter: DeadLetterRecord
    since: int


class CandidateSlice(NamedTuple):
    """Dead letters in order, where to continue, and which cannot be read, and why."""

    candidates: Sequence[Candidate]
    next_offset: int
    errors: Sequence[str]


async def log_ranges(
    admin: ShareGroupAdmin, topic: str
) -> Mapping[TopicPartition, LogBounds]:
    """Return the offsets that a topic has now, by partition in order.

    Raises:
        BrokerError: the topic does not exist, or a log cannot be looked up.
    """
    partitions = (await admin.describe_topics(topic))[topic].value.partitions
    keys = [TopicPartition(topic, number) for number in sorted(partitions)]
    return (await log_bounds(admin, keys)).check().found


def range_of(
    logs: Mapping[TopicPartition, LogBounds], key: TopicPartition
) -> LogBounds:
    """Return the offsets of one partition, from `log_ranges`.

    Raises:
        ConfigurationError: the topic has no such partition.
    """
    if key not in logs:
        raise ConfigurationError(
            f"{key.topic} has no partition {key.partition}: its partitions are 0 to "
            f"{len(logs) - 1}"
        )
    return logs[key]


async def read_records(
    admin: ShareGroupAdmin, key: TopicPartition, start: int, end: int
) -> AsyncGenerator[RecordSlice]:
    """Yield the records from `start` to before `end`.

    Records that are removed meanwhile (by retention, or a deletion) are skipped, and a
    slice says so.

    Raises:
        BrokerError: the log cannot be read.
        RequestTimedOutError: the log returns nothing.
    """
    max_bytes, tries, backoff = FIRST_MAX_BYTES, 0, Backoff()
    while start < end:
        one = (await admin.read_log({key: start}, max_bytes=max_bytes))[key]
        if _is_out_of_range(one.error):
            start = await _next_start(admin, key, start)
            yield RecordSlice((), min(start, end), (), is_removed=True)
            continue
        found = one.value
        if found.next_offset > start:
            tries = 0
            start = found.next_offset
            records = [each for each in found.records if each.offset < end]
            yield RecordSlice(records, min(start, end), found.damaged)
        else:
            tries += 1
            if tries == MAX_TRIES:
                raise RequestTimedOutError(
                    f"{key.topic}-{key.partition}: the broker returned nothing from "
                    f"offset {start} on in {tries} responses, although the log ends "
                    f"at {end}"
                )
            await anyio.sleep(backoff.next_delay())
        max_bytes = min(MAX_BYTES, max_bytes * 4)


def _is_out_of_range(error: Error | None) -> bool:
    return isinstance(error, BrokerError) and error.code == Code.OFFSET_OUT_OF_RANGE


async def _next_start(admin: ShareGroupAdmin, key: TopicPartition, start: int) -> int:
    found = (await admin.list_offsets([key], OffsetSpec.EARLIEST))[
        key
    ].value.offset or 0
    if found <= start:
        code = Code.OFFSET_OUT_OF_RANGE
        text = f"{key.topic}-{key.partition} no longer has offset {start}"
        raise BrokerError(text, code=code, name=code.name)
    return found


async def dead_letters_of(
    admin: ShareGroupAdmin, records: Sequence[Record], *, fetch: bool
) -> list[DeadLetterRecord]:
    """Return records of a dead-letter topic as dead letters.

    Args:
        fetch: read the source records of brokers' dead letters.
    """
    origins = [read_origin(record.headers) for record in records]
    sources: Mapping[Position, SourceResult] = {}
    if fetch:
        sources = await fetch_sources(
            admin,
            (
                _position(origin)
                for record, origin in zip(records, origins, strict=True)
                if origin is not None
                and needs_source(record.headers)
                and is_topic(origin.topic)
            ),
        )
    return [
        _dead_letter(record, origin, sources)
        for record, origin in zip(records, origins, strict=True)
    ]


async def load_origins(
    admin: ShareGroupAdmin,
    logs: Mapping[TopicPartition, LogBounds],
    wanted: Mapping[TopicPartition, OffsetRanges],
) -> Origins:
    """Return the origins of dead letters that the log still has; sources are not read.

    Args:
        wanted: the offsets of the dead letters.

    Raises as `read_records`.
    """
    origins = Origins()
    for key, (start, end) in logs.items():
        offsets = wanted[key]
        slices = read_records(admin, key, start, min(end, offsets.end))
        async with aclosing(slices):
            async for records, *_ in slices:
                for record in records:
                    if record.offset in offsets:
                        letter = LetterOffset(key.partition, record.offset)
                        origins.add(read_origin(record.headers), letter)
    return origins


async def read_candidates(
    admin: ShareGroupAdmin,
    key: TopicPartition,
    log_range: LogBounds,
    is_wanted: Callable[[int], bool],
) -> AsyncGenerator[CandidateSlice]:
    """Yield the dead letters of a range, with their sources.

    Args:
        is_wanted: returns whether a dead letter with this offset is yielded.

    Raises as `read_records`.
    """
    since = log_range.start
    slices = read_records(admin, key, *log_range)
    async with aclosing(slices):
        async for records, next_offset, damaged, is_removed in slices:
            if is_removed:
                lost = next(filter(is_wanted, range(since, next_offset)), next_offset)
                since = next_offset
                if lost < next_offset:
                    error = _removed(key, lost, next_offset)
                    yield CandidateSlice((), next_offset, (error,))
                continue
            wanted: list[Record] = []
            starts: list[int] = []
            for record in records:
                if is_wanted(record.offset):
                    wanted.append(record)
                    starts.append(record.offset if damaged else since)
                since = record.offset + 1
            if damaged:
                since = next_offset
            letters = await dead_letters_of(admin, wanted, fetch=True)
            found = list(map(Candidate, letters, starts))
            yield CandidateSlice(found, next_offset, damaged)


def _removed(key: TopicPartition, start: int, end: int) -> str:
    return (
        f"{key.topic}-{key.partition}: offsets {start} to {end - 1} were removed "
        "before they were redriven (by retention or a deletion): their dead letters "
        "are lost; raise the topic's retention.ms"
    )


def is_topic(name: str) -> bool:
    """Return whether a name, which any producer can have set, can be a topic's."""
    try:
        check_topic("topic", name)
    except ConfigurationError:
        return False
    return True


def _position(origin: Origin) -> Position:
    return TopicPartition(origin.topic, origin.partition), origin.offset


def _dead_letter(
    record: Record, origin: Origin | None, sources: Mapping[Position, SourceResult]
) -> DeadLetterRecord:
    status, reason, error = SourceStatus.COPIED, None, None
    content = record
    redrives = 0
    if origin is None:
        status = SourceStatus.NO_ORIGIN
    elif not needs_source(record.headers):
        redrives = origin.redrives
    elif not is_topic(origin.topic):
        status, reason = SourceStatus.GONE, "its topic cannot exist"
    else:
        has_copy = record.key is not None or record.value is not None
        match sources.get(_position(origin)):
            case Record() as source if not has_copy or _is_same(record, source):
                content, status = source, SourceStatus.FETCHED
                redrives = read_redrives(source.headers)
                origin = with_first_origin(origin, source.headers)
            case Record():
                status = SourceStatus.COPIED_WITHOUT_HEADERS
                reason = "the source has another record at its offset"
            case str() as why:
                reason = why
                status = (
                    SourceStatus.COPIED_WITHOUT_HEADERS
                    if has_copy
                    else SourceStatus.GONE
                )
            case Error() as failure:
                status, error = SourceStatus.UNREADABLE, failure
            case None:
                status = SourceStatus.NOT_FETCHED
    return DeadLetterRecord(
        record=record,
        origin=origin,
        key=content.key,
        value=content.value,
        headers=without_origin(content.headers),
        redrives=redrives,
        status=status,
        reason=reason,
        error=error,
    )


def _is_same(copy: Record, source: Record) -> bool:
    return (copy.key, copy.value) == (source.key, source.value)
