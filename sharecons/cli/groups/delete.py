"""`sharecons groups delete` and `delete-offsets`."""

from typing import Final

from sharecons.admin import ListedGroup, Result, Results, ShareGroupAdmin
from sharecons.cli.exit_codes import ExitCode
from sharecons.cli.groups.output import finish, group_ids, status_text
from sharecons.cli.groups.request import Request
from sharecons.cli.tables import Column, Row
from sharecons.errors import Error
from sharecons.protocol.admin.broker_errors import broker_error, is_code
from sharecons.protocol.codes import Code

__all__ = ["delete", "delete_offsets"]

GROUP_COLUMNS: Final = (Column("group"), Column("status"))
TOPIC_COLUMNS: Final = (Column("topic"), Column("status"))
TOPIC_ERRORS: Final = (
    Code.UNKNOWN_TOPIC_OR_PARTITION,
    Code.TOPIC_AUTHORIZATION_FAILED,
    Code.INVALID_TOPIC_EXCEPTION,
)


async def delete(admin: ShareGroupAdmin, request: Request) -> ExitCode:
    """Delete groups; an error of one group does not stop the others."""
    groups, others = await group_ids(admin, request)
    if request.dry_run:
        results = await _predict_results(admin, groups)
    else:
        results = await admin.delete_share_groups(*groups)
    done = "would be deleted" if request.dry_run else "deleted"
    rows = [_row("group", name, one.error, done) for name, one in results.items()]
    errors = results.errors
    return await finish(
        admin, request, rows, GROUP_COLUMNS, groups=errors, others=others
    )


async def _predict_results(
    admin: ShareGroupAdmin, groups: tuple[str, ...]
) -> Results[str, None]:
    """Return the results that deleting the groups would have."""
    listed = (await admin.list_groups()).groups
    return Results(
        {group: _predict_outcome(group, listed.get(group)) for group in groups}
    )


def _predict_outcome(group: str, listed: ListedGroup | None) -> Result[None]:
    if listed is None:
        code = Code.GROUP_ID_NOT_FOUND
    elif listed.state not in ("Empty", "Dead"):
        code = Code.NON_EMPTY_GROUP
    else:
        return Result()
    return Result(error=broker_error("delete", f"group {group!r}", code, None))


async def delete_offsets(admin: ShareGroupAdmin, request: Request) -> ExitCode:
    """Delete a group's offsets of topics; topics do not depend on each other."""
    group = request.group
    topics = [choice.topic for choice in request.topics or ()]
    results = await admin.delete_share_group_offsets(group, topics)
    rows = [
        {"group": group, **_row("topic", name, one.error, "deleted")}
        for name, one in results.items()
    ]
    if (error := results.common_error) and not is_code(error, *TOPIC_ERRORS):
        return await finish(admin, request, rows, TOPIC_COLUMNS, groups={group: error})
    return await finish(admin, request, rows, TOPIC_COLUMNS, topics=results.errors)


def _row(kind: str, name: str, error: Error | None, done: str) -> Row:
    message = None if error is None else str(error)
    return {kind: name, "status": status_text(error, done), "error": message}
