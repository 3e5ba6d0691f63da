"""The positions that each `load()` of a batch reads.

Rule: no file and no clock here. `sharecons.spark.store` writes each change to its
storage first.

Spark can plan one `load()` several times: for both sides of a self-join, for a second
action, or after a failed job. The first planning acquires records; the others read the
same positions. If a planning fails while it acquires, the load stays open, and the next
planning continues it. Other drivers can use the ledger in between, so a load is a list
of spans.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import final

__all__ = ["Load", "Loads"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The positions that one `load()` reads.

    Attributes:
        start: the first position to read; it is before `ledger_end` if the load also
            reads ranges that were in the ledger before.
        ledger_end: the end of the ledger when the load was first planned.
        spans: positions acquired for the load, ends excluded, in order.
        open_since: the start of the span that is being acquired; None if there is none.
        is_complete: nothing more is acquired for the load.
    """

    start: int
    ledger_end: int
    spans: tuple[tuple[int, int], ...] = ()
    open_since: int | None = None
    is_complete: bool = False

    @property
    def acquired(self) -> int:
        """The number of offsets in `spans`."""
        return sum(end - first for first, end in self.spans)

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """The positions to read, ends excluded, in order."""
        ranges = [(self.start, self.ledger_end), *self.spans]
        from_start = [(max(first, self.start), end) for first, end in ranges]
        return [(first, end) for first, end in from_start if first < end]

    def with_span_closed(self, position: int) -> "Load":
        """Return a copy in which the open span ends at a position."""
        if self.open_since is None:
            return self
        spans = self.spans
        if self.open_since < position:
            spans = (*spans, (self.open_since, position))
        return replace(self, spans=spans, open_since=None)


@final
class Loads:
    """All loads of a ledger, by their ids."""

    def __init__(self, loads: Mapping[str, Load] | None = None) -> None:
        self._loads = dict(loads or {})

    def get(self, load_id: str) -> Load | None:
        return self._loads.get(load_id)

    def items(self) -> Iterator[tuple[str, Load]]:
        return iter(self._loads.items())

    def __len__(self) -> int:
        return len(self._loads)

    def begin(self, load_id: str, start: int, position: int) -> None:
        """Open a span of a load, which acquires from `position`.

        `start` is ignored for a load that was begun before.
        """
        load = self._loads.get(load_id, Load(start=start, ledger_end=position))
        self._loads[load_id] = replace(
            load.with_span_closed(position), open_since=position
        )

    def interrupt(self, position: int) -> None:
        """Close the open spans, since another driver has opened the ledger."""
        for load_id, load in self._loads.items():
            self._loads[load_id] = load.with_span_closed(position)

    def complete(self, load_id: str, position: int) -> None:
        """Complete a load, and close its open span at a position."""
        self._loads[load_id] = replace(
            self._loads[load_id].with_span_closed(position), is_complete=True
        )
