"""What all commands on groups do at their beginning and their end."""

from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import suppress
from typing import Final

from sharecons.admin import ShareGroupAdmin
from sharecons.cli import output
from sharecons.cli.exit_codes import Exit, complain, exit_of
from sharecons.cli.groups.arguments import PROGRAM
from sharecons.cli.groups.request import Request
from sharecons.cli.tables import Column, Row, write
from sharecons.errors import Error
from sharecons.protocol.admin.broker_errors import is_code
from sharecons.protocol.codes import Code

__all__ = ["ended", "note", "note_of_groups", "status", "which"]

FEW: Final = 5
"""Groups that are told of one by one: more of them would hide what is above."""

_NO_GROUP: Final = (Code.GROUP_ID_NOT_FOUND,)
_NO_TOPIC: Final = (Code.UNKNOWN_TOPIC_OR_PARTITION,)


async def which(
    admin: ShareGroupAdmin, request: Request
) -> tuple[tuple[str, ...], list[Error]]:
    """Give the ids of the groups that are asked about, and what hides others."""
    if request.groups is not None:
        return request.groups, []
    listing = await admin.list_groups()
    return tuple(sorted(listing.groups)), list(listing.errors.values())


async def ended(
    admin: ShareGroupAdmin,
    request: Request,
    rows: Iterable[Row],
    columns: Sequence[Column],
    *,
    groups: Mapping[str, Error] | None = None,
    topics: Mapping[str, Error] | None = None,
    others: Collection[Error] = (),
) -> Exit:
    """Show the rows, then a line for each error; gives the exit code.

    `groups` and `topics` are errors of those by their names, `others` of all else.
    """
    groups, topics = groups or {}, topics or {}
    write(rows, columns, as_json=request.as_json)
    # The table comes before what is said of it, also where both go to one file.
    output.flush()
    about_groups = await _hinted(groups, _NO_GROUP, lambda: _groups(admin))
    about_topics = await _hinted(topics, _NO_TOPIC, lambda: _topics(admin))
    complain(PROGRAM, [*others, *about_groups, *about_topics])
    return exit_of(*others, *groups.values(), *topics.values())


def note(text: str) -> None:
    """Say on stderr what is no error."""
    output.flush()
    output.write_error(f"note: {text}")


def note_of_groups(groups: Sequence[str], lacks: str) -> None:
    """Say on stderr what groups lack; of many in one line, without their names."""
    if len(groups) > FEW:
        note(f"{len(groups)} share groups have no {lacks}")
        return
    for group in groups:
        note(f"share group {group!r} has no {lacks}")


def status(error: Error | None, done: str) -> str:
    """Say in a word what became of something; the error's line says more."""
    if error is None:
        return done
    return getattr(error, "name", "") or type(error).__name__


async def _hinted(
    errors: Mapping[str, Error],
    codes: Collection[int],
    known: Callable[[], Awaitable[Mapping[str, str]]],
) -> list[str]:
    """Give a line for each error; where something is not there, with what was meant."""
    missing = {name for name, error in errors.items() if is_code(error, *codes)}
    kinds: Mapping[str, str] = {}
    if missing:
        with suppress(Error):
            kinds = await known()
    return [
        f"{error}{_hint(name, kinds)}" if name in missing else str(error)
        for name, error in errors.items()
    ]


async def _groups(admin: ShareGroupAdmin) -> Mapping[str, str]:
    listed = (await admin.list_groups(types=())).groups
    return {name: group.group_type for name, group in listed.items()}


async def _topics(admin: ShareGroupAdmin) -> Mapping[str, str]:
    return {
        name: "topic" for name, topic in (await admin.describe_topics()).found.items()
    }


def _hint(name: str, kinds: Mapping[str, str]) -> str:
    if name in kinds:
        kind = kinds[name]
        return "" if kind in ("share", "topic") else f"; it is a {kind} group"
    # Of use to few commands, and loads regular expressions.
    import difflib

    near = difflib.get_close_matches(name, sorted(kinds), n=1, cutoff=0.75)
    return f"; {near[0]!r} is meant, perhaps" if near else ""
