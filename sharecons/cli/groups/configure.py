"""`sharecons groups configure`."""

from collections.abc import Collection, Iterable
from typing import Final

from sharecons.admin import ConfigEntry, Result, ShareGroupAdmin
from sharecons.admin.config_validation import (
    DEAD_LETTER_CONFIGS,
    DEAD_LETTER_TOPIC,
)
from sharecons.cli.exit_codes import ExitCode
from sharecons.cli.groups.output import finish, group_ids, write_note
from sharecons.cli.groups.request import Request
from sharecons.cli.tables import Column, Row
from sharecons.errors import ConfigurationError, Error
from sharecons.protocol.admin.broker_errors import is_code
from sharecons.protocol.codes import Code

__all__ = ["configure"]

COLUMNS: Final = (
    Column("group", is_section=True),
    Column("config"),
    Column("value"),
    Column("source"),
)
SHARE_PREFIX: Final = "share."


async def configure(admin: ShareGroupAdmin, request: Request) -> ExitCode:
    """Alter the configs of groups if requested, then show them."""
    groups, others = await group_ids(admin, request)
    errors: dict[str, Error] = {}
    for group in groups if request.configs else ():
        outcome = await _alter_configs(admin, group, request)
        if outcome.error is not None:
            errors[group] = outcome.error
    altered = [group for group in groups if group not in errors]
    rows: list[Row] = []
    if altered:
        described = await admin.describe_group_configs(*altered)
        errors |= described.errors
        for group, entries in described.found.items():
            rows += _rows(group, _select_entries(entries.values(), request))
    code = await finish(admin, request, rows, COLUMNS, groups=errors, others=others)
    if request.dry_run and request.configs and altered:
        write_note("the values are valid; nothing was changed (--dry-run)")
    await _note_missing(admin, [group for group in altered if group not in errors])
    if altered and request.configs.get(DEAD_LETTER_TOPIC) and not request.dry_run:
        groups_option = " ".join(f"--group {group}" for group in altered[:3])
        write_note(
            "brokers report no error if they cannot write dead letters; check it with "
            f"'sharecons preflight {groups_option}'"
        )
    return code


async def _alter_configs(
    admin: ShareGroupAdmin, group: str, request: Request
) -> Result[None]:
    try:
        return await admin.alter_group_configs(
            group, request.configs, validate_only=request.dry_run
        )
    except ConfigurationError as error:
        # A value can be valid for one group and not for another.
        return Result(error=error)


def _select_entries(
    entries: Iterable[ConfigEntry], request: Request
) -> list[ConfigEntry]:
    """Select the configs that were set, or else the configs of share groups."""
    return [
        entry
        for entry in sorted(entries, key=lambda entry: entry.name)
        if request.verbose
        or (
            entry.name in request.configs
            if request.configs
            else entry.name.startswith(SHARE_PREFIX)
            or entry.name in DEAD_LETTER_CONFIGS
        )
    ]


def _rows(group: str, entries: Iterable[ConfigEntry]) -> list[Row]:
    return [
        {
            "group": group,
            "config": entry.name,
            "value": entry.value,
            "source": entry.source,
            "is_default": entry.is_default,
        }
        for entry in entries
    ]


async def _note_missing(admin: ShareGroupAdmin, groups: Collection[str]) -> None:
    """Write a note for each missing group; its id might be misspelled."""
    known = (await admin.list_groups(types=())).groups
    # A group without DESCRIBE is not listed.
    described = await admin.describe_share_groups(
        *(group for group in groups if group not in known)
    )
    for group in groups:
        if group not in known:
            if is_code(described[group].error, Code.GROUP_ID_NOT_FOUND):
                write_note(
                    f"group {group!r} does not exist; its configs apply once it is "
                    "created"
                )
        elif known[group].group_type != "share":
            write_note(f"group {group!r} is a {known[group].group_type} group")
