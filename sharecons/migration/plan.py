"""Plans: what would become of each partition."""

from collections.abc import Iterable, Mapping
from typing import Final

from sharecons._record import TopicPartition
from sharecons.admin import Outcome, Results, ShareGroupAdmin
from sharecons.migration.groups import GroupPair, describe_pair
from sharecons.migration.positions import (
    Positions,
    committed_positions,
    log_bounds,
    share_positions,
)
from sharecons.protocol.migration.models import (
    Direction,
    GroupPosition,
    LogBounds,
    Migration,
    MissingPolicy,
    Move,
)
from sharecons.protocol.migration.offset_migration import plan_move

__all__ = ["plan", "target_positions"]

OFFSET_RESET: Final = "share.auto.offset.reset"

POSITIONS: Final = {
    Direction.TO_SHARE_GROUP: (committed_positions, share_positions),
    Direction.TO_CONSUMER_GROUP: (share_positions, committed_positions),
}
"""Where source and target keep their places."""


async def plan(
    admin: ShareGroupAdmin,
    source: str,
    target: str,
    *,
    direction: Direction | None = None,
    topics: Iterable[str | TopicPartition] | None = None,
    unplaced: MissingPolicy = MissingPolicy.LEAVE,
) -> Migration:
    """Plan to move a group's place to a group of the other kind; changes nothing.

    The places of the source stay what they are. It must be without members to be
    moved (`Migration.obstacles`): while it works, its place is not one. So must the
    target, which is made if it is not there. KIP-932, "AlterShareGroupOffsets".

    Args:
        source: the group to move from, which says the direction.
        target: the group to move to.
        direction: insist on one.
        topics: of these only, or of single partitions of them. None is every topic in
            which the source has a place, with all of its partitions.
        unplaced: what becomes of partitions in which the source has no place.

    Raises:
        ConfigurationError: source and target are one group.
        BrokerError: the source is not there, one of the groups is of the wrong kind,
            or a topic of `topics` is not there.
        AuthorizationError: a group may not be looked at.
        ConnectionFailedError: no broker was reached.
    """
    pair = await describe_pair(admin, source, target, direction)
    sources = await _source_positions(admin, pair, topics)
    moves = await _moves(admin, pair, target, sources, unplaced)
    return Migration(
        source=source,
        target=target,
        direction=pair.direction,
        moves=moves.found,
        errors=moves.errors,
        obstacles=pair.obstacles,
        unplaced=unplaced,
    )


# Where the source stands.


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
    """Make partitions of topics' names."""
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
    """Add the partitions of the same topics in which the group has no place."""
    names = dict.fromkeys(key.topic for key in known)
    if not names:
        return known
    described = await admin.describe_topics(*names)
    more = {
        TopicPartition(name, number): Outcome[GroupPosition | None](None)
        for name, topic in described.found.items()
        for number in topic.partitions
    }
    gone = {
        key: Outcome[GroupPosition | None](error=described[key.topic].error)
        for key in known
        if described[key.topic].error is not None
    }
    every = {**more, **known, **gone}
    return Results({key: every[key] for key in sorted(every)})


# What becomes of it.


async def _moves(
    admin: ShareGroupAdmin,
    pair: GroupPair,
    target: str,
    sources: Positions,
    unplaced: MissingPolicy,
) -> Results[TopicPartition, Move]:
    found = sources.found
    targets = await target_positions(admin, pair, found)
    logs = await log_bounds(admin, found)
    reset = await _offset_reset(admin, pair, target, found)

    def decided(key: TopicPartition) -> Outcome[Move]:
        error = sources[key].error or targets[key].error or logs[key].error
        if error is not None:
            return Outcome(error=error)
        log: LogBounds = logs[key].value
        return Outcome(
            plan_move(
                found[key],
                targets[key].value,
                log,
                pair.direction,
                unplaced=unplaced,
                reset=reset,
            )
        )

    return Results({key: decided(key) for key in sources})


async def target_positions(
    admin: ShareGroupAdmin, pair: GroupPair, partitions: Iterable[TopicPartition]
) -> Positions:
    """Read where the target stands; one that is not there stands nowhere."""
    keys = tuple(partitions)
    if pair.target is None or not keys:
        return Results({key: Outcome(None) for key in keys})
    read_positions = POSITIONS[pair.direction][1]
    return await read_positions(admin, pair.target.group_id, keys)


async def _offset_reset(
    admin: ShareGroupAdmin,
    pair: GroupPair,
    target: str,
    found: Mapping[TopicPartition, GroupPosition | None],
) -> str | None:
    """Read where a share group begins by itself; None if it is not told."""
    if pair.direction is Direction.TO_CONSUMER_GROUP or all(found.values()):
        return None
    described = (await admin.describe_configs(target))[target]
    entry = described.value.get(OFFSET_RESET) if described.ok else None
    return None if entry is None else entry.value
