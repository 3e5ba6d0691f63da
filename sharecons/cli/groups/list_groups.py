"""`sharecons groups list`."""

from typing import Final

from sharecons.admin import ShareGroupAdmin
from sharecons.cli.exit_codes import ExitCode
from sharecons.cli.groups.output import finish, note_no_groups
from sharecons.cli.groups.request import Request
from sharecons.cli.output import write_line
from sharecons.cli.tables import Column

__all__ = ["list_groups"]

STATES: Final = (Column("group"), Column("state"))
TYPES: Final = (Column("group"), Column("type"), Column("state"), Column("protocol"))


async def list_groups(admin: ShareGroupAdmin, request: Request) -> ExitCode:
    """List groups: only their ids, for scripts, unless more columns are requested."""
    types = ("share",) if request.types is None else request.types
    listing = await admin.list_groups(states=request.states, types=types)
    groups = [listing.groups[group_id] for group_id in sorted(listing.groups)]
    errors = list(listing.errors.values())
    if not groups and not errors:
        kind = "share groups" if types == ("share",) else "groups of these types"
        kind = kind if types else "groups"
        note_no_groups(f"{kind} in these states" if request.states else kind)
    if not (request.with_states or request.types or request.as_json):
        for group in groups:
            write_line(group.group_id)
        return await finish(admin, request, (), (), others=errors)
    rows = [
        {
            "group": group.group_id,
            "type": group.group_type,
            "state": group.state,
            "protocol": group.protocol,
        }
        for group in groups
    ]
    columns = TYPES if request.types else STATES
    return await finish(admin, request, rows, columns, others=errors)
