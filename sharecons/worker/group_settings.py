"""The configs of its group that a worker follows: they can change while it runs."""

from collections.abc import Awaitable, Callable
from typing import Final

import anyio

from sharecons.worker.decisions import Decisions
from sharecons.worker.locks import LockKeeper
from sharecons.worker.window import WindowTracker

__all__ = ["follow_group_settings"]

RENEWALS: Final = "share.renew.acknowledge.enable"
WINDOW: Final = "share.partition.max.record.locks"
DELIVERIES: Final = "share.delivery.count.limit"

INTERVAL: Final = 60.0
"""Seconds between two readings."""

FIRST_READ: Final = 0.3
"""Seconds to wait for the delivery limit before the first record is taken."""


async def follow_group_settings(
    read: Callable[[str], Awaitable[str | None]],
    locks: LockKeeper,
    window: WindowTracker,
    decisions: Decisions,
    on_limit: Callable[[], object],
) -> None:
    """Keep a worker up to date with the configs of its group, until cancelled.

    Args:
        read: returns a config of the group; None if it is unknown or not readable.
        on_limit: is called once, when the delivery limit is known: then no last
            delivery is released by mistake. Without a response it is called after
            FIRST_READ seconds.
    """
    with anyio.move_on_after(FIRST_READ):
        limit = _number(await read(DELIVERIES), decisions.delivery_limit)
        decisions.delivery_limit = limit
    on_limit()
    while True:
        if await read(RENEWALS) == "false":
            locks.stop_renewing(f"the group has {RENEWALS}=false")
        window.window = _number(await read(WINDOW), window.window)
        limit = _number(await read(DELIVERIES), decisions.delivery_limit)
        decisions.delivery_limit = limit
        await anyio.sleep(INTERVAL)


def _number(text: str | None, default: int) -> int:
    return max(1, int(text)) if text is not None and text.isdigit() else default
