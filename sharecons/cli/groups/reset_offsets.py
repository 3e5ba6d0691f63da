"""`sharecons groups reset-offsets`."""

from collections.abc import Collection, Mapping
from typing import Final

from sharecons._record import TopicPartition
from sharecons.admin import GroupOffset, Result, Results, ShareGroupAdmin
from sharecons.cli import output
from sharecons.cli.exit_codes import ExitCode
from sharecons.cli.groups.new_offsets import new_offsets
from sharecons.cli.groups.offsets_file import to_csv
from sharecons.cli.groups.output import finish, note_groups_without, write_note
from sharecons.cli.groups.request import Request, TopicSelection
from sharecons.cli.tables import Column, Row
from sharecons.errors import BrokerError, Error
from sharecons.protocol.admin.broker_errors import broker_error, is_code
from sharecons.protocol.codes import Code

__all__ = ["reset_offsets"]

COLUMNS: Final = (
    Column("group", is_section=True),
    Column("topic", is_section=True),
    Column("partition", align_right=True),
    Column("new_offset", align_right=True),
    Column("old_offset", align_right=True),
)

Errors = Mapping[str, Error]
GroupOffsets = Results[TopicPartition, GroupOffset]


async def reset_offsets(admin: ShareGroupAdmin, request: Request) -> ExitCode:
    """Reset the start offsets of a group, or show the new ones for a dry run.

    If one partition does not exist, nothing is reset, as in Kafka's tool: a misspelled
    topic must not lead to half of a reset.
    """
    group = request.group
    listed = await _list_offsets(admin, group)
    if listed.error is not None:
        return await finish(admin, request, (), (), groups={group: listed.error})
    partitions, topics, others = await _select_partitions(admin, request, listed.value)
    # An unknown start offset is not a missing one: --to-current would skip records.
    unknown = listed.value.errors
    others += [unknown[key] for key in partitions if key in unknown]
    if topics or others:
        return await _finish_unchanged(admin, request, topics, others)
    if not partitions:
        note_groups_without([group], "offset information")
    assert request.target is not None, "each reset has a target"
    current = {key: each.start_offset for key, each in listed.value.found.items()}
    offsets = await new_offsets(admin, partitions, request.target, current)
    if offsets.errors:
        return await _finish_unchanged(
            admin, request, {}, list(offsets.errors.values())
        )
    if not request.dry_run and partitions:
        offsets = await admin.alter_share_group_offsets(group, offsets.found)
    rows = _rows(group, offsets.found, current)
    others = list(offsets.errors.values())
    if request.export:
        output.write_raw(to_csv(offsets.found))
        rows = []
    code = await finish(admin, request, rows, COLUMNS, others=others)
    if request.dry_run:
        write_note("nothing was changed; use --execute to apply")
    return code


async def _finish_unchanged(
    admin: ShareGroupAdmin, request: Request, topics: Errors, others: list[Error]
) -> ExitCode:
    code = await finish(admin, request, (), (), topics=topics, others=others)
    write_note("nothing was changed")
    return code


async def _list_offsets(admin: ShareGroupAdmin, group: str) -> Result[GroupOffsets]:
    """Return the offsets of a group, or why it cannot be reset.

    A missing group has no offsets; the reset creates it.
    """
    if (error := await _reset_error(admin, group)) is not None:
        return Result(error=error)
    listed = (await admin.list_share_group_offsets(group))[group]
    if is_code(listed.error, Code.GROUP_ID_NOT_FOUND):
        return Result(Results({}))
    return listed


async def _reset_error(admin: ShareGroupAdmin, group: str) -> Error | None:
    """Return why a group cannot be reset, or None; a missing group is created."""
    described = (await admin.describe_share_groups(group))[group]
    if described.error is None:
        if described.value.state in ("Empty", "Dead"):
            return None
        name = f"group {group!r}"
        return broker_error("reset the offsets of", name, Code.NON_EMPTY_GROUP, None)
    if is_code(described.error, Code.GROUP_ID_NOT_FOUND):
        others = (await admin.list_groups(types=())).groups
        return described.error if group in others else None
    return described.error


async def _select_partitions(
    admin: ShareGroupAdmin,
    request: Request,
    current: Collection[TopicPartition],
) -> tuple[list[TopicPartition], Errors, list[Error]]:
    """Return the partitions to reset, errors by topic, and errors of partitions."""
    selections = _topics_of(current) if request.topics is None else request.topics
    if not selections:
        return [], {}, []
    topics = await admin.describe_topics(
        *dict.fromkeys(each.topic for each in selections)
    )
    selected: dict[TopicPartition, None] = {}
    others: list[Error] = []
    for selection in selections:
        if not topics[selection.topic].ok:
            continue
        existing = topics[selection.topic].value.partitions
        wanted = selection.partitions or tuple(existing)
        missing = sorted(set(wanted) - set(existing))
        others += [
            _missing_partition(selection.topic, len(existing), number)
            for number in missing
        ]
        selected |= dict.fromkeys(
            TopicPartition(selection.topic, each) for each in wanted
        )
    return sorted(selected), topics.errors, others


def _topics_of(current: Collection[TopicPartition]) -> tuple[TopicSelection, ...]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(current):
        topics.setdefault(topic, []).append(partition)
    return tuple(TopicSelection(name, tuple(each)) for name, each in topics.items())


def _missing_partition(topic: str, count: int, partition: int) -> Error:
    code = Code.UNKNOWN_TOPIC_OR_PARTITION
    return BrokerError(
        f"cannot reset {topic}-{partition}: {code.name}: "
        f"the partitions of topic {topic!r} are 0 to {count - 1}",
        code=code,
        name=code.name,
    )


def _rows(
    group: str,
    offsets: Mapping[TopicPartition, int],
    current: Mapping[TopicPartition, int | None],
) -> list[Row]:
    return [
        {
            "group": group,
            "topic": key.topic,
            "partition": key.partition,
            "new_offset": offset,
            "old_offset": current.get(key),
        }
        for key, offset in sorted(offsets.items())
    ]
