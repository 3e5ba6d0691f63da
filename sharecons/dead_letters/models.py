"""A dead letter, and the result of a redrive."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sharecons._record import Headers, Record
from sharecons.copies.dead_letter_headers import Origin
from sharecons.errors import Error

__all__ = [
    "DeadLetterRecord",
    "Deletion",
    "LetterOffset",
    "RedriveSummary",
    "SourceStatus",
]


class LetterOffset(NamedTuple):
    """The partition and the offset of a dead letter in its topic."""

    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.partition}:{self.offset}"


class SourceStatus(enum.Enum):
    """Where the key, value and headers of a dead letter come from."""

    COPIED = "copied"
    """The dead letter has them: a worker wrote it."""
    FETCHED = "fetched"
    """They were read from the source, as the dead letter has no headers."""
    COPIED_WITHOUT_HEADERS = "copied without headers"
    """A broker copied key and value, and the source no longer has the record."""
    GONE = "gone"
    """There is only a reference, and the source no longer has the record."""
    NOT_FETCHED = "not fetched"
    """They are not in the dead letter, and the source was not read."""
    UNREADABLE = "unreadable"
    """The source could not be read; `error` says why."""
    NO_ORIGIN = "no origin"
    """The record does not say which record it was: it is no dead letter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterRecord:
    """A record of a dead-letter topic, and the record that failed for good.

    Attributes:
        record: the record of the dead-letter topic, with all its headers.
        origin: the record that failed for good, and why; None if it is not known.
        key, value, headers: of the record that failed for good, if known; without
            headers of dead letters and redrives.
        redrives: how often it was redriven before.
        status: where key, value and headers come from.
        reason: why the source is gone, or None.
        error: why the source could not be read, or None.
        redriven_by: the names of the redrives that have redriven it, in order; empty
            if none has, or if it was not looked up.
        duplicate_of: the first dead letter of the same record; None if this is the
            first, or if it was not looked up.
    """

    record: Record
    origin: Origin | None
    key: bytes | None
    value: bytes | None
    headers: Headers
    redrives: int
    status: SourceStatus
    reason: str | None = None
    error: Error | None = None
    redriven_by: tuple[str, ...] = ()
    duplicate_of: LetterOffset | None = None

    @property
    def topic(self) -> str:
        return self.record.topic

    @property
    def partition(self) -> int:
        return self.record.partition

    @property
    def offset(self) -> int:
        return self.record.offset

    @property
    def letter_offset(self) -> LetterOffset:
        return LetterOffset(self.partition, self.offset)

    @property
    def timestamp(self) -> int:
        """When the dead letter was written: milliseconds since the epoch."""
        return self.record.timestamp

    @property
    def position(self) -> str:
        return f"{self.topic}-{self.partition}@{self.offset}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RedriveSummary:
    """The result of a redrive, or of its part until now.

    Dead letters that the name had redriven before are not counted.

    Attributes:
        name: the name of the redrive, under which another run continues.
        redriven: how many dead letters this run has written.
        already_written: how many an interrupted run had written without noting it.
        filtered: how many did not pass the filters.
        skipped: how many were not redriven for another reason, by reason.
        errors: why single dead letters were not redriven.
        remaining: how many offsets this run has not looked at.
    """

    name: str
    redriven: int = 0
    already_written: int = 0
    filtered: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    errors: tuple[str, ...] = ()
    remaining: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """The dead letters of a partition that are, or would be, deleted.

    Attributes:
        topic, partition: the partition of the dead-letter topic.
        before: the first offset that stays.
        letters: how many records the log has before it. A batch of records that cannot
            be decoded counts as one, and as not redriven.
        not_redriven: how many of them no redrive of any name has redriven, and no
            other dead letter of the same record was.
        first_not_redriven: the offset of the first of these, or None.
    """

    topic: str
    partition: int
    before: int
    letters: int
    not_redriven: int
    first_not_redriven: int | None
