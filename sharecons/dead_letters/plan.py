"""Which dead letters are redriven, to which partitions, and in which batches."""

import enum
import hashlib
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from sharecons._record import Headers, TopicPartition
from sharecons.copies.dead_letter_headers import RedriveMark, redrive_headers
from sharecons.dead_letters.filters import LetterFilter
from sharecons.dead_letters.models import (
    DeadLetterRecord,
    LetterOffset,
    SourceStatus,
)
from sharecons.dead_letters.offset_ranges import OffsetRanges
from sharecons.dead_letters.progress import MAX_NOTE, range_size, target_sizes
from sharecons.protocol.produce.partitioner import partition_of_key

__all__ = [
    "MAX_RECORDS",
    "BatchPlan",
    "Decision",
    "RedrivePlan",
    "Skip",
    "SkipReason",
    "Write",
    "error_of",
]

MAX_RECORDS: Final = 500
MAX_BYTES: Final = 4 << 20


class SkipReason(enum.Enum):
    """Why a dead letter is not redriven."""

    FILTERED = "it does not pass the filters"
    NO_ORIGIN = "it has no origin headers"
    MAX_REDRIVES = "it was redriven too often"
    SOURCE_GONE = "its source is gone"
    NO_TARGET = "its target does not exist"
    REJECTED = "its target rejected it"
    DUPLICATE = "another dead letter of its record was redriven"
    REDRIVEN = "it was redriven before"
    """Only for dead letters that are selected by their offsets."""

    @property
    def is_error(self) -> bool:
        """True if the dead letter should have been redriven."""
        return self in (
            SkipReason.SOURCE_GONE,
            SkipReason.NO_TARGET,
            SkipReason.REJECTED,
            SkipReason.REDRIVEN,
        )


class Skip(NamedTuple):
    reason: SkipReason
    text: str = ""


class Write(NamedTuple):
    """A dead letter, and the partition that it is written to."""

    letter: DeadLetterRecord
    target: TopicPartition


Decision: TypeAlias = Write | Skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RedrivePlan:
    """Decides what a redrive does with each dead letter.

    Attributes:
        topic: the dead-letter topic.
        name: identifies the redrive; each dead letter is redriven once for a name.
        to: the target; None is the origin's topic.
        filter: which dead letters are redriven.
        max_redrives: dead letters that were redriven so often are not redriven.
        only: the offsets of the dead letters that are redriven; None is all.
        again: redrive dead letters in `only` even if they were redriven before.
    """

    topic: str
    name: str
    to: str | None
    filter: LetterFilter
    max_redrives: int
    only: frozenset[LetterOffset] | None = None
    again: bool = False

    @property
    def digest(self) -> str:
        """A digest of what is redriven where, to recognise another plan."""
        text = "\0".join((self.topic, self.to or ""))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def offsets_of(self, partition: int) -> list[int] | None:
        """Return the selected offsets of a partition in order; None is all."""
        if self.only is None:
            return None
        return sorted(each.offset for each in self.only if each.partition == partition)

    def target_topic(self, letter: DeadLetterRecord) -> str | None:
        """Return the topic that a dead letter would be written to."""
        if self.to is not None:
            return self.to
        return None if letter.origin is None else letter.origin.topic

    def decide(
        self,
        letter: DeadLetterRecord,
        partitions: Mapping[str, int],
        twin: LetterOffset | None = None,
    ) -> Decision:
        """Decide about a dead letter.

        Args:
            partitions: how many partitions topics have; 0 or none if they do not exist.
            twin: a dead letter of the same record that was redriven, or None.
        """
        if letter.origin is None:
            return Skip(SkipReason.NO_ORIGIN)
        if not self.filter.matches(letter):
            return Skip(SkipReason.FILTERED)
        if twin is not None and not self.again:
            return Skip(SkipReason.DUPLICATE, str(twin))
        if letter.redrives >= self.max_redrives:
            times = f"redrives: {letter.redrives}"
            return Skip(SkipReason.MAX_REDRIVES, times)
        return self.find_target(letter, partitions)

    def find_target(
        self, letter: DeadLetterRecord, partitions: Mapping[str, int]
    ) -> Decision:
        """Return where a dead letter that a redrive has selected is written.

        Args:
            partitions: as for `decide`.
        """
        topic = self.target_topic(letter)
        if letter.origin is None or topic is None:
            return Skip(SkipReason.NO_ORIGIN)
        if letter.status is SourceStatus.GONE:
            return Skip(SkipReason.SOURCE_GONE, letter.reason or "")
        count = partitions.get(topic, 0)
        if not count:
            return Skip(SkipReason.NO_TARGET, f"topic {topic!r}")
        return Write(letter, TopicPartition(topic, _partition(letter, topic, count)))

    def headers(self, letter: DeadLetterRecord) -> Headers:
        """Return the headers of the redriven record."""
        mark = RedriveMark(self.name, letter.topic, letter.partition, letter.offset)
        assert letter.origin is not None, "it would not be redriven"
        own = redrive_headers(
            mark, letter.redrives + 1, letter.origin, letter.timestamp
        )
        return (*letter.headers, *own)


