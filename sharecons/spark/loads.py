"""What each `load()` of a batch acquired, by position.

Rule: no file, no clock. `sharecons.spark.store` writes each change before it is noted
here.

Spark may plan one `load()` several times: for both sides of a self-join, for a second
action, after a failed job. The first planning acquires; the others read the same
positions. A planning that dies between acquiring and its end leaves the load open, and
the next one continues it. Other drivers may use the ledger in between, so a load is a
list of spans, and not one range.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import final

__all__ = ["Load", "Loads"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The positions that one `load()` reads.

    Attributes:
        start: the first position; before `held` if the load also reads what the ledger
            held when it was first planned.
        held: where the ledger ended then.
        spans: positions that were acquired for it, ends excluded, in order.
        since: where the span begins that is being acquired; None if there is none.
        is_complete: nothing more is acquired for it.
    """

    start: int
    held: int
    spans: tuple[tuple[int, int], ...] = ()
    since: int | None = None
    is_complete: bool = False

    @property
    def acquired(self) -> int:
        """Return the number of offsets that were acquired for it."""
        return sum(end - first for first, end in self.spans)

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """Return the positions to read, ends excluded, in order."""
        ranges = [(self.start, self.held), *self.spans]
        from_start = [(max(first, self.start), end) for first, end in ranges]
        return [(first, end) for first, end in from_start if first < end]

    def closed(self, at: int) -> "Load":
        """Return the load with the span that is being acquired ended at a position."""
        if self.since is None:
            return self
        spans = self.spans
        if self.since < at:
            spans = (*spans, (self.since, at))
        return replace(self, spans=spans, since=None)


@final
class Loads:
    """All loads of a ledger, by their ids."""

    def __init__(self, known: Mapping[str, Load] | None = None) -> None:
        self._loads = dict(known or {})

    def get(self, load_id: str) -> Load | None:
        return self._loads.get(load_id)

    def items(self) -> Iterator[tuple[str, Load]]:
        return iter(self._loads.items())

    def __len__(self) -> int:
        return len(self._loads)

    def begin(self, load_id: str, start: int, at: int) -> None:
        """Acquire for a load from position `at` on; `start` counts the first time."""
        load = self._loads.get(load_id, Load(start=start, held=at))
        self._loads[load_id] = replace(load.closed(at), since=at)

    def interrupt(self, at: int) -> None:
        """End what is being acquired: another driver opened the ledger."""
        for load_id, load in self._loads.items():
            self._loads[load_id] = load.closed(at)

    def complete(self, load_id: str, at: int) -> None:
        """Acquire nothing more for a load."""
        self._loads[load_id] = replace(
            self._loads[load_id].closed(at), is_complete=True
        )
