"""The progress of reading ranges of one partition.

Rule 1: the remaining ranges, and an estimate of their size in bytes, are here.
Rule 2: leaders and responses are the reader's business.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, final

from sharecons.protocol.backoff import Backoff
from sharecons.protocol.partitions import PartitionLeader, SharePartition

__all__ = ["Cursor", "Span", "spans_by_partition"]

Span = tuple[int, int, int]
"""First offset, last offset and delivery count of a requested range."""

INITIAL_OFFSET_BYTES: Final = 256.0
"""Estimated bytes per offset before the first response."""

MAX_GAP: Final = 64 << 10
"""Bytes of the largest gap between ranges that is read through, since a separate fetch
costs as much."""

MIN_BYTES: Final = 32 << 10
MAX_BYTES: Final = 4 << 20
"""Bytes per partition and request: a response is decoded while the next one is in
flight, and both are in memory."""


class OffsetRange(Protocol):
    """A range of offsets, like the ranges of the ledger."""

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
        ValueError: an offset is in two ranges, which no ledger has.
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
    """Consecutive failures: their start, their number and the latest reason."""

    since: float
    tries: int
    reason: str


@final
class Cursor:
    """The position in one partition, moving through the requested ranges.

    Attributes:
        offset: the next requested offset.
        finished: True if no requested offset is left.
        leader: the broker to fetch from; None until looked up.
        not_before: the earliest time of the next request.
        failures: the failures since the last progress, or None.
        out_of_range: True after OFFSET_OUT_OF_RANGE.
        beyond_end: number of times that the offset was beyond the log's end.
        unknown_since: since when the topic is unknown to brokers; None if known.
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
        """Return the estimated bytes up to the next large gap."""
        need = 0.0
        offset = self.offset
        for index in range(self._index, len(self._spans)):
            first, last, _ = self._spans[index]
            if (first - offset) * self._bytes_per_offset > MAX_GAP or need > MAX_BYTES:
                break
            need += (last + 1 - offset) * self._bytes_per_offset
            offset = last + 1
        # Slightly more than estimated: a response without the last batch would need
        # another request for it.
        return int(min(max(need * 1.125, MIN_BYTES), MAX_BYTES))

    def advance(self, after: int, size: int) -> Sequence[Span]:
        """Move to `after`, read with `size` bytes; return the ranges read.

        Fetch returns whole batches. Their offsets below `offset` were read before, or
        were reported lost.
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
        """Skip all offsets below `before`, or all remaining offsets if None.

        Returns the first and the last requested offset among them.
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
        """Count a failure, and set the time of the next try."""
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
