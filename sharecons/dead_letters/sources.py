"""Reads the records that dead letters refer to, each by its offset.

A broker's dead letter has none of the source's headers, and by default neither key nor
value (KIP-1191). The source can be gone: deleted, compacted, or removed by retention.
Offsets of a topic that was deleted and created again are other records; that cannot be
noticed if the dead letter has neither key nor value.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import anyio

from sharecons._record import Record, TopicPartition
from sharecons.admin import LogOffset, OffsetSpec, Result, ShareGroupAdmin
from sharecons.errors import BrokerError, Error, RequestTimedOutError
from sharecons.protocol.backoff import Backoff
from sharecons.protocol.codes import Code
from sharecons.protocol.log_reader.log_slice import LogSlice

__all__ = ["Position", "SourceResult", "fetch_sources"]

FIRST_MAX_BYTES: Final = 64 << 10
MAX_BYTES: Final = 16 << 20
MAX_TRIES: Final = 8
TRIES_BEYOND_END: Final = 3
"""Responses, as a new leader might not know the end of its log at first."""

Position: TypeAlias = tuple[TopicPartition, int]
SourceResult: TypeAlias = "Record | str | Error"
"""A record; or why it is gone; or why it could not be read."""

UNKNOWN: Final = (
    Code.UNKNOWN_TOPIC_OR_PARTITION,
    Code.UNKNOWN_TOPIC_ID,
    Code.INVALID_TOPIC_EXCEPTION,
)


async def fetch_sources(
    admin: ShareGroupAdmin, wanted: Iterable[Position]
) -> Mapping[Position, SourceResult]:
    """Read records by their positions; several of a partition with few requests."""
    pending: dict[TopicPartition, list[int]] = {}
    for key, offset in sorted(set(wanted)):
        pending.setdefault(key, []).append(offset)
    found: dict[Position, SourceResult] = {}
    max_bytes, tries, backoff = FIRST_MAX_BYTES, 0, Backoff()
    while pending:
        starts = {key: offsets[0] for key, offsets in pending.items()}
        slices = await admin.read_log(starts, max_bytes=max_bytes)
        starts_of_logs = await _log_starts(admin, slices)
        before = len(found)
        for key, one in slices.items():
            found |= _sources(key, pending[key], one, starts_of_logs.get(key))
            if tries + 1 >= TRIES_BEYOND_END:
                found |= _beyond_end(key, pending[key], one, starts_of_logs.get(key))
        pending = _without(pending, found)
        max_bytes = min(MAX_BYTES, max_bytes * 4)
        tries = 0 if len(found) > before else tries + 1
        if tries == MAX_TRIES:
            return {**found, **_timed_out(pending)}
        if tries:
            await anyio.sleep(backoff.next_delay())
    return found


async def _log_starts(
    admin: ShareGroupAdmin, slices: Mapping[TopicPartition, Result[LogSlice]]
) -> Mapping[TopicPartition, LogOffset]:
    """Look up the starts of the logs that do not have the offset."""
    keys = [
        key
        for key, one in slices.items()
        if _code_of(one.error) == Code.OFFSET_OUT_OF_RANGE
    ]
    if not keys:
        return {}
    return (await admin.list_offsets(keys, OffsetSpec.EARLIEST)).found


def _sources(
    key: TopicPartition,
    offsets: Sequence[int],
    one: Result[LogSlice],
    log_start: LogOffset | None,
) -> dict[Position, SourceResult]:
    """Return the sources that a response settles."""
    if one.error is None:
        log_slice = one.value
        records = {record.offset: record for record in log_slice.records}
        return {
            (key, offset): records.get(offset, "the log has no record at its offset")
            for offset in offsets
            if offset < log_slice.next_offset
        }
    code = _code_of(one.error)
    if code in UNKNOWN:
        reason = "its topic or partition does not exist"
        return {(key, offset): reason for offset in offsets}
    if code == Code.OFFSET_OUT_OF_RANGE and log_start is not None:
        start = log_start.offset or 0
        if offsets[0] < start:
            reason = f"retention has removed it: the log starts at {start}"
            return {(key, each): reason for each in offsets if each < start}
        return {}
    return {(key, offset): one.error for offset in offsets}


def _beyond_end(
    key: TopicPartition,
    offsets: Sequence[int],
    one: Result[LogSlice],
    log_start: LogOffset | None,
) -> dict[Position, SourceResult]:
    """Return the sources whose offsets the log does not have yet."""
    reason = "the log ends before its offset"
    if one.error is None:
        end = one.value.end_offset
        return {(key, offset): reason for offset in offsets if offset >= end}
    if _code_of(one.error) != Code.OFFSET_OUT_OF_RANGE or log_start is None:
        return {}
    return {(key, offsets[0]): reason} if offsets[0] >= (log_start.offset or 0) else {}


def _without(
    pending: Mapping[TopicPartition, Sequence[int]],
    found: Mapping[Position, SourceResult],
) -> dict[TopicPartition, list[int]]:
    left = {
        key: [offset for offset in offsets if (key, offset) not in found]
        for key, offsets in pending.items()
    }
    return {key: offsets for key, offsets in left.items() if offsets}


def _timed_out(
    pending: Mapping[TopicPartition, Sequence[int]],
) -> dict[Position, SourceResult]:
    return {
        (key, offset): RequestTimedOutError(
            f"{key.topic}-{key.partition}: the broker returned nothing from offset "
            f"{offsets[0]} on in {MAX_TRIES} responses"
        )
        for key, offsets in pending.items()
        for offset in offsets
    }


def _code_of(error: Error | None) -> int | None:
    return error.code if isinstance(error, BrokerError) else None
