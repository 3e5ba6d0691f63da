"""`sharecons groups reset-offsets`."""

import sys
from collections.abc import Collection, Mapping
from typing import Final

from sharecons._record import TopicPartition
from sharecons.admin import ShareGroupAdmin
from sharecons.cli.exit_codes import Exit
from sharecons.cli.groups.new_offsets import new_offsets
from sharecons.cli.groups.offsets_file import csv_of
from sharecons.cli.groups.output import ended, note, note_of_groups
from sharecons.cli.groups.request import Request, TopicChoice
from sharecons.cli.tables import Column, Row
from sharecons.errors import BrokerError, Error
from sharecons.protocol.admin.broker_errors import broker_error, is_code
from sharecons.protocol.codes import Code

__all__ = ["reset_offsets"]

COLUMNS: Final = (
    Column("group", head=True),
    Column("topic", head=True),
    Column("partition", right=True),
    Column("new_offset", right=True),
    Column("old_offset", right=True),
)

Errors = Mapping[str, Error]


async def reset_offsets(admin: ShareGroupAdmin, request: Request) -> Exit:
    """Set start offsets anew, or show which they would be.

    If any partition is not there nothing is set at all, as with Kafka's own tool: who
    misspells one of them would have half of a reset.
    """
    group = request.group
    if (error := await _hindrance(admin, group)) is not None:
        return await ended(admin, request, (), (), groups={group: error})
    present = await _present(admin, group)
    partitions, topics, others = await _chosen(admin, request, present)
    if topics or others:
        return await _refused(admin, request, topics, others)
    if not partitions:
        note_of_groups([group], "offset information")
    assert request.target is not None, "each reset has a target"
    offsets = await new_offsets(admin, partitions, request.target, present)
    if offsets.errors:
        return await _refused(admin, request, {}, list(offsets.errors.values()))
    if not request.dry_run and partitions:
        offsets = await admin.alter_share_group_offsets(group, offsets.found)
    rows = _rows(group, offsets.found, present)
    others = list(offsets.errors.values())
    if request.export:
        sys.stdout.write(csv_of(offsets.found))
        rows = []
    code = await ended(admin, request, rows, COLUMNS, others=others)
    if request.dry_run:
        note("nothing was changed; --execute does it")
    return code


async def _refused(
    admin: ShareGroupAdmin, request: Request, topics: Errors, others: list[Error]
) -> Exit:
    code = await ended(admin, request, (), (), topics=topics, others=others)
    note("nothing was changed")
    return code


async def _hindrance(admin: ShareGroupAdmin, group: str) -> Error | None:
    """Tell why a group may not be reset; one that is not there may be: it is made."""
    described = (await admin.describe_share_groups(group))[group]
    if described.error is None:
        if described.value.state in ("Empty", "Dead"):
            return None
        what = f"group {group!r}"
        return broker_error("reset the offsets of", what, Code.NON_EMPTY_GROUP, None)
    if is_code(described.error, Code.GROUP_ID_NOT_FOUND):
        others = (await admin.list_groups(types=())).groups
        return described.error if group in others else None
    return described.error


async def _present(
    admin: ShareGroupAdmin, group: str
) -> dict[TopicPartition, int | None]:
    listed = (await admin.list_share_group_offsets(group))[group]
    if listed.error is not None:
        return {}
    return {key: offset.start_offset for key, offset in listed.value.found.items()}


async def _chosen(
    admin: ShareGroupAdmin,
    request: Request,
    present: Collection[TopicPartition],
) -> tuple[list[TopicPartition], Errors, list[Error]]:
    """Give the partitions that are meant, and errors of topics and of partitions."""
    choices = _known(present) if request.topics is None else request.topics
    if not choices:
        return [], {}, []
    topics = await admin.describe_topics(*dict.fromkeys(each.topic for each in choices))
    chosen: dict[TopicPartition, None] = {}
    others: list[Error] = []
    for choice in choices:
        if not topics[choice.topic].ok:
            continue
        there = topics[choice.topic].value.partitions
        wanted = choice.partitions or tuple(there)
        missing = sorted(set(wanted) - set(there))
        others += [
            _no_partition(choice.topic, len(there), number) for number in missing
        ]
        chosen |= dict.fromkeys(TopicPartition(choice.topic, each) for each in wanted)
    return sorted(chosen), topics.errors, others


def _known(present: Collection[TopicPartition]) -> tuple[TopicChoice, ...]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(present):
        topics.setdefault(topic, []).append(partition)
    return tuple(TopicChoice(name, tuple(each)) for name, each in topics.items())


def _no_partition(topic: str, count: int, partition: int) -> Error:
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
    present: Mapping[TopicPartition, int | None],
) -> list[Row]:
    return [
        {
            "group": group,
            "topic": key.topic,
            "partition": key.partition,
            "new_offset": offset,
            "old_offset": present.get(key),
        }
        for key, offset in sorted(offsets.items())
    ]
