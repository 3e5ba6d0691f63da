"""From a request to what does it."""

from collections.abc import Mapping
from importlib import import_module
from typing import Final

from sharecons.admin import ShareGroupAdmin
from sharecons.cli.exit_codes import Exit
from sharecons.cli.groups.request import Request

__all__ = ["carry_out"]

_HOMES: Final[Mapping[str, tuple[str, str]]] = {
    "list": ("list_groups", "list_groups"),
    "describe": ("describe", "describe"),
    "offsets": ("describe", "offsets"),
    "members": ("describe", "members"),
    "state": ("describe", "state"),
    "configure": ("configure", "configure"),
    "reset-offsets": ("reset_offsets", "reset_offsets"),
    "delete-offsets": ("delete", "delete_offsets"),
    "delete": ("delete", "delete"),
}


async def carry_out(admin: ShareGroupAdmin, request: Request) -> Exit:
    """Do what is asked, show it, and give the exit code."""
    # Loaded one by one: a command is to answer before one has looked up.
    module, name = _HOMES[request.action]
    action = getattr(import_module(f"sharecons.cli.groups.{module}"), name)
    code: Exit = await action(admin, request)
    return code
