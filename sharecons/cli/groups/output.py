"""The group ids, results, errors and notes of all `groups` commands."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from sharecons.admin import ShareGroupAdmin
from sharecons.cli import output
from sharecons.cli.exit_codes import ExitCode, exit_code_of, write_errors
from sharecons.cli.groups.arguments import PROGRAM
from sharecons.cli.groups.request import Request
from sharecons.cli.name_hints import lines_about_groups, lines_about_topics
from sharecons.cli.tables import Column, Row, write
from sharecons.errors import Error, UnsupportedVersionError
from sharecons.protocol.codes import Code

__all__ = [
    "finish",
    "group_ids",
    "note_groups_without",
    "note_no_groups",
    "status_text",
    "write_note",
]

MAX_NAMED_GROUPS: Final = 5
"""A note about more groups than this has their count instead of their names."""


async def group_ids(
    admin: ShareGroupAdmin, request: Request
) -> tuple[tuple[str, ...], list[Error]]:
    """Return the requested group ids, and errors of brokers that list groups.

    Write a note if all groups are requested and there are none.
    """
    if request.groups is not None:
        return request.groups, []
    listing = await admin.list_groups()
    if not listing.groups and not listing.errors:
        note_no_groups("share groups")
    return tuple(sorted(listing.groups)), list(listing.errors.values())


async def finish(
    admin: ShareGroupAdmin,
    request: Request,
    rows: Iterable[Row],
    columns: Sequence[Column],
    *,
    groups: Mapping[str, Error] | None = None,
    topics: Mapping[str, Error] | None = None,
    others: Collection[Error] = (),
) -> ExitCode:
    """Write the rows, then a line for each error; return the exit code.

    Args:
        groups: errors by group id; an unknown group gets a hint at a similar id.
        topics: errors by topic; an unknown topic gets a hint at a similar name.
        others: all other errors.
    """
    groups, topics = groups or {}, topics or {}
    write(rows, columns, as_json=request.as_json)
    # The table comes before its errors, even if both go to the same file.
    output.flush()
    about_groups = await lines_about_groups(admin, groups)
    about_topics = await lines_about_topics(admin, topics)
    write_errors(PROGRAM, [*others, *about_groups, *about_topics])
    return exit_code_of(*others, *groups.values(), *topics.values())


def write_note(text: str) -> None:
    """Write a note that is not an error to stderr."""
    output.flush()
    output.write_error(f"note: {text}")


def note_no_groups(what: str) -> None:
    """Explain an empty listing; brokers leave out groups without DESCRIBE."""
    write_note(f"there are no {what}, or none on which this principal has DESCRIBE")


def note_groups_without(groups: Sequence[str], missing: str) -> None:
    """Name the groups that have none of something; count them if they are many."""
    if len(groups) > MAX_NAMED_GROUPS:
        write_note(f"{len(groups)} share groups have no {missing}")
        return
    for group in groups:
        write_note(f"share group {group!r} has no {missing}")


def status_text(error: Error | None, done: str) -> str:
    """Return a result as one word; the error line on stderr has the details."""
    if error is None:
        return done
    if isinstance(error, UnsupportedVersionError):
        return Code.UNSUPPORTED_VERSION.name
    return getattr(error, "name", "") or type(error).__name__
