"""The ledger of a run that is too long to have all of its records in memory. Pure.

Consecutive numbers are a block. A block is closed when each of its records has an end
and nothing has happened to them for QUIET seconds; its figures are added to the totals,
and its records are forgotten.
"""

from collections.abc import Callable, Iterable, Mapping, MutableMapping, MutableSet
from typing import Final

from tests.chaos.journal import Entry
from tests.chaos.ledger import Ledger, Verdict

__all__ = ["Books"]

QUIET: Final = 120.0
"""Seconds: a redelivery comes earlier, since locks and sessions end in 45 s."""

PATIENCE: Final = 1800.0
"""Seconds after which a block is closed with losses."""


class Books:
    """The ledger of one group.

    Args:
        size: the numbers of a block.
        written: when each number was passed to the producer.
        confirmed: when each number was confirmed by the broker.
        dead: the numbers in the dead-letter topic.
        killed: when processes were killed, by the names of their journals.
        is_plain: see `Ledger`.

    The numbers of closed blocks are removed from the first three.

    Attributes:
        total: the figures of all closed blocks. A record that is handled after its
            block was closed is an unexplained duplicate.
    """

    def __init__(
        self,
        size: int,
        *,
        written: MutableMapping[int, float],
        confirmed: MutableMapping[int, float],
        dead: MutableSet[int],
        killed: Mapping[str, float],
        is_plain: Callable[[int], bool] = lambda _: True,
    ) -> None:
        self.total = Verdict()
        self._size = size
        self._written = written
        self._confirmed = confirmed
        self._dead = dead
        self._killed = killed
        self._is_plain = is_plain
        self._begin = 0
        self._entries: list[Entry] = []

    def add(self, entries: Iterable[Entry]) -> None:
        """Add entries of all processes."""
        for entry in entries:
            if entry.kind == "started":
                continue
            if 0 <= entry.number < self._begin:
                self.total.unexplained.append(entry.number)
            else:
                self._entries.append(entry)

    def close(self, now: float) -> None:
        """Close the blocks at the begin that have come to their ends."""
        while self._is_closable(now):
            self._close(self._begin + self._size)

    def close_all(self) -> None:
        """Close the rest: every record without an end is lost."""
        self._close(max(self._written, default=self._begin) + 1)

    @property
    def open(self) -> int:
        """The number of confirmed records without an end."""
        return len(self._ledger(self._confirmed, self._entries).unsettled())

    def _is_closable(self, now: float) -> bool:
        end = self._begin + self._size
        if end not in self._written:
            return False
        if now - self._written[end] > PATIENCE:
            return True
        times = [e.seconds for e in self._entries if 0 <= e.number < end]
        if now - max(times, default=now) <= QUIET:
            return False
        return not self._block(end).unsettled()

    def _close(self, end: int) -> None:
        self._count(self._block(end).verdict([], 0.0, 0.0))
        for number in range(self._begin, end):
            self._written.pop(number, None)
            self._confirmed.pop(number, None)
            self._dead.discard(number)
        self._begin = end
        oldest = self._written.get(end, 0.0)
        self._entries = [
            e
            for e in self._entries
            if (e.number >= end if e.number >= 0 else e.seconds >= oldest)
        ]

    def _block(self, end: int) -> Ledger:
        numbers = range(self._begin, end)
        confirmed = {n: self._confirmed[n] for n in numbers if n in self._confirmed}
        return self._ledger(confirmed, (e for e in self._entries if e.number < end))

    def _ledger(
        self, confirmed: Mapping[int, float], entries: Iterable[Entry]
    ) -> Ledger:
        dead = confirmed.keys() & self._dead
        return Ledger(confirmed, entries, dead, self._killed, is_plain=self._is_plain)

    def _count(self, verdict: Verdict) -> None:
        total = self.total
        total.produced += verdict.produced
        total.handled += verdict.handled
        total.rejected += verdict.rejected
        total.dead += verdict.dead
        total.lost += verdict.lost
        total.unexplained += verdict.unexplained
        total.delay = max(total.delay, verdict.delay)
        for reason, count in verdict.duplicates.items():
            total.duplicates[reason] = total.duplicates.get(reason, 0) + count
