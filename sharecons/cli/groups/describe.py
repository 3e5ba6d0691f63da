"""`sharecons groups describe`, `members`, `offsets` and `state`."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from sharecons._record import TopicPartition
from sharecons.admin import (
    GroupOffset,
    Results,
    ShareGroup,
    ShareGroupAdmin,
)
from sharecons.admin.log_bounds import log_bounds
from sharecons.cli.exit_codes import ExitCode
from sharecons.cli.groups import rows
from sharecons.cli.groups.output import finish, group_ids, note_groups_without
from sharecons.cli.groups.request import Request
from sharecons.cli.output import write_line
from sharecons.cli.tables import Json, Row, write

__all__ = ["describe", "members", "offsets", "state"]

OFFSET_RESET: Final = "share.auto.offset.reset"

Lags = Mapping[tuple[str, TopicPartition], int]


async def offsets(admin: ShareGroupAdmin, request: Request) -> ExitCode:
    """Show the start offset and the lag of each partition."""
    groups, others = await group_ids(admin, request)
    listed = await admin.list_share_group_offsets(*sorted(groups))
    lags = await _lags_without_start(admin, listed)
    shown: list[Row] = []
    for group, found in listed.found.items():
        shown += rows.offset_rows(group, found.found, lags)
        others += found.errors.values()
    columns = rows.VERBOSE_OFFSETS if request.verbose else rows.OFFSETS
    code = await finish(
        admin, request, shown, columns, groups=listed.errors, others=others
    )
    without_offsets = [group for group, found in listed.found.items() if not found]
    note_groups_without(without_offsets, "offset information")
    return code


async def _lags_without_start(
    admin: ShareGroupAdmin, listed: Results[str, Results[TopicPartition, GroupOffset]]
) -> Lags:
    """Return the lag in partitions in which a group has settled nothing yet.

    Brokers return none for these, as no start offset is stored. If the group begins at
    the log's start, all records wait. Where others begin is not known. Partitions
    without records are left out: Kafka's tool shows "-" for them.
    """
    keys_of = {
        group: [key for key, one in found.found.items() if one.start_offset is None]
        for group, found in listed.found.items()
    }
    groups = [group for group, keys in keys_of.items() if keys]
    if not groups:
        return {}
    configs = (await admin.describe_group_configs(*groups)).found
    from_start = [
        group
        for group, entries in configs.items()
        if (entry := entries.get(OFFSET_RESET)) and entry.value == "earliest"
    ]
    keys = {key for group in from_start for key in keys_of[group]}
    if not keys:
        return {}
    bounds = (await log_bounds(admin, keys)).found
    return {
        (group, key): bounds[key].end - bounds[key].start
        for group in from_start
        for key in keys_of[group]
        if key in bounds and bounds[key].end > bounds[key].start
    }


async def members(admin: ShareGroupAdmin, request: Request) -> ExitCode:
    """Show the members of groups and their assignments."""
    groups, others = await group_ids(admin, request)
    described = await admin.describe_share_groups(*sorted(groups))
    found = described.found.values()
    shown = [row for group in found for row in rows.member_rows(group)]
    columns = rows.VERBOSE_MEMBERS if request.verbose else rows.MEMBERS
    code = await finish(
        admin, request, shown, columns, groups=described.errors, others=others
    )
    _note_empty(found)
    return code


async def state(admin: ShareGroupAdmin, request: Request) -> ExitCode:
    """Show states, coordinators and epochs of groups."""
    groups, others = await group_ids(admin, request)
    described = await admin.describe_share_groups(
        *sorted(groups), authorized_operations=request.verbose
    )
    found = described.found.values()
    shown = [rows.state_row(group) for group in found]
    columns = rows.VERBOSE_STATE if request.verbose else rows.STATE
    code = await finish(
        admin, request, shown, columns, groups=described.errors, others=others
    )
    _note_empty(found)
    return code


def _note_empty(groups: Iterable[ShareGroup]) -> None:
    empty = [group.group_id for group in groups if not group.members]
    note_groups_without(empty, "active members")


async def describe(admin: ShareGroupAdmin, request: Request) -> ExitCode:
    """Show states, members and offsets of groups."""
    groups, others = await group_ids(admin, request)
    described = await admin.describe_share_groups(
        *sorted(groups), authorized_operations=request.verbose
    )
    listed = await admin.list_share_group_offsets(*described.found)
    lags = await _lags_without_start(admin, listed)
    offset_rows = {
        group: rows.offset_rows(group, listed[group].value.found, lags)
        if listed[group].ok
        else []
        for group in described.found
    }
    for found in listed.found.values():
        others += found.errors.values()
    errors = {**described.errors, **listed.errors}
    if request.as_json:
        objects = [
            _group_object(group, offset_rows[key])
            for key, group in described.found.items()
        ]
        return await finish(admin, request, objects, (), groups=errors, others=others)
    _write_states_and_members(request, described.found.values())
    columns = rows.VERBOSE_OFFSETS if request.verbose else rows.OFFSETS
    shown = [row for each in offset_rows.values() for row in each]
    return await finish(admin, request, shown, columns, groups=errors, others=others)


def _group_object(group: ShareGroup, offsets: list[Row]) -> Row:
    """Return a group's JSON object with its members and offsets nested in it."""
    nested: dict[str, list[Json]] = {
        name: [{key: row[key] for key in row if key != "group"} for row in each]
        for name, each in (("members", rows.member_rows(group)), ("offsets", offsets))
    }
    return {**rows.state_row(group), **nested}


def _write_states_and_members(request: Request, groups: Collection[ShareGroup]) -> None:
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
