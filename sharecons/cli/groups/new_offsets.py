"""The new start offsets of `reset-offsets`, looked up in the logs."""

from collections.abc import Collection, Mapping
from typing import TypeAlias

from sharecons._record import TopicPartition
from sharecons.admin import OffsetSpec, Outcome, Results, ShareGroupAdmin
from sharecons.cli.groups.output import note
from sharecons.cli.groups.targets import Target, ToCurrent, ToFile, ToOffset, ToSpec

__all__ = ["new_offsets"]

Offsets: TypeAlias = Results[TopicPartition, int]


async def new_offsets(
    admin: ShareGroupAdmin,
    partitions: Collection[TopicPartition],
    target: Target,
    present: Mapping[TopicPartition, int | None],
) -> Offsets:
    """Return the new start offset of each partition.

    Args:
        present: the start offsets that the group has now.
    """
    match target:
        case ToSpec(spec):
            return await _of_spec(admin, partitions, spec)
        case ToOffset(offset):
            return await _within(admin, dict.fromkeys(partitions, offset))
        case ToFile(offsets):
            return await _within(admin, {key: offsets[key] for key in partitions})
        case ToCurrent():
            return await _present(admin, partitions, present)


async def _of_spec(
    admin: ShareGroupAdmin, partitions: Collection[TopicPartition], spec: OffsetSpec
) -> Offsets:
    """Look up a time; where no record is so late, the end of the log."""
    found = await admin.list_offsets(partitions, spec)
    late = [key for key, each in found.found.items() if each.offset is None]
    ends = await _ends(admin, late)
    if late:
        _note("no record of that time or later, so that the end is meant", late)
    offsets = found.map(lambda each: each.offset or 0)
    return Results({key: ends.get(key, one) for key, one in offsets.items()})


async def _within(
    admin: ShareGroupAdmin, wanted: Mapping[TopicPartition, int]
) -> Offsets:
    """Keep offsets within their logs, as Kafka's own tool does."""
    firsts = await admin.list_offsets(wanted.keys(), OffsetSpec.EARLIEST)
    ends = await _ends(admin, wanted.keys())
    offsets: dict[TopicPartition, Outcome[int]] = {}
    low: list[TopicPartition] = []
    high: list[TopicPartition] = []
    for key, offset in wanted.items():
        error = firsts[key].error or ends[key].error
        if error is not None:
            offsets[key] = Outcome(error=error)
            continue
        first, end = firsts[key].value.offset or 0, ends[key].value
        if offset < first:
            low.append(key)
        elif offset > end:
            high.append(key)
        offsets[key] = Outcome(min(max(offset, first), end))
    if low:
        _note("the log begins later, so that its beginning is meant", low)
    if high:
        _note("the log ends earlier, so that its end is meant", high)
    return Results(offsets)


async def _present(
    admin: ShareGroupAdmin,
    partitions: Collection[TopicPartition],
    present: Mapping[TopicPartition, int | None],
) -> Offsets:
    new = [key for key in partitions if present.get(key) is None]
    ends = await _ends(admin, new)
    if new:
        _note("the group has no start offset, so that the end is meant", new)
    return Results(
        {key: ends[key] if key in ends else Outcome(present[key]) for key in partitions}
    )


async def _ends(
    admin: ShareGroupAdmin, partitions: Collection[TopicPartition]
) -> Offsets:
    if not partitions:
        return Results({})
    found = await admin.list_offsets(partitions, OffsetSpec.LATEST)
    return found.map(lambda each: each.offset or 0)


def _note(text: str, partitions: Collection[TopicPartition]) -> None:
    names = ", ".join(f"{topic}-{partition}" for topic, partition in sorted(partitions))
    note(f"{text}: {names}")
