"""How far one partition is read, of the ranges that are wanted of it.

Rule 1: what is left of a partition, and how many bytes that may be, is known here.
Rule 2: who leads the partition, and what the broker said, is `reading`'s.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, final

from sharecons.protocol.backoff import Backoff
from sharecons.protocol.messages import PartitionLeader, SharePartition

__all__ = ["Cursor", "Span", "spans_by_partition"]

Span = tuple[int, int, int]
"""First offset, last offset and delivery count of what is wanted."""

INITIAL_OFFSET_BYTES: Final = 256.0
"""Bytes an offset may take, until the first answer tells."""

MAX_GAP: Final = 64 << 10
"""A hole in what is wanted is read through, if it is not larger than this: as much as
a fetch of its own costs."""

MIN_BYTES: Final = 32 << 10
MAX_BYTES: Final = 4 << 20
"""Bytes asked of one partition at a time: an answer is decoded while the next is under
way, and both lie in memory."""


class OffsetRange(Protocol):
    """A range of offsets, such as the ledger's."""

    @property
    def share_partition(self) -> SharePartition: ...

    @property
    def first_offset(self) -> int: ...

    @property
    def last_offset(self) -> int: ...

    @property
    def delivery_count(self) -> int: ...


def spans_by_partition(
    ranges: Iterable[OffsetRange],
) -> Mapping[SharePartition, Sequence[Span]]:
    """Sort ranges by partition and offset.

    Raises:
        ValueError: an offset is in two of them; no ledger has that.
    """
    sorted_: dict[SharePartition, list[Span]] = {}
    for each in sorted(ranges, key=lambda r: (r.share_partition, r.first_offset)):
        spans = sorted_.setdefault(each.share_partition, [])
        if spans and each.first_offset <= spans[-1][1]:
            raise ValueError(
                f"{each.share_partition}: offset {each.first_offset} is in two ranges"
            )
        spans.append((each.first_offset, each.last_offset, each.delivery_count))
    return sorted_


class Failures(NamedTuple):
    """What is wrong, since when and for how many tries, without progress between."""

    since: float
    tries: int
    reason: str


@final
class Cursor:
    """Reads one partition, from one wanted offset to the next.

    Attributes:
        offset: the next one that is wanted.
        finished: there is none.
        leader: who is asked; None while nobody knows.
        due: not to be asked before.
        trouble: what has been wrong since the last progress.
        astray: the broker says that the offset is not in the log.
        beyond: how often it was found to lie beyond the log's end.
        gone_since: since when the topic is not known; None if it is.
    """

    def __init__(
        self, share_partition: SharePartition, spans: Sequence[Span], spread: float
    ) -> None:
        self.share_partition = share_partition
        self.offset = spans[0][0]
        self.finished = False
        self.leader: PartitionLeader | None = None
        self.not_before = 0.0
        self.failures: Failures | None = None
        self.out_of_range = False
        self.beyond_end = 0
        self.unknown_since: float | None = None
        self._spans = spans
        self._index = 0
        self._bytes_per_offset = INITIAL_OFFSET_BYTES
        self._backoff = Backoff(spread)

    def max_bytes(self) -> int:
        """Guess how many bytes there are up to the next large hole."""
        need = 0.0
        offset = self.offset
        for index in range(self._index, len(self._spans)):
            first, last, _ = self._spans[index]
            if (first - offset) * self._bytes_per_offset > MAX_GAP or need > MAX_BYTES:
                break
            need += (last + 1 - offset) * self._bytes_per_offset
            offset = last + 1
        # A little more than the guess: an answer that lacks the last batch is
        # followed by a fetch for that one.
        return int(min(max(need * 1.125, MIN_BYTES), MAX_BYTES))

    def advance(self, after: int, size: int) -> Sequence[Span]:
        """So many bytes brought all up to `after`; gives the ranges in that.

        A batch is given whole. What it has below `offset` was read before, or told to
        be lost.
        """
        self._bytes_per_offset = size / (after - self.offset)
        self._clear_failures()
        before, start = self._index, self.offset
        self._move_to(after)
        last = self._index + (not self.finished and self._is_range_started(after))
        spans = list(self._spans[before:last])
        spans[0] = (start, *spans[0][1:])
        return spans

    def skip(self, before: int | None) -> tuple[int, int]:
        """Nothing below `before` can be read, or nothing more at all.

        Gives the first and the last offset that were wanted of it.
        """
        first, last = self.offset, self._spans[-1][1]
        if before is not None and before <= last:
            index = self._index
            while self._spans[index][1] < before:
                index += 1
            if self._spans[index][0] < before:
                last = before - 1
            else:
                last = self._spans[index - 1][1]
        self._clear_failures()
        self._move_to(last + 1)
        return first, last

    def on_failure(self, reason: str, now: float) -> Failures:
        """Nothing came: ask again, after a while."""
        before = self.failures or Failures(now, 0, reason)
        self.failures = Failures(before.since, before.tries + 1, reason)
        self.not_before = now + self._backoff.next_delay()
        return self.failures

    def _clear_failures(self) -> None:
        self.failures = None
        self.beyond_end = 0
        self.not_before = 0.0
        self._backoff.reset()

    def _move_to(self, after: int) -> None:
        while self._index < len(self._spans) and self._spans[self._index][1] < after:
            self._index += 1
        self.finished = self._index == len(self._spans)
        if not self.finished:
            self.offset = max(after, self._spans[self._index][0])

    def _is_range_started(self, after: int) -> bool:
        return self._spans[self._index][0] < after
