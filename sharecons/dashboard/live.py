"""The content of all pages: the latest collection, and the history."""

import time
from collections.abc import Mapping
from typing import Final

import anyio

from sharecons.dashboard.history import History
from sharecons.dashboard.rows import GroupRow, group_row
from sharecons.group_state.collector import CollectedGroups, GroupCollector

__all__ = ["Live"]

NEVER: Final = CollectedGroups(at=0.0, duration=0.0, reached=False)

OPEN_SECONDS: Final = 600.0
"""Seconds for which a group counts as open after its page was read."""

MAX_OPEN: Final = 8


class Live:
    """Receives collections (`group_state.polling`); pages read it and wait for changes.

    Attributes:
        collected: the latest collection.
        rows: by group, with the values of earlier collections where none could be read.
        version: is raised by each change.
        reached: True while a broker responds.
        is_closed: True once the server stops.
    """

    def __init__(self, collector: GroupCollector) -> None:
        self._collector = collector
        self.collected = NEVER
        self.rows: Mapping[str, GroupRow] = {}
        self.history = History()
        self.version = 0
        self.reached = False
        self.is_closed = False
        self._changed = anyio.Event()
        self._opened: dict[str, float] = {}

    def open(self, group_id: str) -> None:
        """Keep the history of each partition of this group, while it is looked at."""
        self._opened.pop(group_id, None)
        self._opened[group_id] = time.monotonic()

    def update(self, collected: CollectedGroups) -> None:
        """Show a newer collection."""
        self.collected = collected
        self.reached = collected.reached
        self._forget_closed()
        self.history.add(collected)
        self.rows = {
            group_id: group_row(group_id, state, self.history, collected.at)
            for group_id, state in self._collector.latest.items()
        }
        self.show_change()

    def show_change(self) -> None:
        """Have all pages load their content again."""
        self.version += 1
        self._changed.set()
        self._changed = anyio.Event()

    def close(self) -> None:
        """End all waiting for changes."""
        self.is_closed = True
        self.show_change()

    def broker_responded(self) -> None:
        """Show that a broker responds, before a collection has ended."""
        self.reached = True

    async def wait_for_change(self, version: int) -> int:
        """Wait until there is a newer version than this, and return it."""
        while self.version <= version:
            await self._changed.wait()
        return self.version

    def _forget_closed(self) -> None:
        oldest = time.monotonic() - OPEN_SECONDS
        kept = [(key, at) for key, at in self._opened.items() if at > oldest]
        self._opened = dict(kept[-MAX_OPEN:])
        self.history.watch(self._opened)
