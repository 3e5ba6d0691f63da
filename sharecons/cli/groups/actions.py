"""From a request to what does it."""

from collections.abc import Mapping
from importlib import import_module
from typing import Final

from sharecons.admin import ShareGroupAdmin
from sharecons.cli.groups.request import Request
from sharecons.cli.outcome import Exit

__all__ = ["carry_out"]

_HOMES: Final[Mapping[str, tuple[str, str]]] = {
    "list": ("listing", "list_groups"),
    "describe": ("describing", "describe"),
    "offsets": ("describing", "offsets"),
    "members": ("describing", "members"),
    "state": ("describing", "state"),
    "configure": ("configuring", "configure"),
    "reset-offsets": ("resetting", "reset_offsets"),
    "delete-offsets": ("changing", "delete_offsets"),
    "delete": ("changing", "delete"),
}


async def carry_out(admin: ShareGroupAdmin, request: Request) -> Exit:
    """Do what is asked, show it, and give the exit code."""
    # Loaded one by one: a command is to answer before one has looked up.
    module, name = _HOMES[request.action]
    action = getattr(import_module(f"sharecons.cli.groups.{module}"), name)
    code: Exit = await action(admin, request)
    return code
