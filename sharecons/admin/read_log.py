"""Reading records by offset: nothing is consumed, locked, or counted as a delivery."""

from collections.abc import Mapping, Sequence
from typing import Final

from sharecons._record import DETACHED, Record, TopicPartition
from sharecons.admin.client_executor import ClientExecutor
from sharecons.protocol.admin.fanout import results_of
from sharecons.protocol.admin.requests import Reply
from sharecons.protocol.admin.results import Result, Results
from sharecons.protocol.codes import Code
from sharecons.protocol.log_reader.log_slice import LogSlice
from sharecons.protocol.log_reader.messages import (
    Fetch,
    Fetched,
    FetchedPartition,
    FetchPosition,
)
from sharecons.protocol.partitions import SharePartition
from sharecons.records.batch import decode
from sharecons.records.batch_header import LAST_OFFSET
from sharecons.records.transactions import aborted_ranges

__all__ = ["read_log"]

ACTION: Final = "read"
ANY_EPOCH: Final = -1
MAX_BYTES: Final = 8 << 20
"""Bytes of one response, for all its partitions together."""


async def read_log(
    executor: ClientExecutor,
    offsets: Mapping[TopicPartition, int],
    max_bytes: int,
    read_committed: bool = False,
) -> Results[TopicPartition, LogSlice]:
    """Read once from each offset, from all leaders concurrently."""
    named = await _share_partitions(executor, offsets)
    ids = named.found

    async def send(
        node_id: int, keys: tuple[TopicPartition, ...]
    ) -> Mapping[TopicPartition, Reply[LogSlice]]:
        request = Fetch(
            max_wait=0.0,
            min_bytes=0,
            max_bytes=MAX_BYTES,
            committed=read_committed,
            partitions={
                ids[key]: FetchPosition(ANY_EPOCH, offsets[key], max_bytes)
                for key in keys
            },
        )
        response: Fetched = await executor.send(node_id, request)
        parts = {part.share_partition: part for part in response.partitions}
        if response.error != Code.NONE:
            return {key: Reply(response.error, None, None) for key in keys}
        return {
            key: _reply(key, offsets[key], parts[ids[key]])
            for key in keys
            if ids[key] in parts
        }

    read = await executor.of_partitions(ids, ACTION, send)
    missing: dict[TopicPartition, Result[LogSlice]] = {
        key: Result(error=error) for key, error in named.errors.items()
    }
    return Results({key: missing.get(key) or read[key] for key in offsets})


async def _share_partitions(
    executor: ClientExecutor, offsets: Mapping[TopicPartition, int]
) -> Results[TopicPartition, SharePartition]:
    names = {key.topic for key in offsets}
    response = await executor.brokers.request_topics(names, executor.deadline)
    replies: dict[TopicPartition, Reply[SharePartition]] = {}
    for key in offsets:
        topic = response.topics[key.topic]
        found = None
        if topic.value is not None:
            found = SharePartition(topic.value.topic_id, key.partition)
        replies[key] = Reply(topic.code, topic.message, found)
    return results_of(replies, ACTION, lambda key: f"{key.topic}-{key.partition}")


def _reply(key: TopicPartition, offset: int, part: FetchedPartition) -> Reply[LogSlice]:
    if part.error != Code.NONE:
        return Reply(part.error, None, None)
    decoded = decode(part.records, [(offset, LAST_OFFSET, 0)], *key, DETACHED)
    next_offset = decoded.unseen[0][0] if decoded.unseen else offset
    log_slice = LogSlice(
        records=_committed(decoded.records, part),
        next_offset=next_offset,
        end_offset=part.high_watermark,
        log_start_offset=part.log_start_offset,
        damaged=tuple(
            f"{key.topic}-{key.partition}, offsets {each.first_offset} to "
            f"{each.last_offset}: {each.reason}"
            for each in decoded.undecodable
        ),
    )
    return Reply(Code.NONE, None, log_slice)


def _committed(records: Sequence[Record], part: FetchedPartition) -> tuple[Record, ...]:
    """Return the records that belong to no aborted transaction of the response."""
    if not part.aborted:
        return tuple(records)
    aborted = iter([*aborted_ranges(part.records, part.aborted), (LAST_OFFSET,) * 2])
    first, last = next(aborted)
    kept: list[Record] = []
    for record in records:
        while last < record.offset:
            first, last = next(aborted)
        if record.offset < first:
            kept.append(record)
    return tuple(kept)
