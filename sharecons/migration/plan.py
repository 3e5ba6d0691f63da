"""Migration plans: the new position of each partition."""

from collections.abc import Iterable, Mapping
from typing import Final

from sharecons._record import TopicPartition
from sharecons.admin import Result, Results, ShareGroupAdmin
from sharecons.admin.log_bounds import log_bounds
from sharecons.migration.groups import GroupPair, describe_pair
from sharecons.migration.models import (
    Direction,
    GroupPosition,
    Migration,
    MissingPolicy,
    Move,
)
from sharecons.migration.offset_migration import plan_move
from sharecons.migration.positions import (
    Positions,
    committed_positions,
    share_positions,
)
from sharecons.protocol.admin.models import LogBounds

__all__ = ["plan", "target_positions"]

OFFSET_RESET: Final = "share.auto.offset.reset"

POSITIONS: Final = {
    Direction.TO_SHARE_GROUP: (committed_positions, share_positions),
    Direction.TO_CONSUMER_GROUP: (share_positions, committed_positions),
}
"""Functions that read the positions of source and target."""


async def plan(
    admin: ShareGroupAdmin,
    source: str,
    target: str,
    *,
    direction: Direction | None = None,
    topics: Iterable[str | TopicPartition] | None = None,
    missing: MissingPolicy = MissingPolicy.LEAVE,
) -> Migration:
    """Plan to move a group's position to a group of the other type; changes nothing.

    The source keeps its offsets. To execute the plan, both groups must be without
    members (`Migration.obstacles`), since offsets change while consumers run. A target
    that does not exist is created (KIP-932, "AlterShareGroupOffsets").

    Args:
        source: the group to move from; its type determines the direction.
        target: the group to move to.
        direction: raise an error if the direction is another one.
        topics: these topics or single partitions only. None means all topics in which
            the source has a position, with all of their partitions.
        missing: policy for partitions in which the source has no position.

    Raises:
        ConfigurationError: source and target are the same group.
        BrokerError: the source or a topic of `topics` does not exist, or a group is of
            the wrong type.
        AuthorizationError: describing a group is not allowed.
        ConnectionFailedError: no broker was reached.
    """
    pair = await describe_pair(admin, source, target, direction)
    sources = await _source_positions(admin, pair, topics)
    moves = await _moves(admin, pair, target, sources, missing)
    return Migration(
        source=source,
        target=target,
        direction=pair.direction,
        moves=moves.found,
        errors=moves.errors,
        obstacles=pair.obstacles,
        missing=missing,
    )


# Positions of the source.


async def _source_positions(
    admin: ShareGroupAdmin,
    pair: GroupPair,
    topics: Iterable[str | TopicPartition] | None,
) -> Positions:
    read_positions = POSITIONS[pair.direction][0]
    if topics is not None:
        wanted = await _partitions(admin, topics)
        return await read_positions(admin, pair.source.group_id, wanted)
    known = await read_positions(admin, pair.source.group_id, None)
    return await _with_other_partitions(admin, known)


async def _partitions(
    admin: ShareGroupAdmin, topics: Iterable[str | TopicPartition]
) -> tuple[TopicPartition, ...]:
    """Return all partitions of topics that are given by name."""
    wanted = tuple(topics)
    names = [each for each in wanted if isinstance(each, str)]
    described = (await admin.describe_topics(*names)).check() if names else Results({})
    partitions: dict[TopicPartition, None] = {}
    for each in wanted:
        if isinstance(each, TopicPartition):
            partitions[each] = None
        else:
            numbers = sorted(described[each].value.partitions)
            partitions |= dict.fromkeys(TopicPartition(each, one) for one in numbers)
    return tuple(partitions)


async def _with_other_partitions(admin: ShareGroupAdmin, known: Positions) -> Positions:
    """Add the partitions of the same topics in which the group has no position."""
    names = dict.fromkeys(key.topic for key in known)
    if not names:
        return known
    described = await admin.describe_topics(*names)
    more = {
        TopicPartition(name, number): Result[GroupPosition | None](None)
        for name, topic in described.found.items()
        for number in topic.partitions
    }
    gone = {
        key: Result[GroupPosition | None](error=described[key.topic].error)
        for key in known
        if described[key.topic].error is not None
    }
    every = {**more, **known, **gone}
    return Results({key: every[key] for key in sorted(every)})


# Plans for each partition.


async def _moves(
    admin: ShareGroupAdmin,
    pair: GroupPair,
    target: str,
    sources: Positions,
    missing: MissingPolicy,
) -> Results[TopicPartition, Move]:
    found = sources.found
    targets = await target_positions(admin, pair, found)
    logs = await log_bounds(admin, found)
    reset = await _offset_reset(admin, pair, target, found)

    def decided(key: TopicPartition) -> Result[Move]:
        error = sources[key].error or targets[key].error or logs[key].error
        if error is not None:
            return Result(error=error)
        log: LogBounds = logs[key].value
        return Result(
            plan_move(
                found[key],
                targets[key].value,
                log,
                pair.direction,
                missing=missing,
                reset=reset,
            )
        )

    return Results({key: decided(key) for key in sources})


async def target_positions(
    admin: ShareGroupAdmin, pair: GroupPair, partitions: Iterable[TopicPartition]
) -> Positions:
    """Read the positions of the target; None for all if it does not exist."""
    keys = tuple(partitions)
    if pair.target is None or not keys:
        return Results({key: Result(None) for key in keys})
    read_positions = POSITIONS[pair.direction][1]
    return await read_positions(admin, pair.target.group_id, keys)


async def _offset_reset(
    admin: ShareGroupAdmin,
    pair: GroupPair,
    target: str,
    found: Mapping[TopicPartition, GroupPosition | None],
) -> str | None:
    """Read a share group's `share.auto.offset.reset`; None if not readable."""
    if pair.direction is Direction.TO_CONSUMER_GROUP or all(found.values()):
        return None
    described = (await admin.describe_group_configs(target))[target]
    entry = described.value.get(OFFSET_RESET) if described.ok else None
    return None if entry is None else entry.value
