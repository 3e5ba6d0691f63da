"""The ledger: what a share group gave to one query, in the order in which it came.

Rule 1: which offsets are new, where they stand, and when they may be forgotten is
decided here, and nowhere else.
Rule 2: this file meets no file, socket or clock. `sharecons.spark.store` keeps what is
told to this one; whoever uses both writes there first.

Theory of operation
-------------------
A share group cannot give a record twice on request, and Spark must be able to ask
twice. So each range of offsets that the group gives is entered here before it is
accepted; the records stay in Kafka's log, from which any task reads them again. A
*position* counts offsets from the ledger's beginning, holes of the log among them: it
is Spark's offset, and two positions always mean the same records.

What was acquired comes back if its acceptance was lost (a killed driver, an ended
lock). `new` leaves out what is held already: it is to be accepted again, and entered
once. An offset is held while it stands between `begin` and `end` (Spark may ask for
it), and after that until the share partition's start offset has passed it (the group
may give it again). Whoever asks `new` must still hold the locks of what it asks about:
the start offset cannot have passed a locked record, so what `passed` has forgotten
does not return.

Ranges lie in arrays, 22 bytes each; neighbours of one partition and delivery count are
joined. A million ranges are 22 MB, where a million objects would be ten times that.
"""

from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import final
from uuid import UUID

from sharecons.protocol.messages import SharePartition, TopicId
from sharecons.spark.errors import LedgerLostError, LedgerMismatchError
from sharecons.spark.offset_set import OffsetSet

__all__ = ["AcquiredRange", "Ledger", "Remembered"]

Remembered = Mapping[SharePartition, Sequence[tuple[int, int]]]
"""Offsets that are committed, but may be given again."""


