"""`sharecons groups configure`."""

from collections.abc import Iterable
from typing import Final

from sharecons.admin import ConfigEntry, Outcome, ShareGroupAdmin
from sharecons.cli.exit_codes import Exit
from sharecons.cli.groups.output import ended, note, which
from sharecons.cli.groups.request import Request
from sharecons.cli.tables import Column, Row
from sharecons.errors import ConfigurationError, Error

__all__ = ["configure"]

COLUMNS: Final = (
    Column("group", head=True),
    Column("config"),
    Column("value"),
    Column("source"),
)
SHARE: Final = "share."


async def configure(admin: ShareGroupAdmin, request: Request) -> Exit:
    """Show configs of groups, after they were set if any are to be."""
    groups, others = await which(admin, request)
    errors: dict[str, Error] = {}
    for group in groups if request.configs else ():
        outcome = await _set(admin, group, request)
        if outcome.error is not None:
            errors[group] = outcome.error
    left = [group for group in groups if group not in errors]
    rows: list[Row] = []
    if left:
        described = await admin.describe_configs(*left)
        errors |= described.errors
        for group, entries in described.found.items():
            rows += _rows(group, _chosen(entries.values(), request))
    code = await ended(admin, request, rows, COLUMNS, groups=errors, others=others)
    if request.dry_run and request.configs and left:
        note("the values are good; nothing was changed")
    await _note_missing(admin, left)
    return code


async def _set(admin: ShareGroupAdmin, group: str, request: Request) -> Outcome[None]:
    try:
        return await admin.incremental_alter_configs(
            group, request.configs, validate_only=request.dry_run
        )
    except ConfigurationError as error:
        # What is good for one group may be out of another's bounds.
        return Outcome(error=error)


def _chosen(entries: Iterable[ConfigEntry], request: Request) -> list[ConfigEntry]:
    """Choose what was set, or else what concerns share groups."""
    return [
        entry
        for entry in sorted(entries, key=lambda entry: entry.name)
        if request.verbose
        or (
            entry.name in request.configs
            if request.configs
            else entry.name.startswith(SHARE)
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


async def _note_missing(admin: ShareGroupAdmin, groups: Iterable[str]) -> None:
    """Configs may be set before their group is there, and for a misspelt one."""
    known = (await admin.list_groups(types=())).groups
    for group in groups:
        if group not in known:
            note(f"there is no group {group!r} yet; its configs wait for it")
        elif known[group].group_type != "share":
            note(f"{group!r} is a {known[group].group_type} group")
