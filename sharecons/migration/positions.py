"""Positions of share groups and consumer groups."""

from collections.abc import Iterable

from sharecons._record import TopicPartition
from sharecons.admin import (
    CommittedOffset,
    GroupOffset,
    OffsetSpec,
    Result,
    Results,
    ShareGroupAdmin,
    SharePartitionState,
)
from sharecons.migration.models import GroupPosition, SettledAbove
from sharecons.protocol.admin.broker_errors import is_code
from sharecons.protocol.codes import Code

__all__ = ["Positions", "committed_positions", "share_positions"]

Positions = Results[TopicPartition, GroupPosition | None]
Partitions = Iterable[TopicPartition] | None


async def committed_positions(
    admin: ShareGroupAdmin, group_id: str, partitions: Partitions
) -> Positions:
    """Read a consumer group's positions; None as `partitions` means all it committed.

    Waits for offsets in open transactions, up to the admin client's timeout.
    """
    fetched = await admin.list_consumer_group_offsets(group_id, partitions=partitions)
    return fetched[group_id].value.map(_committed)


def _committed(committed: CommittedOffset | None) -> GroupPosition | None:
    return None if committed is None else GroupPosition(offset=committed.offset)


async def share_positions(
    admin: ShareGroupAdmin, group_id: str, partitions: Partitions
) -> Positions:
    """Read a share group's positions; None as `partitions` means all it has."""
    listed = await admin.list_share_group_offsets(group_id, partitions=partitions)
    if is_code(listed[group_id].error, Code.GROUP_ID_NOT_FOUND):
        return Results({key: Result(None) for key in partitions or ()})
    offsets = listed[group_id].value
    started = [
        key for key, one in offsets.found.items() if one.start_offset is not None
    ]
    states = (await admin.read_state(group_id, started)).found
    counts = await _counts(
        admin, group_id, [key for key in started if key not in states]
    )
    return Results(
        {
            key: Result(error=one.error)
            if one.error
            else Result(_share_position(one.value, states.get(key), counts.get(key)))
            for key, one in offsets.items()
        }
    )


def _share_position(
    listed: GroupOffset, state: SharePartitionState | None, count: int | None
) -> GroupPosition | None:
    if state is not None and state.start_offset is not None:
        # Use offset and batches of the same response, as they belong together.
        known = all(batch.state.is_known for batch in state.batches)
        above = SettledAbove(batches=state.batches if known else None)
        return GroupPosition(offset=state.start_offset, above=above)
    if listed.start_offset is None:
        return None
    return GroupPosition(
        offset=listed.start_offset, above=SettledAbove(batches=None, count=count)
    )


async def _counts(
    admin: ShareGroupAdmin, group_id: str, partitions: list[TopicPartition]
) -> dict[TopicPartition, int]:
    """Compute the number of offsets settled above the start offset from the lag.

    It is the distance to the log's end minus the lag, which excludes them (KIP-1226).
    Partitions whose log grows meanwhile are left out.
    """
    if not partitions:
        return {}
    before = await _ends(admin, partitions)
    listed = await admin.list_share_group_offsets(group_id, partitions=partitions)
    after = await _ends(admin, partitions)
    if listed[group_id].error is not None:
        return {}
    return {
        key: before[key] - one.start_offset - one.lag
        for key, one in listed[group_id].value.found.items()
        if one.start_offset is not None and one.lag is not None
        if key in before and before[key] == after.get(key)
    }


async def _ends(
    admin: ShareGroupAdmin, partitions: list[TopicPartition]
) -> dict[TopicPartition, int]:
    found = (await admin.list_offsets(partitions, OffsetSpec.LATEST)).found
    return {key: one.offset for key, one in found.items() if one.offset is not None}
