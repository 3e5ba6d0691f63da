"""Deletes dead letters before an offset, unless some of them were not redriven."""

from collections.abc import Mapping
from contextlib import aclosing

from sharecons._record import TopicPartition
from sharecons.admin import Results, ShareGroupAdmin
from sharecons.copies.dead_letter_headers import read_origin
from sharecons.dead_letters.marks import RedriveMarks, load_marks
from sharecons.dead_letters.models import Deletion
from sharecons.dead_letters.origins import Origins
from sharecons.dead_letters.reader import (
    load_origins,
    log_ranges,
    range_of,
    read_records,
)
from sharecons.errors import ConfigurationError, Error
from sharecons.protocol.admin.models import LogBounds
from sharecons.protocol.admin.results import Result

__all__ = ["NotRedrivenError", "check_redriven", "delete_letters", "plan_deletion"]


class NotRedrivenError(Error):
    """Dead letters that would be deleted were not redriven. Nothing was deleted."""


async def plan_deletion(
    admin: ShareGroupAdmin, topic: str, before: Mapping[int, int]
) -> Mapping[int, Deletion]:
    """Return what deleting dead letters before these offsets would delete.

    Raises:
        ConfigurationError: a partition does not exist, or its log ends before its
            offset.
        BrokerError, RequestTimedOutError: the log or the marks cannot be read.
    """
    logs = await log_ranges(admin, topic)
    for partition, offset in before.items():
        _check_offset(topic, partition, offset, logs)
    marks = await load_marks(admin, logs)
    redriven = {key: marks.of_any_name(key) for key in logs}
    origins = await load_origins(admin, logs, redriven)
    planned: dict[int, Deletion] = {}
    for partition, offset in sorted(before.items()):
        key = TopicPartition(topic, partition)
        log_range = LogBounds(logs[key].start, offset)
        planned[partition] = await _plan(admin, key, log_range, marks, origins)
    return planned


def _check_offset(
    topic: str, partition: int, offset: int, logs: Mapping[TopicPartition, LogBounds]
) -> None:
    log_range = range_of(logs, TopicPartition(topic, partition))
    if not 0 <= offset <= log_range.end:
        raise ConfigurationError(
            f"{topic}-{partition} ends at offset {log_range.end}: it has no dead "
            f"letters up to offset {offset} to delete"
        )


async def _plan(
    admin: ShareGroupAdmin,
    key: TopicPartition,
    log_range: LogBounds,
    marks: RedriveMarks,
    origins: Origins,
) -> Deletion:
    letters = not_redriven = 0
    first: int | None = None
    slices = read_records(admin, key, *log_range)
    async with aclosing(slices):
        async for records, next_offset, damaged, _ in slices:
            missing = [
                record.offset
                for record in records
                if not marks.names(key, record.offset)
                and origins.find(read_origin(record.headers)) is None
            ]
            letters += len(records) + len(damaged)
            not_redriven += len(missing) + len(damaged)
            if first is None and (missing or damaged):
                first = missing[0] if missing else next_offset - 1
    return Deletion(
        topic=key.topic,
        partition=key.partition,
        before=log_range.end,
        letters=letters,
        not_redriven=not_redriven,
        first_not_redriven=first,
    )


def check_redriven(planned: Mapping[int, Deletion]) -> None:
    """Check that all dead letters that would be deleted were redriven.

    Raises:
        NotRedrivenError: some were not.
    """
    for each in planned.values():
        if each.not_redriven:
            raise NotRedrivenError(
                f"{each.not_redriven} of {each.letters} dead letters of "
                f"{each.topic}-{each.partition} before offset {each.before} were not "
                f"redriven, the first at offset {each.first_not_redriven}; nothing is "
                "deleted. Redrive them, or delete them with --not-redriven "
                "(not_redriven=True)"
            )


async def delete_letters(
    admin: ShareGroupAdmin, planned: Mapping[int, Deletion]
) -> Results[int, Deletion]:
    """Delete what was planned, whether it was redriven or not."""
    deleted = await admin.delete_records(
        {
            TopicPartition(each.topic, each.partition): each.before
            for each in planned.values()
            if each.letters
        }
    )
    errors = {key.partition: error for key, error in deleted.errors.items()}
    return Results(
        {
            partition: Result(each)
            if (error := errors.get(partition)) is None
            else Result(error=error)
            for partition, each in planned.items()
        }
    )
