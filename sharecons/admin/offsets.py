"""Start offsets and lag of share groups."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from sharecons._record import TopicPartition
from sharecons.admin.client_executor import ClientExecutor
from sharecons.admin.groups import describe_share_groups
from sharecons.admin.missing import missing_partitions
from sharecons.net.log_offsets import list_offsets
from sharecons.protocol.admin.broker_errors import is_code
from sharecons.protocol.admin.fanout import merge_replies, results_of
from sharecons.protocol.admin.models import GroupOffset, LogOffset, OffsetSpec
from sharecons.protocol.admin.requests import (
    UNKNOWN_LAG,
    ListShareGroupOffsets,
    Reply,
)
from sharecons.protocol.admin.results import Result, Results
from sharecons.protocol.codes import Code

__all__ = ["list_offsets_of", "list_share_group_offsets"]

V = TypeVar("V")

GroupOffsets = Results[TopicPartition, GroupOffset]

ACTION: Final = "list the offset of"


async def list_share_group_offsets(
    executor: ClientExecutor,
    group_ids: Iterable[str],
    partitions: tuple[TopicPartition, ...] | None,
) -> Results[str, GroupOffsets]:
    missing = await missing_partitions(executor, partitions or (), ACTION)
    existing = partitions and tuple(key for key in partitions if key not in missing)

    listed: Results[str, GroupOffsets] = await list_offsets_of(
        executor, group_ids, existing, ListShareGroupOffsets, "list"
    )
    with_lag = await _add_lag(executor, await _mark_unknown_groups(executor, listed))
    if partitions is None:
        return with_lag
    wanted = partitions
    return with_lag.map(
        lambda found: Results(
            {
                key: Result(error=missing[key]) if key in missing else found[key]
                for key in wanted
            }
        )
    )


async def list_offsets_of(
    executor: ClientExecutor,
    group_ids: Iterable[str],
    partitions: tuple[TopicPartition, ...] | None,
    request: Callable[..., object],
    verb: str,
) -> Results[str, Results[TopicPartition, V]]:
    """List the offsets of groups; `request` is the message for their type."""

    async def send(
        node_id: int, keys: tuple[str, ...]
    ) -> Mapping[str, Reply[Mapping[TopicPartition, Reply[V]]]]:
        response: Mapping[str, Reply[Mapping[TopicPartition, Reply[V]]]]
        response = await executor.send(
            node_id, request(groups=dict.fromkeys(keys, partitions))
        )
        return {
            key: reply._replace(value=None)
            if reply.code != Code.NONE or reply.value is None
            else merge_replies(reply.value)
            for key, reply in response.items()
        }

    def results(
        group_id: str, one: Result[Mapping[TopicPartition, Reply[V]]]
    ) -> Result[Results[TopicPartition, V]]:
        if one.error is not None:
            return Result(error=one.error)
        return Result(
            results_of(
                one.value,
                f"{verb} the offset of",
                lambda key: f"{key.topic}-{key.partition} in group {group_id!r}",
            )
        )

    listed = await executor.of_groups(group_ids, f"{verb} the offsets of", send)
    return Results({key: results(key, one) for key, one in listed.items()})


async def _mark_unknown_groups(
    executor: ClientExecutor, listed: Mapping[str, Result[GroupOffsets]]
) -> dict[str, Result[GroupOffsets]]:
    """Set the errors of unknown groups; brokers return neither offsets nor errors."""
    empty = [
        key
        for key, one in listed.items()
        if one.ok and all(_has_no_offset(offset) for offset in one.value.values())
    ]
    if not empty:
        return dict(listed)
    described = await describe_share_groups(executor, empty)
    return {
        key: Result(error=described[key].error)
        if key in described and is_code(described[key].error, Code.GROUP_ID_NOT_FOUND)
        else one
        for key, one in listed.items()
    }


def _has_no_offset(offset: Result[GroupOffset]) -> bool:
    return offset.ok and offset.value.start_offset is None


async def _add_lag(
    executor: ClientExecutor, listed: Mapping[str, Result[GroupOffsets]]
) -> Results[str, GroupOffsets]:
    """Compute lags that the broker does not return (Kafka 4.1).

    They are the distance from start offset to log end, including what is settled.
    """
    unknown = {
        partition
        for one in listed.values()
        if one.ok
        for partition, offset in one.value.found.items()
        if offset.lag == UNKNOWN_LAG
    }
    if not unknown:
        return Results(listed)
    specs = dict.fromkeys(sorted(unknown), OffsetSpec.LATEST)
    ends = (await list_offsets(executor, specs, False)).found

    def compute(offsets: GroupOffsets) -> GroupOffsets:
        return Results(
            {
                partition: Result(_compute_lag(offset.value, ends.get(partition)))
                if offset.ok
                else offset
                for partition, offset in offsets.items()
            }
        )

    return Results(listed).map(compute)


def _compute_lag(offset: GroupOffset, end: LogOffset | None) -> GroupOffset:
    if offset.lag != UNKNOWN_LAG:
        return offset
    if end is None or end.offset is None or offset.start_offset is None:
        return replace(offset, lag=None)
    return replace(offset, lag=max(0, end.offset - offset.start_offset))
