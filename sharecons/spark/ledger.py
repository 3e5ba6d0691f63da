"""The ledger: the offsets that a query has acquired, in the order of acquisition.

Rule 1: only this file decides which offsets are new, which positions they have, and
when they are dropped.
Rule 2: no file, socket or clock here. `sharecons.spark.store` stores the ledger, and
callers write each change there first.

Theory of operation
-------------------
A share group cannot deliver a record twice on request, but Spark can read it twice. So
each acquired range of offsets is written to the ledger before it is accepted. The
records stay in Kafka's log, from which tasks read them as often as necessary. A
*position* is a number of offsets since the ledger's beginning, gaps in the log
included. It is Spark's offset, and two positions always stand for the same records.

Acquired offsets are delivered again if their acceptance was lost (a killed driver, an
expired lock). They have to be accepted again, but `select_new` leaves them out, so that
they are in the ledger once. The ledger knows an offset while it is between `begin` and
`end` (Spark can read it), and after that until the start offset of its share partition
has passed it (the group can deliver it again). The caller of `select_new` must hold the
locks of the ranges: the start offset cannot pass a locked record, so an offset that was
dropped by `set_start_offset` is never among them.

Ranges are stored in arrays, in 22 bytes each, and adjacent ranges of one partition and
delivery count are joined. A million ranges take 22 MB; as objects, ten times as much.
"""

from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final
from uuid import UUID

from sharecons.protocol.partitions import SharePartition, TopicId
from sharecons.records.offset_set import OffsetSet
from sharecons.spark.errors import LedgerLostError, LedgerMismatchError

__all__ = ["AcquiredRange", "Ledger", "Redeliverable", "describe_ranges"]

SHOWN_RANGES: Final = 5

Redeliverable = Mapping[SharePartition, Sequence[tuple[int, int]]]
"""Committed offsets that the group can deliver again."""


@dataclass(frozen=True, slots=True)
class AcquiredRange:
    """Acquired offsets of one partition, both ends included.

    Some offsets can have no record, after transactions or compaction.
    """

    topic: str
    topic_id: TopicId
    partition: int
    first_offset: int
    last_offset: int
    delivery_count: int

    @property
    def size(self) -> int:
        return self.last_offset - self.first_offset + 1

    @property
    def share_partition(self) -> SharePartition:
        return SharePartition(self.topic_id, self.partition)

    def cut(self, first: int, last: int) -> "AcquiredRange":
        """Return the part from one offset to another, both included."""
        return AcquiredRange(
            self.topic, self.topic_id, self.partition, first, last, self.delivery_count
        )


