"""From a request to what does it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from sharecons.admin import ShareGroupAdmin
from sharecons.cli.groups import changing, configuring, describing, listing, resetting
from sharecons.cli.groups.request import Request
from sharecons.cli.outcome import Exit

__all__ = ["carry_out"]

_ACTIONS: Final[Mapping[str, Callable[[ShareGroupAdmin, Request], Awaitable[Exit]]]] = {
    "list": listing.list_groups,
    "describe": describing.describe,
    "offsets": describing.offsets,
    "members": describing.members,
    "state": describing.state,
    "configure": configuring.configure,
    "reset-offsets": resetting.reset_offsets,
    "delete-offsets": changing.delete_offsets,
    "delete": changing.delete,
}


async def carry_out(admin: ShareGroupAdmin, request: Request) -> Exit:
    """Do what is asked, show it, and give the exit code."""
    return await _ACTIONS[request.action](admin, request)