@dataclass(frozen=True, slots=True)
class AcquiredRange:
    """Offsets of one partition that the group gave, both ends included.

    Not every offset has a record: transactions and compaction leave holes.
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
        """Give the part from one offset to another."""
        return AcquiredRange(
            self.topic, self.topic_id, self.partition, first, last, self.delivery_count
        )


@final
class Ledger:
    """What the group gave, by position.

    Attributes:
        begin: the first position that can still be asked for.
        end: the position behind the last offset that was entered.
    """

    def __init__(self) -> None:
        self.begin = 0
        self.end = 0
        self._topics: dict[str, TopicId] = {}
        self._replaced: set[TopicId] = set()  # ids that topics had before
        # Rows: a range's position, its first offset, its place below, its count.
        self._positions = array("q")
        self._firsts = array("q")
        self._places = array("i")
        self._counts = array("h")
        self._partitions: list[tuple[str, SharePartition]] = []
        self._place_of: dict[SharePartition, int] = {}
        self._waiting: defaultdict[SharePartition, OffsetSet] = defaultdict(OffsetSet)
        self._remembered: defaultdict[SharePartition, OffsetSet] = defaultdict(
            OffsetSet
        )
        self._starts: dict[SharePartition, int] = {}

    @classmethod
    def restored(
        cls, begin: int, topics: Mapping[str, TopicId], remembered: Remembered
    ) -> "Ledger":
        """Give the ledger as it was when all before `begin` was trimmed."""
        ledger = cls()
        ledger.begin = ledger.end = begin
        ledger._topics = dict(topics)
        for share_partition, ranges in remembered.items():
            for first, last in ranges:
                ledger._remembered[share_partition].add(first, last)
        return ledger

    def __len__(self) -> int:
        """Tell how many ranges can still be asked for."""
        return len(self._positions)

    @property
    def topics(self) -> Mapping[str, TopicId]:
        """The topics of which anything was entered, with their ids."""
        return self._topics

    @property
    def remembered(self) -> Remembered:
        """What is trimmed, but may be given again; goes into the store's snapshot."""
        return {place: list(held) for place, held in self._remembered.items() if held}

    # What the group gives.

    def agree(self, topics: Mapping[str, TopicId], *, adopt: bool = False) -> None:
        """Compare the ids that topics have now with those of the ledger.

        A topic that was deleted and made anew has another id. Its old records are
        gone; with `adopt` the new topic is taken on all the same, and tasks that read
        the old one find nothing.

        Raises:
            LedgerMismatchError: a topic was made anew, and `adopt` is false.
        """
        for topic, topic_id in topics.items():
            known = self._topics.get(topic, topic_id)
            if known == topic_id or topic_id in self._replaced:
                continue
            if not adopt:
                raise LedgerMismatchError(_made_anew(topic, known, topic_id))
            self._topics[topic] = topic_id
            self._replaced.add(known)
            self._forget_topic(known)

    def _forget_topic(self, topic_id: TopicId) -> None:
        """Nothing of a topic that is gone can be given again."""
        for place in [p for p in self._remembered if p.topic_id == topic_id]:
            del self._remembered[place]

    def new(
        self, taken: Iterable[AcquiredRange], *, adopt: bool = False
    ) -> list[AcquiredRange]:
        """Give those parts that are not held yet: they are to be entered.

        All of it is to be accepted, once what is new is durable and entered. The
        locks of what is asked about must not have ended. With `adopt` a topic that was
        made anew is taken on, as by `agree`; what still comes of the old one is not
        new, since nothing can read it.

        Raises:
            LedgerMismatchError: a topic was made anew, and `adopt` is false; nothing
                may be accepted.
        """
        parts: list[AcquiredRange] = []
        asked: defaultdict[SharePartition, OffsetSet] = defaultdict(OffsetSet)
        for given in taken:
            self.agree({given.topic: given.topic_id}, adopt=adopt)
            if given.topic_id in self._replaced:
                continue
            here = asked[given.share_partition]
            for first, last in self._unknown(given, here):
                parts.append(given.cut(first, last))
                here.add(first, last)
        return parts

    def _unknown(
        self, given: AcquiredRange, asked: OffsetSet
    ) -> Iterable[tuple[int, int]]:
        """Give what neither the ledger nor this very question knows yet."""
        place = given.share_partition
        parts = [(given.first_offset, given.last_offset)]
        for held in (self._waiting.get(place), self._remembered.get(place), asked):
            if held:
                parts = [rest for part in parts for rest in held.missing(*part)]
        return parts

    def append(self, segment: Iterable[AcquiredRange]) -> None:
        """Enter what `new` gave, once it is durable."""
        for taken in segment:
            self._enter(taken)

    def _enter(self, taken: AcquiredRange) -> None:
        share_partition = taken.share_partition
        self._topics[taken.topic] = taken.topic_id
        self._waiting[share_partition].add(taken.first_offset, taken.last_offset)
        place = self._place_of.get(share_partition)
        if place is None:
            place = self._place_of[share_partition] = len(self._partitions)
            self._partitions.append((taken.topic, share_partition))
        if not self._continues(place, taken):
            self._positions.append(self.end)
            self._firsts.append(taken.first_offset)
            self._places.append(place)
            self._counts.append(taken.delivery_count)
        self.end += taken.size

    def _continues(self, place: int, taken: AcquiredRange) -> bool:
        """Tell whether a range is but the last one gone on."""
        if not self._positions or self._places[-1] != place:
            return False
        next_offset = self._firsts[-1] + self.end - self._positions[-1]
        return (
            next_offset == taken.first_offset
            and self._counts[-1] == taken.delivery_count
        )

    # What Spark asks.

    def between(self, start: int, end: int) -> list[AcquiredRange]:
        """Give what stands from one position up to another, cut where need be.

        Raises:
            LedgerLostError: a position is trimmed, or was never reached.
        """
        self._check(start, end)
        if start == end:
            return []
        row = bisect_right(self._positions, start) - 1
        found: list[AcquiredRange] = []
        while row < len(self._positions) and self._positions[row] < end:
            found.append(self._row(row, start, end))
            row += 1
        return found

    def _check(self, start: int, end: int) -> None:
        if not start <= end:
            raise ValueError(f"position {start} is not before {end}")
        if start < self.begin:
            raise LedgerLostError(
                f"the ledger begins at position {self.begin}, and {start} is asked "
                "for: it was committed and trimmed; start from the checkpoint that "
                "belongs to this ledger, or from a new one"
            )
        if end > self.end:
            raise LedgerLostError(
                f"the ledger ends at position {self.end}, and {end} is asked for: it "
                "is not the ledger that this checkpoint was made with; give the right "
                "ledgerLocation, or a new checkpoint"
            )

    def _row(self, row: int, start: int, end: int) -> AcquiredRange:
        """Give a row as a value, or that part of it which lies between positions."""
        position = self._positions[row]
        topic, (topic_id, partition) = self._partitions[self._places[row]]
        offset_of = self._firsts[row] - position
        return AcquiredRange(
            topic,
            topic_id,
            partition,
            offset_of + max(start, position),
            offset_of + min(end, self._end_of(row)) - 1,
            self._counts[row],
        )

    def _end_of(self, row: int) -> int:
        following = row + 1
        if following < len(self._positions):
            return self._positions[following]
        return self.end

    # What may be forgotten.

    def trim(self, position: int) -> None:
        """Let go what stands before a position: it is committed.

        Its offsets are remembered until the start offset has passed them. A position
        that is trimmed already is passed over: Spark commits again after a restart.
        """
        if position <= self.begin:
            return
        self._check(self.begin, position)
        for taken in self.between(self.begin, position):
            self._remember(taken)
        row = bisect_right(self._positions, position) - 1
        if row >= 0:
            self._firsts[row] += position - self._positions[row]
            self._positions[row] = position
        done = len(self._positions) if position == self.end else row
        for column in (self._positions, self._firsts, self._places, self._counts):
            del column[:done]
        self.begin = position

    def _remember(self, taken: AcquiredRange) -> None:
        place = taken.share_partition
        self._waiting[place].remove(taken.first_offset, taken.last_offset)
        if self._topics.get(taken.topic) != taken.topic_id:
            return  # nothing of a topic that is gone can be given again
        first = max(taken.first_offset, self._starts.get(place, 0))
        if first <= taken.last_offset:
            self._remembered[place].add(first, taken.last_offset)

    def passed(self, topic_id: TopicId, partition: int, start_offset: int) -> None:
        """Forget what the start offset of a share partition has passed, if committed.

        What is not committed yet is kept: it is read from the log, whatever becomes
        of the group. This may be told while another thread asks what is `new`.
        """
        place = SharePartition(topic_id, partition)
        self._starts[place] = start_offset
        held = self._remembered.get(place)
        if held and start_offset > 0:
            self._remembered[place] = held.without(0, start_offset - 1)


def _made_anew(topic: str, known: TopicId, topic_id: TopicId) -> str:
    return (
        f"the topic {topic} was deleted and made anew: the ledger has its id as "
        f"{UUID(bytes=known)}, and it is {UUID(bytes=topic_id)} now; use a new "
        "ledgerLocation and checkpoint, or failOnDataLoss=false to go on without what "
        "was not read yet"
    )
