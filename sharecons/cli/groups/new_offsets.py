"""The new start offsets of `reset-offsets`."""

from collections.abc import Collection, Mapping
from typing import TypeAlias

from sharecons._record import TopicPartition
from sharecons.admin import OffsetSpec, Result, Results, ShareGroupAdmin
from sharecons.cli.groups.output import write_note
from sharecons.cli.groups.targets import Target, ToCurrent, ToFile, ToOffset, ToSpec

__all__ = ["new_offsets"]

Offsets: TypeAlias = Results[TopicPartition, int]


async def new_offsets(
    admin: ShareGroupAdmin,
    partitions: Collection[TopicPartition],
    target: Target,
    current: Mapping[TopicPartition, int | None],
) -> Offsets:
    """Return the new start offset of each partition.

    Args:
        current: the start offsets that the group has now.
    """
    match target:
        case ToSpec(spec):
            return await _look_up(admin, partitions, spec)
        case ToOffset(offset):
            return await _clamp_to_logs(admin, dict.fromkeys(partitions, offset))
        case ToFile(offsets):
            return await _clamp_to_logs(
                admin, {key: offsets[key] for key in partitions}
            )
        case ToCurrent():
            return await _keep_current(admin, partitions, current)


async def _look_up(
    admin: ShareGroupAdmin, partitions: Collection[TopicPartition], spec: OffsetSpec
) -> Offsets:
    """Look up a time; without a record at or after it, use the log end offset."""
    found = await admin.list_offsets(partitions, spec)
    late = [key for key, each in found.found.items() if each.offset is None]
    ends = await _log_ends(admin, late)
    if late:
        _note_partitions(
            "no record at or after that time, so the log end offset is used", late
        )
    offsets = found.map(lambda each: each.offset or 0)
    return Results({key: ends.get(key, one) for key, one in offsets.items()})


async def _clamp_to_logs(
    admin: ShareGroupAdmin, wanted: Mapping[TopicPartition, int]
) -> Offsets:
    """Limit offsets to the range of their logs, as Kafka's tool does."""
    firsts = await admin.list_offsets(wanted.keys(), OffsetSpec.EARLIEST)
    ends = await _log_ends(admin, wanted.keys())
    offsets: dict[TopicPartition, Result[int]] = {}
    low: list[TopicPartition] = []
    high: list[TopicPartition] = []
    for key, offset in wanted.items():
        error = firsts[key].error or ends[key].error
        if error is not None:
            offsets[key] = Result(error=error)
            continue
        first, end = firsts[key].value.offset or 0, ends[key].value
        if offset < first:
            low.append(key)
        elif offset > end:
            high.append(key)
        offsets[key] = Result(min(max(offset, first), end))
    if low:
        _note_partitions(
            "the log starts at a higher offset, which is used instead", low
        )
    if high:
        _note_partitions("the log ends at a lower offset, which is used instead", high)
    return Results(offsets)


async def _keep_current(
    admin: ShareGroupAdmin,
    partitions: Collection[TopicPartition],
    current: Mapping[TopicPartition, int | None],
) -> Offsets:
    new = [key for key in partitions if current.get(key) is None]
    ends = await _log_ends(admin, new)
    if new:
        _note_partitions(
            "the group has no start offset, so the log end offset is used", new
        )
    return Results(
        {key: ends[key] if key in ends else Result(current[key]) for key in partitions}
    )


async def _log_ends(
    admin: ShareGroupAdmin, partitions: Collection[TopicPartition]
) -> Offsets:
    if not partitions:
        return Results({})
    found = await admin.list_offsets(partitions, OffsetSpec.LATEST)
    return found.map(lambda each: each.offset or 0)


def _note_partitions(text: str, partitions: Collection[TopicPartition]) -> None:
    names = ", ".join(f"{topic}-{partition}" for topic, partition in sorted(partitions))
    write_note(f"{text}: {names}")
