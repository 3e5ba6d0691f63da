"""The state of share-partitions, from the records of their coordinators.

For principals with READ on `__share_group_state` but without CLUSTER_ACTION.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import anyio

from sharecons._record import Record, TopicPartition
from sharecons.admin.client_executor import ClientExecutor
from sharecons.admin.read_log import read_log
from sharecons.admin.state import find_share_partitions
from sharecons.admin.state_replay import (
    RecordedState,
    StateReplay,
    state_partition_of,
)
from sharecons.errors import Error, RequestTimedOutError
from sharecons.net.log_offsets import list_offsets
from sharecons.protocol.admin.models import OffsetSpec
from sharecons.protocol.admin.requests import coordinator_key
from sharecons.protocol.admin.results import Result, Results
from sharecons.protocol.admin.state_records import StateKey
from sharecons.protocol.backoff import Backoff
from sharecons.protocol.partitions import SharePartition
from sharecons.wire.share_state_records import (
    SHARE_GROUP_STATE,
    read_key,
    read_value,
)

__all__ = ["read_state_records"]

MAX_BYTES: Final = 1 << 20
"""Bytes of each partition per request."""


async def read_state_records(
    executor: ClientExecutor,
    group_id: str,
    partitions: tuple[TopicPartition, ...] | None,
) -> Results[TopicPartition, RecordedState | None]:
    """Read the recorded states of share-partitions; None if there is no record.

    Reads only the partitions of the state topic that their keys map to, each from its
    start to its end at the time of the call.
    """
    found = await find_share_partitions(executor, {group_id: partitions})
    named = found[group_id]
    state_partitions = await _state_partitions(executor, group_id, named.found)
    states = StateReplay()
    failed = await _replay(executor, group_id, set(state_partitions.values()), states)

    def outcome(key: TopicPartition) -> Result[RecordedState | None]:
        if (home := state_partitions.get(key)) is None:
            return Result(error=named[key].error)
        if home in failed:
            return Result(error=failed[home])
        return Result(states.state(StateKey(group_id, named[key].value)))

    return Results({key: outcome(key) for key in named})


async def _state_partitions(
    executor: ClientExecutor,
    group_id: str,
    share_partitions: Mapping[TopicPartition, SharePartition],
) -> dict[TopicPartition, TopicPartition]:
    response = await executor.brokers.request_topics(
        (SHARE_GROUP_STATE,), executor.deadline
    )
    topic = response.topics[SHARE_GROUP_STATE].value
    count = len(topic.partitions) if topic is not None else 0
    return {
        key: TopicPartition(
            SHARE_GROUP_STATE,
            # Without the topic, reading partition 0 returns the error.
            state_partition_of(coordinator_key(group_id, each), count) if count else 0,
        )
        for key, each in share_partitions.items()
    }


async def _replay(
    executor: ClientExecutor,
    group_id: str,
    wanted: Iterable[TopicPartition],
    states: StateReplay,
) -> dict[TopicPartition, Error]:
    """Apply all records of these partitions to `states`; return the failed ones."""
    earliest = await list_offsets(
        executor, dict.fromkeys(wanted, OffsetSpec.EARLIEST), False
    )
    latest = await list_offsets(
        executor, dict.fromkeys(earliest.found, OffsetSpec.LATEST), False
    )
    failed = {**earliest.errors, **latest.errors}
    starts = earliest.found
    ends = {key: found.offset or 0 for key, found in latest.found.items()}
    positions = {
        key: starts[key].offset or 0
        for key, end in ends.items()
        if (starts[key].offset or 0) < end
    }
    backoff = Backoff()
    while positions:
        if not executor.deadline.left:
            return {**failed, **dict.fromkeys(positions, _timeout_error(executor))}
        before = dict(positions)
        slices = await read_log(executor, positions, MAX_BYTES)
        failed |= slices.errors
        for key, log_slice in slices.found.items():
            for record in log_slice.records:
                _apply(states, group_id, record)
            positions[key] = log_slice.next_offset
        if positions == before:
            await anyio.sleep(min(backoff.next_delay(), executor.deadline.left))
        positions = {
            key: at
            for key, at in positions.items()
            if key not in failed and at < ends[key]
        }
    return failed


def _apply(states: StateReplay, group_id: str, record: Record) -> None:
    if record.key is None:
        return
    read = read_key(record.key)
    if read is None or read[0].group_id != group_id:
        return
    key, kind = read
    value = None if record.value is None else read_value(kind, record.value)
    states.apply(key, value, record.timestamp)


def _timeout_error(executor: ClientExecutor) -> Error:
    return RequestTimedOutError(
        f"{SHARE_GROUP_STATE} was not read to its end within "
        f"{executor.deadline.timeout:g} s; increase the timeout"
    )
