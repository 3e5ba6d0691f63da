"""Conversion of a group's position for a group of the other type, and its effects.

Rule 1: the new offset, and which records are then delivered twice or never, is decided
here, one partition at a time.
Rule 2: no I/O: positions and log bounds are passed in.

Theory of operation
-------------------
A consumer group has one offset per partition, and has settled all offsets before it. A
share group has settled all offsets before its start offset, and some above it, as
records are acknowledged and archived out of order. So the position of a consumer group
converts to a share group without loss. In the other direction only the first unsettled
offset can be converted, and offsets settled above it are delivered twice. It can be
above the start offset: brokers store a new start offset with the next acknowledgement.
"""

from typing import Final

from sharecons._record import TopicPartition
from sharecons.errors import Error, OutdatedPlanError
from sharecons.migration.models import (
    Direction,
    GroupPosition,
    Migration,
    MissingPolicy,
    Move,
)
from sharecons.protocol.admin.models import DeliveryState, LogBounds, StateBatch

__all__ = ["changed_since", "count_offsets", "plan_move"]

_ARCHIVED: Final = (DeliveryState.ARCHIVED, DeliveryState.ARCHIVING)
SETTLED: Final = (DeliveryState.ACKNOWLEDGED, *_ARCHIVED)


def plan_move(
    source: GroupPosition | None,
    target: GroupPosition | None,
    log: LogBounds,
    direction: Direction,
    *,
    missing: MissingPolicy = MissingPolicy.LEAVE,
    reset: str | None = None,
) -> Move:
    """Return the plan for a partition.

    `reset` is the target's `share.auto.offset.reset`; None if unknown, or if the target
    is a consumer group.
    """
    if source is None:
        return _without_position(target, log, direction, missing, reset)
    return _with_position(source, target, log, direction)


def changed_since(planned: Migration, now: Migration) -> dict[TopicPartition, Error]:
    """Return an error for each partition whose positions changed since the plan."""
    errors: dict[TopicPartition, Error] = dict(now.errors)
    for key, at in planned.offsets.items():
        old, new = planned.moves[key], now.moves.get(key)
        if new is None:
            continue
        if new.source_offset != old.source_offset:
            errors[key] = _changed_error(
                key, "source", old.source_offset, new.source_offset
            )
        elif new.target_offset not in (old.target_offset, at):
            errors[key] = _changed_error(
                key, "target", old.target_offset, new.target_offset
            )
    return errors


def _changed_error(
    key: TopicPartition, which: str, old: int | None, new: int | None
) -> Error:
    then, now = (
        "without a position" if each is None else f"at {each}" for each in (old, new)
    )
    return OutdatedPlanError(
        f"{key.topic}-{key.partition} is not moved: the {which} was {then} when the "
        f"plan was made, and is {now} now; plan again"
    )


def count_offsets(
    batches: tuple[StateBatch, ...], state: DeliveryState, since: int
) -> int:
    """Return the number of offsets in a state that are at or above `since`."""
    return sum(
        max(0, batch.last_offset - max(batch.first_offset, since) + 1)
        for batch in batches
        if batch.state is state
    )


# Partitions in which the source has a position.


def _with_position(
    source: GroupPosition,
    target: GroupPosition | None,
    log: LogBounds,
    direction: Direction,
) -> Move:
    offset = min(max(_first_unsettled(source, log), log.start), log.end)
    acknowledged, archived, twice = _delivered_again(source, offset, log)
    missed = _missed(source, log)
    return Move(
        source_offset=source.offset,
        target_offset=None if target is None else target.offset,
        offset=offset,
        log=log,
        twice=twice,
        acknowledged=acknowledged,
        archived=archived,
        rewound=_rewound(target, offset, log),
        missed=missed,
        notes=(
            *_notes_of_log(source, log, missed),
            *_notes_of_state(source, offset, twice, archived, direction),
            *_notes_of_target(target, offset, log),
        ),
    )


def _first_unsettled(source: GroupPosition, log: LogBounds) -> int:
    if _is_all_settled(source, log):
        return log.end
    offset = source.offset
    batches = source.above.batches or ()
    for batch in sorted(batches, key=lambda each: each.first_offset):
        if batch.first_offset > offset or batch.state not in SETTLED:
            break
        offset = max(offset, batch.last_offset + 1)
    return offset


def _is_all_settled(source: GroupPosition, log: LogBounds) -> bool:
    """Return whether the number of settled offsets says so."""
    return source.above.count == log.end - source.offset


def _delivered_again(
    source: GroupPosition, offset: int, log: LogBounds
) -> tuple[int | None, int | None, int | None]:
    batches = source.above.batches
    if batches is not None:
        acknowledged = count_offsets(batches, DeliveryState.ACKNOWLEDGED, offset)
        archived = sum(count_offsets(batches, state, offset) for state in _ARCHIVED)
        return acknowledged, archived, acknowledged + archived
    if _is_all_settled(source, log):
        return None, None, 0
    if offset == source.offset or source.above.count == 0:
        return None, None, source.above.count
    # Retention removed an unknown part of them.
    return None, None, None