@final
class Ledger:
    """Acquired ranges, by position.

    Attributes:
        begin: the first position that is not trimmed.
        end: the position after the last offset.
    """

    def __init__(self) -> None:
        self.begin = 0
        self.end = 0
        self._topics: dict[str, TopicId] = {}
        # The former ids of recreated topics.
        self._old_topic_ids: set[TopicId] = set()
        # A row has the position, first offset, partition and delivery count of a range.
        # `_indexes` refers to `_partitions`.
        self._positions = array("q")
        self._firsts = array("q")
        self._indexes = array("i")
        self._counts = array("h")
        self._partitions: list[tuple[str, SharePartition]] = []
        self._index_of: dict[SharePartition, int] = {}
        self._uncommitted: defaultdict[SharePartition, OffsetSet] = defaultdict(
            OffsetSet
        )
        self._redeliverable: defaultdict[SharePartition, OffsetSet] = defaultdict(
            OffsetSet
        )
        self._starts: dict[SharePartition, int] = {}

    @classmethod
    def from_snapshot(
        cls, begin: int, topics: Mapping[str, TopicId], redeliverable: Redeliverable
    ) -> "Ledger":
        """Return a ledger in which all positions before `begin` are trimmed."""
        ledger = cls()
        ledger.begin = ledger.end = begin
        ledger._topics = dict(topics)
        for share_partition, ranges in redeliverable.items():
            for first, last in ranges:
                ledger._redeliverable[share_partition].add(first, last)
        return ledger

    def __len__(self) -> int:
        """Return the number of ranges that are not trimmed."""
        return len(self._positions)

    @property
    def topics(self) -> Mapping[str, TopicId]:
        """The topics whose offsets were added to the ledger, and their ids."""
        return self._topics

    @property
    def redeliverable(self) -> Redeliverable:
        """Trimmed offsets that can be delivered again; for the store's snapshot."""
        return {
            share_partition: list(offsets)
            for share_partition, offsets in self._redeliverable.items()
            if offsets
        }

    # Adding acquired ranges.

    def check_topics(
        self, topics: Mapping[str, TopicId], *, allow_recreated: bool = False
    ) -> None:
        """Compare the current ids of topics with the ids in the ledger.

        A topic that was deleted and created again has another id, and its old records
        are lost. With `allow_recreated` the ledger accepts the new topic, and tasks
        that read the old one find no records.

        Raises:
            LedgerMismatchError: a topic was recreated, and `allow_recreated` is false.
        """
        for topic, topic_id in topics.items():
            known = self._topics.get(topic, topic_id)
            if known == topic_id or topic_id in self._old_topic_ids:
                continue
            if not allow_recreated:
                lost = describe_ranges(self.ranges_of(known))
                raise LedgerMismatchError(
                    _recreated_message(topic, known, topic_id, lost)
                )
            self._topics[topic] = topic_id
            self._old_topic_ids.add(known)
            self._forget_topic(known)

    def _forget_topic(self, topic_id: TopicId) -> None:
        """Drop redeliverable offsets of a deleted topic."""
        for deleted in [p for p in self._redeliverable if p.topic_id == topic_id]:
            del self._redeliverable[deleted]

    def select_new(
        self, acquired: Iterable[AcquiredRange], *, allow_recreated: bool = False
    ) -> list[AcquiredRange]:
        """Return the parts of acquired ranges that are not in the ledger.

        The caller has to write these to the store, add them by `append`, and then
        accept all of the acquired ranges. Their locks must not have expired. With
        `allow_recreated` recreated topics are accepted as by `check_topics`; later
        ranges of the old topic are not new, as their records cannot be read.

        Raises:
            LedgerMismatchError: a topic was recreated, and `allow_recreated` is false;
                the ranges must not be accepted.
        """
        parts: list[AcquiredRange] = []
        seen: defaultdict[SharePartition, OffsetSet] = defaultdict(OffsetSet)
        for each in acquired:
            self.check_topics(
                {each.topic: each.topic_id}, allow_recreated=allow_recreated
            )
            if each.topic_id in self._old_topic_ids:
                continue
            seen_here = seen[each.share_partition]
            for first, last in self._missing_parts(each, seen_here):
                parts.append(each.cut(first, last))
                seen_here.add(first, last)
        return parts

    def _missing_parts(
        self, acquired: AcquiredRange, seen: OffsetSet
    ) -> Iterable[tuple[int, int]]:
        """Return the parts of a range that are neither in the ledger nor in `seen`."""
        share_partition = acquired.share_partition
        parts = [(acquired.first_offset, acquired.last_offset)]
        for offsets in (
            self._uncommitted.get(share_partition),
            self._redeliverable.get(share_partition),
            seen,
        ):
            if offsets:
                parts = [rest for part in parts for rest in offsets.missing(*part)]
        return parts

    def append(self, segment: Iterable[AcquiredRange]) -> None:
        """Add the result of `select_new`, once it is durable."""
        for each in segment:
            self._append_range(each)

    def _append_range(self, each: AcquiredRange) -> None:
        share_partition = each.share_partition
        self._topics[each.topic] = each.topic_id
        self._uncommitted[share_partition].add(each.first_offset, each.last_offset)
        index = self._index_of.get(share_partition)
        if index is None:
            index = self._index_of[share_partition] = len(self._partitions)
            self._partitions.append((each.topic, share_partition))
        if not self._extends_last(index, each):
            self._positions.append(self.end)
            self._firsts.append(each.first_offset)
            self._indexes.append(index)
            self._counts.append(each.delivery_count)
        self.end += each.size

    def _extends_last(self, index: int, each: AcquiredRange) -> bool:
        """Return whether a range continues the last row."""
        if not self._positions or self._indexes[-1] != index:
            return False
        next_offset = self._firsts[-1] + self.end - self._positions[-1]
        return (
            next_offset == each.first_offset and self._counts[-1] == each.delivery_count
        )

    # Reading.

    def ranges_between(self, start: int, end: int) -> list[AcquiredRange]:
        """Return the ranges from one position up to another, which is excluded.

        Raises:
            LedgerLostError: a position is trimmed, or beyond the end.
        """
        self._check_positions(start, end)
        if start == end:
            return []
        row = bisect_right(self._positions, start) - 1
        ranges: list[AcquiredRange] = []
        while row < len(self._positions) and self._positions[row] < end:
            ranges.append(self._row(row, start, end))
            row += 1
        return ranges

    def ranges_of(self, topic_id: TopicId) -> list[AcquiredRange]:
        """Return the ranges of a topic that are not trimmed."""
        ranges = self.ranges_between(self.begin, self.end)
        return [each for each in ranges if each.topic_id == topic_id]

    def _check_positions(self, start: int, end: int) -> None:
        if not start <= end:
            raise ValueError(f"position {start} is after position {end}")
        if start < self.begin:
            raise LedgerLostError(
                f"the ledger begins at position {self.begin}, but {start} is "
                "requested: it was committed and trimmed; use the checkpoint that "
                "belongs to this ledger, or a new one"
            )
        if end > self.end:
            raise LedgerLostError(
                f"the ledger ends at position {self.end}, but {end} is requested: the "
                "checkpoint belongs to another ledger; set ledgerLocation to that one, "
                "or use a new checkpoint"
            )

    def _row(self, row: int, start: int, end: int) -> AcquiredRange:
        """Return the part of a row that is between two positions."""
        position = self._positions[row]
        topic, (topic_id, partition) = self._partitions[self._indexes[row]]
        offset_base = self._firsts[row] - position
        return AcquiredRange(
            topic,
            topic_id,
            partition,
            offset_base + max(start, position),
            offset_base + min(end, self._end_of(row)) - 1,
            self._counts[row],
        )

    def _end_of(self, row: int) -> int:
        following = row + 1
        if following < len(self._positions):
            return self._positions[following]
        return self.end

    # Dropping.

    def trim(self, position: int) -> None:
        """Drop the ranges before a position: their batches are committed.

        Their offsets stay redeliverable until the start offset has passed them. A
        position that is already trimmed is ignored: Spark commits again after a
        restart.
        """
        if position <= self.begin:
            return
        self._check_positions(self.begin, position)
        for each in self.ranges_between(self.begin, position):
            self._keep_redeliverable(each)
        row = bisect_right(self._positions, position) - 1
        if row >= 0:
            self._firsts[row] += position - self._positions[row]
            self._positions[row] = position
        trimmed = len(self._positions) if position == self.end else row
        for column in (self._positions, self._firsts, self._indexes, self._counts):
            del column[:trimmed]
        self.begin = position

    def _keep_redeliverable(self, each: AcquiredRange) -> None:
        share_partition = each.share_partition
        self._uncommitted[share_partition].remove(each.first_offset, each.last_offset)
        if self._topics.get(each.topic) != each.topic_id:
            return  # a deleted topic's records are not delivered again
        first = max(each.first_offset, self._starts.get(share_partition, 0))
        if first <= each.last_offset:
            self._redeliverable[share_partition].add(first, each.last_offset)

    def set_start_offset(
        self, topic_id: TopicId, partition: int, start_offset: int
    ) -> None:
        """Drop redeliverable offsets before the start offset of a share partition.

        Offsets that are not committed stay. This can be called while another thread is
        in `select_new`.
        """
        share_partition = SharePartition(topic_id, partition)
        self._starts[share_partition] = start_offset
        redeliverable = self._redeliverable.get(share_partition)
        if redeliverable and start_offset > 0:
            self._redeliverable[share_partition] = redeliverable.without(
                0, start_offset - 1
            )


def describe_ranges(ranges: Sequence[AcquiredRange]) -> str:
    """Return topics, partitions and offsets, for an error: the first few of many."""
    shown = [
        f"{each.topic}-{each.partition} offsets {each.first_offset} to "
        f"{each.last_offset}"
        for each in ranges[:SHOWN_RANGES]
    ]
    if len(ranges) > SHOWN_RANGES:
        shown.append(f"and {len(ranges) - SHOWN_RANGES} more ranges")
    return ", ".join(shown) or "no offsets"


def _recreated_message(topic: str, known: TopicId, topic_id: TopicId, lost: str) -> str:
    return (
        f"the topic {topic} was deleted and created again: its id in the ledger is "
        f"{UUID(bytes=known)}, and now it is {UUID(bytes=topic_id)}; records of the "
        f"old topic that no committed batch has: {lost}; use a new ledgerLocation and "
        "checkpoint, or set failOnDataLoss to false to continue without these records"
    )
