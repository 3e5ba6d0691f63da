"""`sharecons groups delete` and `delete-offsets`."""

from typing import Final

from sharecons.admin import ListedGroup, Outcome, Results, ShareGroupAdmin
from sharecons.cli.exit_codes import Exit
from sharecons.cli.groups.output import ended, note, status, which
from sharecons.cli.groups.request import Request
from sharecons.cli.tables import Column, Row
from sharecons.errors import Error
from sharecons.protocol.admin.broker_errors import broker_error, is_code
from sharecons.protocol.codes import Code

__all__ = ["delete", "delete_offsets"]

GROUPS: Final = (Column("group"), Column("status"))
TOPICS: Final = (Column("topic"), Column("status"))
OF_TOPICS: Final = (
    Code.UNKNOWN_TOPIC_OR_PARTITION,
    Code.TOPIC_AUTHORIZATION_FAILED,
    Code.INVALID_TOPIC_EXCEPTION,
)


async def delete(admin: ShareGroupAdmin, request: Request) -> Exit:
    """Delete groups; those that may not be deleted hinder no others."""
    groups, others = await which(admin, request)
    if request.dry_run:
        results = await _foreseen(admin, groups)
    else:
        results = await admin.delete_share_groups(*groups)
    done = "would be deleted" if request.dry_run else "deleted"
    rows = [_row("group", name, one.error, done) for name, one in results.items()]
    if not rows and not others:
        note("there is no share group")
    errors = results.errors
    return await ended(admin, request, rows, GROUPS, groups=errors, others=others)


async def _foreseen(
    admin: ShareGroupAdmin, groups: tuple[str, ...]
) -> Results[str, None]:
    """Tell what deleting would come to."""
    listed = (await admin.list_groups()).groups
    return Results({group: _verdict(group, listed.get(group)) for group in groups})


def _verdict(group: str, listed: ListedGroup | None) -> Outcome[None]:
    if listed is None:
        code = Code.GROUP_ID_NOT_FOUND
    elif listed.state not in ("Empty", "Dead"):
        code = Code.NON_EMPTY_GROUP
    else:
        return Outcome()
    return Outcome(error=broker_error("delete", f"group {group!r}", code, None))


async def delete_offsets(admin: ShareGroupAdmin, request: Request) -> Exit:
    """Make a group forget topics, each for itself."""
    group = request.group
    topics = [choice.topic for choice in request.topics or ()]
    results = await admin.delete_share_group_offsets(group, topics)
    rows = [
        {"group": group, **_row("topic", name, one.error, "deleted")}
        for name, one in results.items()
    ]
    if (error := results.common_error) and not is_code(error, *OF_TOPICS):
        return await ended(admin, request, rows, TOPICS, groups={group: error})
    return await ended(admin, request, rows, TOPICS, topics=results.errors)


def _row(what: str, name: str, error: Error | None, done: str) -> Row:
    said = None if error is None else str(error)
    return {what: name, "status": status(error, done), "error": said}
