"""`sharecons dead-letters delete`."""

import argparse
from collections.abc import Mapping
from typing import Final

from sharecons.admin import ShareGroupAdmin
from sharecons.cli import tables
from sharecons.cli.exit_codes import ExitCode, exit_code_of, write_errors
from sharecons.cli.groups.output import status_text, write_note
from sharecons.cli.tables import Column, Row
from sharecons.dead_letters import DeadLetters, Deletion, NotRedrivenError
from sharecons.dead_letters.deletion import check_redriven, delete_letters
from sharecons.errors import ConfigurationError, Error

__all__ = ["delete"]

PROGRAM: Final = "sharecons dead-letters delete"

COLUMNS: Final = (
    Column("topic"),
    Column("partition", align_right=True),
    Column("before", align_right=True),
    Column("letters", align_right=True),
    Column("not_redriven", align_right=True),
    Column("status"),
)


async def delete(admin: ShareGroupAdmin, options: argparse.Namespace) -> ExitCode:
    letters = DeadLetters.from_admin(admin, options.topic)
    planned = await letters.plan_delete(_offsets(options.before))
    errors: Mapping[int, Error] = {}
    if not options.not_redriven and (error := _rejection(planned)) is not None:
        if options.execute:
            raise error
        errors = {number: error for number, one in planned.items() if one.not_redriven}
    elif options.execute:
        errors = (await delete_letters(admin, planned)).errors
    done = "deleted" if options.execute else "would be deleted"
    rows = [_row(each, errors.get(each.partition), done) for each in planned.values()]
    tables.write(rows, COLUMNS, as_json=options.json)
    write_errors(PROGRAM, errors.values())
    if not options.execute:
        write_note("nothing was deleted; use --execute to apply")
    return exit_code_of(*errors.values())


def _rejection(planned: Mapping[int, Deletion]) -> NotRedrivenError | None:
    """Return why nothing is deleted without --not-redriven, or None."""
    try:
        check_redriven(planned)
    except NotRedrivenError as error:
        return error
    return None


def _offsets(positions: list[tuple[int, int]]) -> dict[int, int]:
    """Return the offset of each partition.

    Raises:
        ConfigurationError: a partition has several.
    """
    offsets = dict(positions)
    if len(offsets) < len(positions):
        raise ConfigurationError("--before can be given only once for each partition")
    return offsets


def _row(deletion: Deletion, error: Error | None, done: str) -> Row:
    return {
        "topic": deletion.topic,
        "partition": deletion.partition,
        "before": deletion.before,
        "letters": deletion.letters,
        "not_redriven": deletion.not_redriven,
        "status": status_text(error, done),
        "error": None if error is None else str(error),
    }
