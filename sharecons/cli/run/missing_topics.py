"""Readiness of a worker: topics of its subscription that do not exist."""

from collections.abc import Callable, Collection
from typing import Final

import anyio

__all__ = ["MISSING_AFTER", "MissingTopicsWatch"]

MISSING_AFTER: Final = 30.0
"""Seconds for which a topic is missing before the worker is not ready: topics can be
created together with their consumers."""

LOOK_INTERVAL: Final = 1.0


class MissingTopicsWatch:
    """Measures for how long topics are missing: `run` is a task.

    Args:
        names: returns the topics that are missing now.
        clock: returns the time in seconds.
    """

    def __init__(
        self, names: Callable[[], Collection[str]], clock: Callable[[], float]
    ) -> None:
        self._names = names
        self._clock = clock
        self._since: dict[str, float] = {}

    async def run(self) -> None:
        while True:
            self.look()
            await anyio.sleep(LOOK_INTERVAL)

    def look(self) -> None:
        """Note which topics are missing now."""
        now = self._clock()
        # A new object, as another thread can read the old one.
        self._since = {name: self._since.get(name, now) for name in self._names()}

    def problem(self) -> str | None:
        """Return that topics are missing, or None; any thread can call this."""
        now = self._clock()
        since = self._since
        missing = [name for name in since if now - since[name] >= MISSING_AFTER]
        if not missing:
            return None
        names = ", ".join(repr(name) for name in sorted(missing))
        return (
            f"subscribed topics do not exist for {MISSING_AFTER:g} s: {names}; create "
            "them, or correct the subscription"
        )
