"""The configs of its group that a worker follows: they can change while it runs."""

from collections.abc import Awaitable, Callable
from typing import Final

import anyio

from sharecons.worker.decisions import Decisions
from sharecons.worker.locks import LockKeeper
from sharecons.worker.window import WindowTracker

__all__ = ["GroupSettings"]

RENEWALS: Final = "share.renew.acknowledge.enable"
WINDOW: Final = "share.partition.max.record.locks"
DELIVERIES: Final = "share.delivery.count.limit"

INTERVAL: Final = 60.0
"""Seconds between two readings."""

FIRST_READ: Final = 0.3
"""Seconds to wait for the delivery limit before the first record is taken."""


class GroupSettings:
    """Keeps a worker up to date with the configs of its group.

    Args:
        read: returns a config of the group; None if it is unknown or not readable.
    """

    def __init__(
        self,
        read: Callable[[str], Awaitable[str | None]],
        locks: LockKeeper,
        window: WindowTracker,
        decisions: Decisions,
    ) -> None:
        self._read = read
        self._locks = locks
        self._window = window
        self._decisions = decisions

    async def follow(self, on_limit: Callable[[], object]) -> None:
        """Read the configs once a minute, until cancelled.

        Args:
            on_limit: is called once, when the delivery limit is known: then no last
                delivery is released by mistake. Without a response it is called after
                FIRST_READ seconds.
        """
        with anyio.move_on_after(FIRST_READ):
            await self.read_limit()
        on_limit()
        while True:
            if await self._read(RENEWALS) == "false":
                self._locks.stop_renewing(f"the group has {RENEWALS}=false")
            window = self._window
            window.window = _number(await self._read(WINDOW), window.window)
            await self.read_limit()
            await anyio.sleep(INTERVAL)

    async def read_limit(self) -> None:
        """Read how often the group delivers a record."""
        decisions = self._decisions
        limit = _number(await self._read(DELIVERIES), decisions.delivery_limit)
        decisions.delivery_limit = limit


def _number(text: str | None, default: int) -> int:
    return max(1, int(text)) if text is not None and text.isdigit() else default
