"""The configs of its group that a worker follows: they can change while it runs."""

from collections.abc import Callable
from typing import Final

from sharecons.member.lock_keeper import LockKeeper
from sharecons.member.record_source import SourceConfigs
from sharecons.worker.machine.decisions import Decisions
from sharecons.worker.machine.item import WorkItem
from sharecons.worker.machine.window import WindowTracker

__all__ = ["GroupSettings"]

RENEWALS_OFF: Final = "the group has share.renew.acknowledge.enable=false"


class GroupSettings:
    """Keeps a worker up to date with the configs of its group.

    Args:
        configs: reads them, for the consumer as well.
    """

    def __init__(
        self,
        configs: SourceConfigs,
        locks: LockKeeper[WorkItem],
        window: WindowTracker,
        decisions: Decisions,
    ) -> None:
        self._configs = configs
        self._locks = locks
        self._window = window
        self._decisions = decisions
        self._renews = True
        configs.subscribe(self._apply)

    async def follow(self, on_limit: Callable[[], object]) -> None:
        """Read the configs now; the reader then repeats it.

        Args:
            on_limit: is called once, when the delivery limit is known: then no last
                delivery is released by mistake. The consumer has read it at its start.
        """
        self._apply()
        on_limit()
        await self._configs.read()

    async def read_limit(self) -> None:
        """Read how often the group delivers a record."""
        await self._configs.read()

    def _apply(self) -> None:
        configs = self._configs
        self._decisions.delivery_limit = (
            configs.delivery_limit or self._decisions.delivery_limit
        )
        self._window.window = configs.window or self._window.window
        if configs.renews is not None and configs.renews != self._renews:
            self._renews = configs.renews
            if configs.renews:
                self._locks.resume_renewing()
            else:
                self._locks.stop_renewing(RENEWALS_OFF)
