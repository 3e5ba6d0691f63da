"""`sharecons groups describe`, `members`, `offsets` and `state`."""

from collections.abc import Collection, Iterable

from sharecons.admin import ShareGroup, ShareGroupAdmin
from sharecons.cli.exit_codes import Exit
from sharecons.cli.groups import rows
from sharecons.cli.groups.output import ended, note_of_groups, which
from sharecons.cli.groups.request import Request
from sharecons.cli.output import write_line
from sharecons.cli.tables import Json, Row, write

__all__ = ["describe", "members", "offsets", "state"]


async def offsets(admin: ShareGroupAdmin, request: Request) -> Exit:
    """Show where groups stand, partition by partition."""
    groups, others = await which(admin, request)
    listed = await admin.list_share_group_offsets(*sorted(groups))
    shown: list[Row] = []
    for group, found in listed.found.items():
        shown += rows.offset_rows(group, found.found)
        others += found.errors.values()
    columns = rows.VERBOSE_OFFSETS if request.verbose else rows.OFFSETS
    code = await ended(
        admin, request, shown, columns, groups=listed.errors, others=others
    )
    unbegun = [group for group, found in listed.found.items() if not found]
    note_of_groups(unbegun, "offset information")
    return code


async def members(admin: ShareGroupAdmin, request: Request) -> Exit:
    """Show members, and what is assigned to them."""
    groups, others = await which(admin, request)
    described = await admin.describe_share_groups(*sorted(groups))
    found = described.found.values()
    shown = [row for group in found for row in rows.member_rows(group)]
    columns = rows.VERBOSE_MEMBERS if request.verbose else rows.MEMBERS
    code = await ended(
        admin, request, shown, columns, groups=described.errors, others=others
    )
    _note_empty(found)
    return code


async def state(admin: ShareGroupAdmin, request: Request) -> Exit:
    """Show states, coordinators, and epochs."""
    groups, others = await which(admin, request)
    described = await admin.describe_share_groups(
        *sorted(groups), authorized_operations=request.verbose
    )
    found = described.found.values()
    shown = [rows.state_row(group) for group in found]
    columns = rows.VERBOSE_STATE if request.verbose else rows.STATE
    code = await ended(
        admin, request, shown, columns, groups=described.errors, others=others
    )
    _note_empty(found)
    return code


def _note_empty(groups: Iterable[ShareGroup]) -> None:
    empty = [group.group_id for group in groups if not group.members]
    note_of_groups(empty, "active members")


async def describe(admin: ShareGroupAdmin, request: Request) -> Exit:
    """Show all of it: states, members, and offsets."""
    groups, others = await which(admin, request)
    described = await admin.describe_share_groups(
        *sorted(groups), authorized_operations=request.verbose
    )
    listed = await admin.list_share_group_offsets(*described.found)
    stands = {
        group: rows.offset_rows(group, listed[group].value.found)
        if listed[group].ok
        else []
        for group in described.found
    }
    for found in listed.found.values():
        others += found.errors.values()
    errors = {**described.errors, **listed.errors}
    if request.as_json:
        whole = [_whole(group, stands[key]) for key, group in described.found.items()]
        return await ended(admin, request, whole, (), groups=errors, others=others)
    _show_states(request, described.found.values())
    columns = rows.VERBOSE_OFFSETS if request.verbose else rows.OFFSETS
    shown = [row for each in stands.values() for row in each]
    return await ended(admin, request, shown, columns, groups=errors, others=others)


def _whole(group: ShareGroup, offsets: list[Row]) -> Row:
    """Nest members and offsets in the group's object, without its id in each."""
    nested: dict[str, list[Json]] = {
        name: [{key: row[key] for key in row if key != "group"} for row in each]
        for name, each in (("members", rows.member_rows(group)), ("offsets", offsets))
    }
    return {**rows.state_row(group), **nested}


def _show_states(request: Request, groups: Collection[ShareGroup]) -> None:
    states = [rows.state_row(group) for group in groups]
    members = [row for group in groups for row in rows.member_rows(group)]
    verbose = request.verbose
    for shown, columns in (
        (states, rows.VERBOSE_STATE if verbose else rows.STATE),
        (members, rows.VERBOSE_MEMBERS if verbose else rows.MEMBERS),
    ):
        write(shown, columns, as_json=False)
        if shown:
            write_line()