def _partition(letter: DeadLetterRecord, topic: str, count: int) -> int:
    """Return where a record goes: to its origin if possible, else by its key."""
    origin = letter.origin
    if origin is not None and origin.topic == topic and origin.partition < count:
        return origin.partition
    if letter.key is not None:
        return partition_of_key(letter.key, count)
    return letter.offset % count


@dataclass(slots=True)
class BatchPlan:
    """Dead letters of a partition, in order, that are done together.

    Attributes:
        until: the offset up to which dead letters were looked at; excluded.
        max_records: the maximum number of records that are written.
        room: the maximum number of characters of the targets and letters in the note.
        writes: the records that are redriven, in order.
        letters: their offsets, with the offsets without a record before each.
        duplicates: skipped duplicates, each after the first of the offsets without a
            record before it.
        targets: the partitions that they are written to.
        size: their approximate bytes.
        skipped: how many are not redriven, by reason.
        errors: why single dead letters that were selected are not redriven.
    """

    until: int
    max_records: int = MAX_RECORDS
    room: int = MAX_NOTE
    writes: list[Write] = field(default_factory=list)
    letters: list[tuple[int, int]] = field(default_factory=list)
    duplicates: list[tuple[int, DeadLetterRecord]] = field(default_factory=list)
    targets: dict[TopicPartition, None] = field(default_factory=dict)
    size: int = 0
    skipped: Counter[SkipReason] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    _letters_size: int = 0

    def can_take(self, write: Write, since: int) -> bool:
        """Return whether a dead letter fits; an empty batch takes any.

        Args:
            since: as for `take`.
        """
        if not self.writes:
            return True
        targets = {**self.targets, write.target: None}
        note_size = self._letters_size + self._range_size(since) + target_sizes(targets)
        return (
            len(self.writes) < self.max_records
            and self.size + size_of(write.letter) <= MAX_BYTES
            and note_size <= self.room
        )

    def take(self, letter: DeadLetterRecord, since: int, decision: Decision) -> None:
        """Add the next dead letter.

        Args:
            since: the first of the offsets without a record before it, or its own.
        """
        self.until = letter.offset + 1
        if isinstance(decision, Skip):
            self._skip(letter, since, decision)
            return
        self._letters_size += self._range_size(since)
        self.letters.append((since, letter.offset + 1))
        self.writes.append(decision)
        self.targets[decision.target] = None
        self.size += size_of(letter)

    def _skip(self, letter: DeadLetterRecord, since: int, skip: Skip) -> None:
        self.skipped[skip.reason] += 1
        if skip.reason is SkipReason.DUPLICATE:
            self.duplicates.append((since, letter))
        if error := error_of(letter, skip):
            self.errors.append(error)

    def marks(self, rejected: Collection[int] = ()) -> OffsetRanges:
        """Return the offsets that are redriven once the batch is written.

        Args:
            rejected: the offsets of dead letters that their targets have rejected.
        """
        return OffsetRanges.of(self.letters).without(rejected)

    def _range_size(self, since: int) -> int:
        end = self.letters[-1][1] if self.letters else 0
        return range_size(since - end) if since > end or not self.letters else 0


def error_of(letter: DeadLetterRecord, skip: Skip) -> str:
    """Return a message if a dead letter should have been redriven, or ""."""
    if not skip.reason.is_error:
        return ""
    detail = f" ({skip.text})" if skip.text else ""
    return f"{letter.position} is not redriven: {skip.reason.value}{detail}"


def size_of(letter: DeadLetterRecord) -> int:
    """Return the approximate bytes of a record."""
    headers = sum(len(name) + len(value or b"") for name, value in letter.headers)
    return len(letter.key or b"") + len(letter.value or b"") + headers
