"""Topics of a subscription that do not exist for some time."""

from collections.abc import Callable, Collection
from typing import final

__all__ = ["MissingTopicsWatch"]


@final
class MissingTopicsWatch:
    """Measures for how long topics are missing.

    Args:
        names: returns the topics that are missing now.
        after: seconds for which a topic is missing before this is a problem: topics can
            be created together with their consumers.
    """

    def __init__(self, names: Callable[[], Collection[str]], after: float) -> None:
        self._names = names
        self._after = after
        self._since: dict[str, float] = {}

    def look(self, now: float) -> None:
        """Measure how long topics are missing; call this once a second."""
        self._since = {name: self._since.get(name, now) for name in self._names()}

    def problem(self, now: float) -> str | None:
        """Return that topics are missing, or None."""
        since = self._since
        missing = [name for name in since if now - since[name] >= self._after]
        if not missing:
            return None
        names = ", ".join(repr(name) for name in sorted(missing))
        return (
            f"subscribed topics do not exist for {self._after:g} s: {names}; create "
            "them, or correct the subscription"
        )
