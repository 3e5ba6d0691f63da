"""Reading records of a topic without consuming them."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from heapq import merge
from typing import Final

import anyio

from sharecons._record import Record, TopicPartition
from sharecons.admin import OffsetSpec, ShareGroupAdmin
from sharecons.admin.log_bounds import log_bounds
from sharecons.errors import (
    BrokerError,
    ConfigurationError,
    Error,
    RequestTimedOutError,
)
from sharecons.group_state.gather import gather
from sharecons.protocol.backoff import Backoff
from sharecons.protocol.codes import Code

__all__ = ["Peeked", "StartOffset", "peek"]

FIRST_MAX_BYTES: Final = 64 << 10
MAX_BYTES: Final = 4 << 20
"""Limits per partition and request. They grow, as most calls want few records."""

MAX_TRIES: Final = 8
"""Consecutive responses without a batch after which a partition has failed."""

StartOffset = Callable[[int, int], int]
"""Returns the start offset for a log, from its first offset and its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peeked:
    """Records by timestamp, and the errors of partitions that could not be read."""

    records: tuple[Record, ...]
    errors: Mapping[TopicPartition, Error]
    damaged: tuple[str, ...] = ()


@dataclass(slots=True)
class _Reading:
    """The progress in one partition."""

    at: int
    end: int
    records: list[Record]
    tries: int = 0  # since the last progress


async def peek(
    admin: ShareGroupAdmin,
    topic: str,
    *,
    start: int | OffsetSpec = OffsetSpec.EARLIEST,
    last: int | None = None,
    group_id: str | None = None,
    partitions: Collection[int] | None = None,
    max_records: int = 10,
) -> Peeked:
    """Read records without consuming them: no lock is taken, no delivery counted.

    Records that are written meanwhile are not read.

    Args:
        start: an offset, or a spec to look up; not used with `last` or `group_id`.
        last: start this many offsets before each partition's end.
        group_id: start at this share group's start offsets.
        partitions: None means all.
        max_records: of all partitions together; the earliest, or with `last` the
            latest.

    Raises:
        BrokerError: the topic or group does not exist.
        Others as the methods of `ShareGroupAdmin`.
    """
    known = (await admin.describe_topics(topic))[topic].value.partitions
    keys = [TopicPartition(topic, n) for n in sorted(partitions or known)]
    read, start_offsets = await gather(
        log_bounds(admin, keys), _start_offsets(admin, keys, start, last, group_id)
    )
    logs = read.value
    errors: dict[TopicPartition, Error] = {}
    readings: dict[TopicPartition, _Reading] = {}
    for key in keys:
        try:
            low, high = logs[key].value
            at = _check_start(key, start_offsets.value.get(key), low, high)
            readings[key] = _Reading(at, high, [])
        except Error as error:
            errors[key] = error
    damaged = await _read(admin, readings, max_records, errors)
    merged = list(merge(*(each.records for each in readings.values()), key=_timestamp))
    return Peeked(
        records=tuple(
            merged[-max_records:] if last is not None else merged[:max_records]
        ),
        errors=errors,
        damaged=tuple(damaged),
    )


async def _start_offsets(
    admin: ShareGroupAdmin,
    keys: list[TopicPartition],
    start: int | OffsetSpec,
    last: int | None,
    group_id: str | None,
) -> dict[TopicPartition, StartOffset]:
    """Return the start of each partition; those left out start at their end."""
    if last is not None:
        return dict.fromkeys(keys, lambda low, high: max(low, high - last))
    if group_id is not None:
        listed = (await admin.list_share_group_offsets(group_id))[group_id].value.found
        if not any(key in listed for key in keys):
            raise ConfigurationError(
                f"group {group_id!r} does not read topic {keys[0].topic!r}"
            )
        stands = {key: each.start_offset for key, each in listed.items()}
        return {
            # Retention can remove records without the group's knowledge.
            key: _at_least(offset)
            for key, offset in stands.items()
            if offset is not None
        }
    if isinstance(start, int):
        return dict.fromkeys(keys, lambda low, high: start)
    found = (await admin.list_offsets(keys, start)).found
    return {
        key: _at_least(each.offset)
        for key, each in found.items()
        if each.offset is not None
    }


def _at_least(offset: int) -> StartOffset:
    return lambda low, high: max(low, offset)


def _check_start(
    key: TopicPartition, start: StartOffset | None, low: int, high: int
) -> int:
    at = high if start is None else start(low, high)
    if low <= at <= high:
        return at
    code = Code.OFFSET_OUT_OF_RANGE
    has = f"has offsets {low} to {high - 1}" if low < high else "is empty"
    text = f"{key.topic}-{key.partition} {has}, not {at}"
    raise BrokerError(text, code=code, name=code.name)


async def _read(
    admin: ShareGroupAdmin,
    readings: dict[TopicPartition, _Reading],
    max_records: int,
    errors: dict[TopicPartition, Error],
) -> list[str]:
    damaged: list[str] = []
    max_bytes = FIRST_MAX_BYTES
    backoff = Backoff()
    while offsets := {
        key: each.at
        for key, each in readings.items()
        if key not in errors and each.at < each.end and len(each.records) < max_records
    }:
        pieces = await admin.read_log(offsets, max_bytes=max_bytes)
        errors |= pieces.errors
        for key, piece in pieces.found.items():
            reading = readings[key]
            reading.tries = 0 if piece.next_offset > reading.at else reading.tries + 1
            if reading.tries >= MAX_TRIES:
                errors[key] = RequestTimedOutError(
                    f"{key.topic}-{key.partition}: the broker returned nothing from "
                    f"offset {reading.at} on in {reading.tries} responses, although "
                    f"the log ends at {reading.end}"
                )
            reading.records += (r for r in piece.records if r.offset < reading.end)
            # After a batch that was cut off, the next request is for more bytes.
            reading.at = piece.next_offset
            damaged += piece.damaged
        max_bytes = min(MAX_BYTES, max_bytes * 4)
        if all(readings[key].tries for key in offsets):
            await anyio.sleep(backoff.next_delay())
        else:
            backoff.reset()
    return damaged


def _timestamp(record: Record) -> int:
    return record.timestamp
