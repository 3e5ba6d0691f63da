"""Accounts for every acquired offset while a payload's batches are read in order.

Each acquired offset ends up in exactly one of four lists:

- `records`: the log has a record at this offset;
- `gaps`: the log has no record at this offset;
- `undecodable`: the log might have a record, but its bytes are damaged;
- `unseen`: the payload ends before this offset.

Theory of operation
-------------------
All offsets below `settled` are accounted for. A batch with a correct checksum settles
the offsets before it and in it: offsets between two correct batches are a gap, since
compaction removes batches as well as records. A damaged batch settles nothing, since
its header might be wrong too; the next correct batch shows where the damage ends.

An acknowledged gap is archived, so a record mistaken for a gap would be lost; a
released offset is delivered again. So in doubt offsets become undecodable or unseen,
not gaps: those next to a damaged batch, and all gaps of a payload whose batches are not
in order. One error cannot be detected: no checksum covers a batch's base offset.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple, final

from sharecons._record import Record
from sharecons.records.batch_header import LAST_OFFSET, Header
from sharecons.records.offset_set import OffsetSet
from sharecons.records.record_decoder import END_OF_SPANS, Span

__all__ = ["Decoded", "OffsetAccounting", "Undecodable"]

Range = tuple[int, int]


class Undecodable(NamedTuple):
    """Acquired offsets whose bytes are damaged, and the damage as text."""

    first_offset: int
    last_offset: int
    reason: str


@final
class Decoded:
    """The acquired offsets, each in exactly one of four lists.

    Attributes:
        records: the records at acquired offsets, ascending.
        gaps: inclusive ranges of acquired offsets without a record in the log.
        undecodable: acquired ranges whose bytes are damaged.
        unseen: acquired ranges after the end of the payload.
        size: the bytes of the records, uncompressed, each with its length.
    """

    __slots__ = ("gaps", "records", "size", "undecodable", "unseen")

    def __init__(self, records: list[Record]) -> None:
        self.records = records
        self.gaps: list[Range] = []
        self.undecodable: list[Undecodable] = []
        self.unseen: list[Range] = []
        self.size = 0


@final
class OffsetAccounting:
    __slots__ = (
        "_acquired",
        "_current_first",
        "_current_last",
        "_current_spans",
        "_damage",
        "_damage_last",
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
        # The first and the last acquired offset.
        self._lowest = acquired[0][0] if acquired else 0
        self._highest = acquired[-1][1] if acquired else -1
        # Base offset and reason of each damaged batch since the last correct one, and
        # the largest last offset in their headers.
        self._damage: list[tuple[int, str]] = []
        self._damage_last = -1
        self._out_of_order = False
        # The acquired range that most batches are in, then `END_OF_SPANS`.
        self._current_spans: list[Span] = [END_OF_SPANS]
        self._current_first = 0
        self._current_last = -1
        if len(acquired) == 1:
            self._current_spans = [acquired[0], END_OF_SPANS]
            self._current_first, self._current_last, _ = acquired[0]

    def overlapping_spans(self, first: int, last: int) -> list[Span]:
        """Return the acquired spans that overlap the range, then `END_OF_SPANS`."""
        if self._current_first <= first and last <= self._current_last:
            return self._current_spans
        spans: list[Span] = []
        index = bisect_left(self._last_offsets, first)
        while index < len(self._acquired) and self._acquired[index][0] <= last:
            spans.append(self._acquired[index])
            index += 1
        spans.append(END_OF_SPANS)
        if len(spans) == 2:
            self._current_spans = spans
            self._current_first, self._current_last, _ = spans[0]
        return spans

    def has_acquired_before(self, last: int) -> bool:
        """Return whether an unsettled acquired offset is not after `last`."""
        if self._current_first <= last <= self._current_last:
            return True
        index = bisect_left(self._last_offsets, self.settled)
        return index < len(self._acquired) and self._acquired[index][0] <= last

    def settle_batch(self, header: Header, spans: list[Span], count: int) -> None:
        """Settle a batch whose checksum is correct.

        The last `count` of `decoded.records` are the batch's records in the spans.
        """
        first, last = header.base_offset, header.last_offset
        if first != self.settled or self._damage:
            self._settle_hole(first - 1)
        self.settled = last + 1
        if count <= last - first:
            records = self.decoded.records
            batch_records = records[len(records) - count :]
            self.decoded.gaps += _holes(_clip(spans, first, last), batch_records)

    def add_damaged(self, base_offset: int, last_offset: int, reason: str) -> None:
        """Add a damaged batch, with the offsets in its header."""
        if base_offset < self.settled:
            self._out_of_order = True
        start = self._damage[-1][0] if self._damage else -1
        if not self._damage or base_offset > max(start, self.settled):
            self._damage.append((base_offset, reason))
        self._damage_last = max(self._damage_last, last_offset)

    def add_damaged_message(self, last_offset: int, reason: str) -> None:
        """Add a damaged message of format 0 or 1, which has only a last offset.

        If it is compressed, it can contain any offset since the previous one.
        """
        first_offset = max(self.settled, self._damage_last + 1)
        self.add_damaged(min(first_offset, last_offset), last_offset, reason)

    def add_unreadable_rest(self, reason: str) -> None:
        """Add the rest of a payload in which no further batch can be found."""
        self.add_damaged(max(self.settled, self._damage_last + 1), LAST_OFFSET, reason)

    def finish(self) -> Decoded:
        """Account for the offsets after the last batch; return the result."""
        decoded = self.decoded
        if self._damage:
            self._settle_hole(self._damage_last)
        decoded.unseen = self._acquired_ranges(self.settled, LAST_OFFSET)
        if self._out_of_order:
            reason = "a gap between batches that are not in order"
            decoded.undecodable += [Undecodable(*gap, reason) for gap in decoded.gaps]
            decoded.undecodable.sort()
            decoded.gaps = []
        return decoded

    def _settle_hole(self, last: int) -> None:
        if self._damage:
            self._settle_damage(last)
        else:
            self.decoded.gaps += self._acquired_ranges(self.settled, last)

    def _settle_damage(self, last: int) -> None:
        # A damaged batch's reason applies to the offsets up to the next damaged batch;
        # the first one's also to the offsets before it.
        first = self.settled
        ends = [base_offset - 1 for base_offset, _ in self._damage[1:]]
        ends.append(last)
        for (_, reason), end in zip(self._damage, ends, strict=True):
            for start, stop in self._acquired_ranges(first, min(end, last)):
                self.decoded.undecodable.append(Undecodable(start, stop, reason))
            first = end + 1
        self.settled = max(self.settled, last + 1)
        self._damage = []
        self._damage_last = -1

    def _acquired_ranges(self, first: int, last: int) -> list[Range]:
        if first > self._highest or last < self._lowest or first > last:
            return []
        return _clip(self.overlapping_spans(first, last), first, last)


def _clip(spans: list[Span], first: int, last: int) -> list[Range]:
    return [(max(span[0], first), min(span[1], last)) for span in spans[:-1]]


def _holes(wanted: list[Range], records: list[Record]) -> list[Range]:
    """Return the ranges without the offsets of the records in them."""
    present = OffsetSet.of([record.offset for record in records])
    return [hole for first, last in wanted for hole in present.missing(first, last)]
