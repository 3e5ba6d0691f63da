"""Accounts for every acquired offset while a payload's batches are read in turn.

An acquired offset ends up in one of four places, and in no second one:

- `records`: the log has a record there, and here it is;
- `gaps`: the log is known to have none;
- `undecodable`: the log may have one, but its bytes are damaged;
- `unseen`: the payload ended before it.

Theory of operation
-------------------
`settled` is the offset up to which all is accounted for. A batch whose checksum is
right settles what is before it and what is in it: what lies between two such batches
is a gap, since compaction removes batches as well as records. A damaged one settles
nothing, since no word of its header can be relied upon; it waits for the next good
batch to tell where the damage ends.

An acknowledged gap is archived, so that a record mistaken for one is lost; a released
offset comes again. Hence all doubt makes offsets undecodable or unseen, never a gap: a
hole beside a damaged batch, and every hole of a payload whose batches are not in
order. What no reader can tell: the base offset of a batch has no checksum.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple, final

from sharecons._record import Record
from sharecons.records.layout import Header
from sharecons.records.record_decoder import BEYOND, LAST_OFFSET, Span

__all__ = ["Account", "Decoded", "Undecodable"]

Range = tuple[int, int]


class Undecodable(NamedTuple):
    """Acquired offsets whose bytes are damaged, and what is wrong with them."""

    first_offset: int
    last_offset: int
    reason: str


@final
class Decoded:
    """What became of the acquired offsets; each is in exactly one of the four.

    Attributes:
        records: those at acquired offsets, ascending.
        gaps: inclusive ranges of acquired offsets for which the log has no record.
        undecodable: acquired ranges whose bytes are damaged.
        unseen: acquired ranges that the payload ended before.
    """

    __slots__ = ("gaps", "records", "undecodable", "unseen")

    def __init__(self, records: list[Record]) -> None:
        self.records = records
        self.gaps: list[Range] = []
        self.undecodable: list[Undecodable] = []
        self.unseen: list[Range] = []


@final
class Account:
    __slots__ = (
        "_acquired",
        "_around",
        "_around_first",
        "_around_last",
        "_claimed",
        "_damage",
        "_highest",
        "_last_offsets",
        "_lowest",
        "_out_of_order",
        "decoded",
        "settled",
    )

    def __init__(self, acquired: Sequence[Span]) -> None:
        self.decoded = Decoded([])
        self.settled = 0
        self._acquired = acquired
        self._last_offsets = [span[1] for span in acquired]
        # Nothing is acquired before the one, or behind the other.
        self._lowest = acquired[0][0] if acquired else 0
        self._highest = acquired[-1][1] if acquired else -1
        # Base offset and reason of each damaged batch since the last good one, and
        # the last offset that any of them claims to have.
        self._damage: list[tuple[int, str]] = []
        self._claimed = -1
        self._out_of_order = False
        # The one acquired range that batches lie in, most of the time; then `BEYOND`.
        self._around: list[Span] = [BEYOND]
        self._around_first = 0
        self._around_last = -1
        if len(acquired) == 1:
            self._around = [acquired[0], BEYOND]
            self._around_first, self._around_last, _ = acquired[0]

    def spans(self, first: int, last: int) -> list[Span]:
        """Give the acquired spans that overlap the range, then `BEYOND`."""
        if self._around_first <= first and last <= self._around_last:
            return self._around
        spans: list[Span] = []
        index = bisect_left(self._last_offsets, first)
        while index < len(self._acquired) and self._acquired[index][0] <= last:
            spans.append(self._acquired[index])
            index += 1
        spans.append(BEYOND)
        if len(spans) == 2:
            self._around = spans
            self._around_first, self._around_last, _ = spans[0]
        return spans

    def is_wanted(self, last: int) -> bool:
        """Whether any acquired offset lies between what is settled and this one."""
        if self._around_first <= last <= self._around_last:
            return True
        index = bisect_left(self._last_offsets, self.settled)
        return index < len(self._acquired) and self._acquired[index][0] <= last

    def good(self, header: Header, spans: list[Span], count: int) -> None:
        """Settle a batch whose checksum is right.

        The last `count` of the records are its own, all that it has inside the spans.
        """
        first, last = header.base_offset, header.last_offset
        if first != self.settled or self._damage:
            self._settle_hole(first - 1)
        self.settled = last + 1
        if count <= last - first:
            records = self.decoded.records
            own = records[len(records) - count :]
            self.decoded.gaps += _holes(_clip(spans, first, last), own)

    def damaged(self, base_offset: int, last_offset: int, reason: str) -> None:
        """Note a batch that cannot be used, at the offsets that it claims to have."""
        if base_offset < self.settled:
            self._out_of_order = True
        start = self._damage[-1][0] if self._damage else -1
        if not self._damage or base_offset > max(start, self.settled):
            self._damage.append((base_offset, reason))
        self._claimed = max(self._claimed, last_offset)

    def lost(self, reason: str) -> None:
        """Note that no further batch can be found, though the payload goes on."""
        self.damaged(max(self.settled, self._claimed + 1), LAST_OFFSET, reason)

    def finish(self) -> Decoded:
        decoded = self.decoded
        if self._damage:
            self._settle_hole(self._claimed)
        decoded.unseen = self._acquired_in(self.settled, LAST_OFFSET)
        if self._out_of_order:
            reason = "a hole between batches that are not in order"
            decoded.undecodable += [Undecodable(*gap, reason) for gap in decoded.gaps]
            decoded.undecodable.sort()
            decoded.gaps = []
        return decoded

    def _settle_hole(self, last: int) -> None:
        if self._damage:
            self._settle_damage(last)
        else:
            self.decoded.gaps += self._acquired_in(self.settled, last)

    def _settle_damage(self, last: int) -> None:
        # Each damaged batch answers for what lies before the next one, the first for
        # what lies before itself too.
        first = self.settled
        ends = [base_offset - 1 for base_offset, _ in self._damage[1:]]
        ends.append(last)
        for (_, reason), end in zip(self._damage, ends, strict=True):
            for start, stop in self._acquired_in(first, min(end, last)):
                self.decoded.undecodable.append(Undecodable(start, stop, reason))
            first = end + 1
        self.settled = max(self.settled, last + 1)
        self._damage = []
        self._claimed = -1

    def _acquired_in(self, first: int, last: int) -> list[Range]:
        if first > self._highest or last < self._lowest or first > last:
            return []
        return _clip(self.spans(first, last), first, last)


def _clip(spans: list[Span], first: int, last: int) -> list[Range]:
    return [(max(span[0], first), min(span[1], last)) for span in spans[:-1]]


def _holes(wanted: list[Range], records: list[Record]) -> list[Range]:
    """Give what is left of the ranges without the offsets of the records in them."""
    holes: list[Range] = []
    index = 0
    for first, last in wanted:
        due = first
        while index < len(records) and records[index].offset <= last:
            offset = records[index].offset
            if offset > due:
                holes.append((due, offset - 1))
            due = offset + 1
            index += 1
        if due <= last:
            holes.append((due, last))
    return holes