def _missed(source: GroupPosition, log: LogBounds) -> int | None:
    """Return the number of offsets that retention removed before they were settled."""
    gone = log.start - source.offset
    if source.offset > log.end:
        return None
    if gone <= 0:
        return 0
    batches = source.above.batches
    if batches is None:
        return None
    settled = sum(
        count_offsets(batches, state, source.offset)
        - count_offsets(batches, state, log.start)
        for state in SETTLED
    )
    return gone - settled


def _rewound(target: GroupPosition | None, offset: int, log: LogBounds) -> int | None:
    """Return the number of offsets that the target settled and delivers again."""
    if target is None or target.offset == offset:
        return 0
    above, since = target.above, max(offset, target.offset)
    passed = max(0, min(target.offset, log.end) - offset)
    if above.batches is not None:
        return passed + sum(
            count_offsets(above.batches, state, since) for state in SETTLED
        )
    if above.count is not None and (offset < target.offset or not above.count):
        return passed + above.count
    return None


# Partitions in which the source has no position.


def _without_position(
    target: GroupPosition | None,
    log: LogBounds,
    direction: Direction,
    missing: MissingPolicy,
    reset: str | None,
) -> Move:
    offset = {MissingPolicy.EARLIEST: log.start, MissingPolicy.LATEST: log.end}.get(
        missing
    )
    missed, note = (
        _left_unchanged(target, log, direction, reset)
        if offset is None
        else (
            offset - log.start,
            f"the source has no position: moved to {missing.value}",
        )
    )
    rewound = 0 if offset is None else _rewound(target, offset, log)
    more = () if offset is None else _notes_of_target(target, offset, log)
    return Move(
        source_offset=None,
        target_offset=None if target is None else target.offset,
        offset=offset,
        log=log,
        twice=0,
        acknowledged=0,
        archived=0,
        rewound=rewound,
        missed=missed,
        notes=(note, *more),
    )


def _left_unchanged(
    target: GroupPosition | None,
    log: LogBounds,
    direction: Direction,
    reset: str | None,
) -> tuple[int | None, str]:
    """Return the missed offsets and the note for a partition left unchanged."""
    lacking = "the source has no position"
    held = log.end - log.start
    if target is not None:
        return None, f"{lacking}: the target stays at {target.offset}"
    if direction is Direction.TO_CONSUMER_GROUP:
        begins = "the target starts by its consumers' auto.offset.reset"
        return (0 if held == 0 else None), f"{lacking}: {begins}"
    begins = f"the target starts by share.auto.offset.reset={reset or '?'}"
    if reset == "earliest":
        return 0, f"{lacking}: {begins}"
    if reset == "latest":
        until = "records written before its first consumer joins are not delivered"
        there = f"nor are the {held} existing offsets" if held else ""
        return held, ", ".join(filter(None, (f"{lacking}: {begins}; {until}", there)))
    return (0 if held == 0 else None), f"{lacking}: {begins}"


# Notes.


def _notes_of_log(
    source: GroupPosition, log: LogBounds, missed: int | None
) -> tuple[str, ...]:
    if source.offset > log.end:
        return (
            f"the source is at {source.offset}, beyond the log's end {log.end} (was "
            "the topic recreated or truncated?): moved to the end; it is unknown if "
            f"the {log.end - log.start} offsets before it were delivered",
        )
    if source.offset < log.start:
        many = "an unknown number" if missed is None else missed
        return (
            f"the source is at {source.offset}, before the log's start {log.start}: "
            f"moved to the start; {many} of the {log.start - source.offset} offsets "
            "between were removed undelivered",
        )
    return ()


def _notes_of_state(
    source: GroupPosition,
    offset: int,
    twice: int | None,
    archived: int | None,
    direction: Direction,
) -> tuple[str, ...]:
    if direction is Direction.TO_SHARE_GROUP:
        return ()
    if twice is None:
        return (
            "offsets settled above it are delivered twice; their number is unknown "
            "(reading the state needs CLUSTER_ACTION on the cluster; a newer broker "
            "might have delivery states that sharecons does not know)",
        )
    notes = []
    if twice:
        notes.append(f"{twice} offsets above it are settled and delivered twice")
    if archived:
        notes.append(f"{archived} of these are archived")
    if begun := _count_redelivered(source, offset):
        notes.append(
            f"{begun} offsets were delivered and not settled: they are delivered again"
        )
    return tuple(notes)


def _count_redelivered(source: GroupPosition, offset: int) -> int:
    batches = tuple(each for each in source.above.batches or () if each.delivery_count)
    return count_offsets(batches, DeliveryState.AVAILABLE, offset)


def _notes_of_target(
    target: GroupPosition | None, offset: int, log: LogBounds
) -> tuple[str, ...]:
    rewound = _rewound(target, offset, log)
    if target is None or offset == target.offset:
        return ()
    stood = f"the target was at {target.offset}"
    if rewound is None:
        return (f"{stood}: offsets that it settled above are delivered again",)
    if rewound:
        return (f"{stood}: {rewound} offsets that it settled are delivered again",)
    return (stood,)
