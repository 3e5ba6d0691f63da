"""Carrying a plan out: the target begins where the plan says."""

from collections.abc import Mapping

from sharecons._record import TopicPartition
from sharecons.admin import CommittedOffset, Outcome, Results, ShareGroupAdmin
from sharecons.errors import Error
from sharecons.migration.plan import POSITIONS, plan
from sharecons.protocol.migration.models import Direction, Migration
from sharecons.protocol.migration.offset_migration import changed_since

__all__ = ["carry_out"]

Moved = Results[TopicPartition, int]


async def carry_out(admin: ShareGroupAdmin, planned: Migration) -> Moved:
    """Move what a plan says; gives the offsets at which the target stands then.

    It looks at both groups once more. Partitions in which one of them has moved on
    since the plan are refused; those where the target stands right already are left.
    What was not done can be done later: plan again and carry it out, whatever became
    of the first time. Cancelled, or with the connection lost, some of it may be done.

    Raises:
        BrokerError: NON_EMPTY_GROUP, one of the groups has members now; or a group is
            gone, or of another kind. Nothing was done.
        ConnectionFailedError: no broker was reached.
    """
    now = await plan(
        admin,
        planned.source,
        planned.target,
        direction=planned.direction,
        topics=tuple(planned.moves),
        unplaced=planned.unplaced,
    )
    for obstacle in now.obstacles:
        raise obstacle
    rejected = changed_since(planned, now)
    wanted = {key: at for key, at in planned.offsets.items() if key not in rejected}
    done = await _write_and_verify(admin, planned, wanted) if wanted else {}
    return Results(
        {
            key: Outcome(error=rejected[key]) if key in rejected else done[key]
            for key in planned.offsets
        }
    )


async def _write_and_verify(
    admin: ShareGroupAdmin, planned: Migration, wanted: Mapping[TopicPartition, int]
) -> Mapping[TopicPartition, Outcome[int]]:
    written = await _write(admin, planned, wanted)
    failed = tuple(written.errors)
    if not failed:
        return written
    # An answer may have been lost of what was done: the target knows.
    current = await _target_offsets(admin, planned, failed)
    return {
        key: Outcome(wanted[key]) if current.get(key) == wanted[key] else one
        for key, one in written.items()
    }


async def _write(
    admin: ShareGroupAdmin, planned: Migration, wanted: Mapping[TopicPartition, int]
) -> Moved:
    if planned.direction is Direction.TO_SHARE_GROUP:
        return await admin.alter_share_group_offsets(planned.target, wanted)
    # Without a leader epoch: that of the last record read is not known, and a wrong
    # one would make consumers believe that the log was cut.
    commits = {key: CommittedOffset(offset=offset) for key, offset in wanted.items()}
    written = await admin.alter_consumer_group_offsets(planned.target, commits)
    return Results(
        {key: Outcome(wanted[key], one.error) for key, one in written.items()}
    )


async def _target_offsets(
    admin: ShareGroupAdmin, planned: Migration, keys: tuple[TopicPartition, ...]
) -> Mapping[TopicPartition, int]:
    read_positions = POSITIONS[planned.direction][1]
    try:
        found = (await read_positions(admin, planned.target, keys)).found
    except Error:
        # Then the first error stands.
        return {}
    return {key: place.offset for key, place in found.items() if place is not None}
