"""The function that runs each action."""

from collections.abc import Mapping
from importlib import import_module
from typing import Final

from sharecons.admin import ShareGroupAdmin
from sharecons.cli.exit_codes import ExitCode
from sharecons.cli.groups.request import Request

__all__ = ["run_action"]

_ACTIONS: Final[Mapping[str, tuple[str, str]]] = {
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


async def run_action(admin: ShareGroupAdmin, request: Request) -> ExitCode:
    """Run an action, which writes its result; return the exit code."""
    # Import only the module of this action, to start fast.
    module, name = _ACTIONS[request.action]
    action = getattr(import_module(f"sharecons.cli.groups.{module}"), name)
    code: ExitCode = await action(admin, request)
    return code
