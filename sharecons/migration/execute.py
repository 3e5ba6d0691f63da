"""Execution of a plan: setting the offsets of the target."""

from collections.abc import Mapping

from sharecons._record import TopicPartition
from sharecons.admin import CommittedOffset, Result, Results, ShareGroupAdmin
from sharecons.errors import Error
from sharecons.migration.models import Direction, Migration
from sharecons.migration.offset_migration import changed_since
from sharecons.migration.plan import POSITIONS, plan

__all__ = ["execute"]

Moved = Results[TopicPartition, int]


async def execute(admin: ShareGroupAdmin, planned: Migration) -> Moved:
    """Execute a plan, and return the target's new offsets.

    Reads the positions of both groups again. Partitions whose positions changed since
    the plan are rejected; those where the target is right already are left unchanged.
    If it fails, is cancelled or loses its connection, some partitions might
    be done: make a new plan and execute that.

    Raises:
        BrokerError: a group has members now (NON_EMPTY_GROUP), no longer exists, or is
            of another type. Nothing was changed.
        ConnectionFailedError: no broker was reached.
    """
    now = await plan(
        admin,
        planned.source,
        planned.target,
        direction=planned.direction,
        topics=tuple(planned.moves),
        missing=planned.missing,
    )
    for obstacle in now.obstacles:
        raise obstacle
    rejected = changed_since(planned, now)
    wanted = {key: at for key, at in planned.offsets.items() if key not in rejected}
    done = await _write_and_verify(admin, planned, wanted) if wanted else {}
    return Results(
        {
            key: Result(error=rejected[key]) if key in rejected else done[key]
            for key in planned.offsets
        }
    )


async def _write_and_verify(
    admin: ShareGroupAdmin, planned: Migration, wanted: Mapping[TopicPartition, int]
) -> Mapping[TopicPartition, Result[int]]:
    written = await _write(admin, planned, wanted)
    failed = tuple(written.errors)
    if not failed:
        return written
    # A response might have been lost: the target's offsets show what was done.
    current = await _target_offsets(admin, planned, failed)
    return {
        key: Result(wanted[key]) if current.get(key) == wanted[key] else one
        for key, one in written.items()
    }


async def _write(
    admin: ShareGroupAdmin, planned: Migration, wanted: Mapping[TopicPartition, int]
) -> Moved:
    if planned.direction is Direction.TO_SHARE_GROUP:
        return await admin.alter_share_group_offsets(planned.target, wanted)
    # Without a leader epoch: the epoch of the last record read is unknown, and a wrong
    # one would make consumers assume that the log was truncated.
    commits = {key: CommittedOffset(offset=offset) for key, offset in wanted.items()}
    written = await admin.alter_consumer_group_offsets(planned.target, commits)
    return Results(
        {key: Result(wanted[key], one.error) for key, one in written.items()}
    )


async def _target_offsets(
    admin: ShareGroupAdmin, planned: Migration, keys: tuple[TopicPartition, ...]
) -> Mapping[TopicPartition, int]:
    read_positions = POSITIONS[planned.direction][1]
    try:
        found = (await read_positions(admin, planned.target, keys)).found
    except Error:
        # Report the first error instead.
        return {}
    return {key: place.offset for key, place in found.items() if place is not None}
