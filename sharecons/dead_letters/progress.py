"""The stored progress of a redrive: a committed offset and its metadata, as text.

The progress marks the dead letters of a partition that were redriven. The committed
offset is the low-water mark: all below it are marked, or no longer in the log. The
metadata has the ranges of marked offsets above it. While a batch is written, the
metadata has what is needed to complete it after a crash: its dead letters, the producer
id, and for each target partition its end and the first sequence number before the
batch.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sharecons._record import TopicPartition
from sharecons.dead_letters.offset_ranges import OffsetRanges
from sharecons.errors import Error
from sharecons.protocol.produce.messages import ProducerIdentity

__all__ = [
    "MAX_MARKS",
    "MAX_METADATA",
    "InFlight",
    "MarksFullError",
    "Progress",
    "TargetState",
    "can_mark",
    "check_size",
    "decode_metadata",
    "encode_metadata",
    "marks_size",
    "note_room",
    "range_size",
    "target_sizes",
]

VERSION: Final = 2
MAX_METADATA: Final = 4_096
"""Characters; the brokers' default of offset.metadata.max.bytes."""
MAX_MARKS: Final = 2_400
"""Characters of the marks after a batch, so that the next batch's note also fits."""
MAX_NOTE: Final = 3_000
"""Characters of a note: its targets and dead letters, without the rest."""
NOTE_FIELDS: Final = 250
"""Characters of a note with neither targets nor dead letters, at most."""

_INVALID: Final = (
    AttributeError,
    KeyError,
    OverflowError,
    RecursionError,
    TypeError,
)
"""Raised for JSON that is no progress, besides ValueError."""


class MarksFullError(Error):
    """The marks of redriven dead letters do not fit in a committed offset's metadata.

    The batch was not written; batches before it are written and marked.
    """


class TargetState(NamedTuple):
    """A target partition before a batch: its end, and the batch's first sequence."""

    end_offset: int
    sequence: int


@dataclass(frozen=True, slots=True)
class InFlight:
    """A batch that is being written: its dead letters, and the state before it.

    The offsets of dead letters include offsets without a record in between.
    """

    letters: OffsetRanges
    identity: ProducerIdentity
    targets: Mapping[TopicPartition, TargetState]


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress in one partition of a dead-letter topic.

    Attributes:
        marks: the offsets whose dead letters were redriven. They include offsets
            without a record, and offsets that the log no longer has.
        plan: a digest of what is redriven where; another plan needs another name.
        run: the process that works on it; another one has taken over if it differs.
        in_flight: the batch that might be written in part, or None.
    """

    marks: OffsetRanges
    plan: str
    run: str
    in_flight: InFlight | None = None

    @property
    def offset(self) -> int:
        """The committed offset: all dead letters below it are marked."""
        return self.marks.low_water


def encode_metadata(progress: Progress) -> str:
    """Return the metadata of the committed offset."""
    fields: dict[str, Any] = {
        "v": VERSION,
        "plan": progress.plan,
        "run": progress.run,
    }
    if marks := progress.marks.encode(progress.offset):
        fields["marks"] = marks
    if progress.in_flight is not None:
        targets: dict[str, dict[str, list[int]]] = {}
        for key, state in progress.in_flight.targets.items():
            targets.setdefault(key.topic, {})[str(key.partition)] = list(state)
        fields["batch"] = {
            "letters": progress.in_flight.letters.encode(),
            "producer": list(progress.in_flight.identity),
            "targets": targets,
        }
    return json.dumps(fields, separators=(",", ":"))


def decode_metadata(offset: int, metadata: str) -> Progress:
    """Return the progress that was committed.

    Raises:
        ValueError: no redrive has written the metadata.
    """
    try:
        fields = json.loads(metadata)
        if fields["v"] != VERSION:
            raise ValueError(f"version {fields['v']}")
        batch = fields.get("batch")
        above = OffsetRanges.decode(str(fields.get("marks", "")), offset)
        return Progress(
            marks=OffsetRanges.of([(0, offset), *above.ranges]),
            plan=str(fields["plan"]),
            run=str(fields["run"]),
            in_flight=None if batch is None else _in_flight(batch),
        )
    except _INVALID as error:
        raise ValueError(f"invalid: {error}") from error


def _in_flight(batch: Any) -> InFlight:
    producer_id, epoch = batch["producer"]
    return InFlight(
        letters=OffsetRanges.decode(str(batch["letters"])),
        identity=ProducerIdentity(int(producer_id), int(epoch)),
        targets={
            TopicPartition(topic, int(partition)): TargetState(int(end), int(sequence))
            for topic, partitions in batch["targets"].items()
            for partition, (end, sequence) in partitions.items()
        },
    )


# Sizes.


def check_size(key: TopicPartition, progress: Progress, after: OffsetRanges) -> None:
    """Check that progress fits in the metadata, and the marks after its batch.

    Marks that are too large are allowed to shrink: filling gaps is the way out.

    Raises:
        MarksFullError: they do not fit.
    """
    size, marks = len(encode_metadata(progress)), marks_size(after)
    if size <= MAX_METADATA and can_mark(progress.marks, after):
        return
    raise MarksFullError(
        f"the marks of redriven dead letters of {key.topic}-{key.partition} do not fit "
        f"in the metadata of a committed offset: {marks} of {MAX_MARKS} characters, "
        f"{size} of {MAX_METADATA} with the batch. Nothing of this batch is written. "
        f"Redrive or delete the dead letters from offset {progress.offset} on that are "
        "not redriven, or use another name"
    )


def can_mark(before: OffsetRanges, after: OffsetRanges) -> bool:
    """Return whether marks are small enough to replace others."""
    return marks_size(after) <= max(MAX_MARKS, marks_size(before))


def marks_size(marks: OffsetRanges) -> int:
    """Return how many characters marks have in the metadata."""
    return len(marks.encode(marks.low_water))


def note_room(progress: Progress) -> int:
    """Return how many characters the targets and dead letters of a batch can have."""
    free = MAX_METADATA - len(encode_metadata(progress)) - NOTE_FIELDS
    return min(MAX_NOTE, free)


def target_sizes(targets: Mapping[TopicPartition, object]) -> int:
    """Return how many characters the targets of a batch have at most."""
    topics = {key.topic for key in targets}
    return sum(len(json.dumps(each)) + 6 for each in topics) + 50 * len(targets)


def range_size(distance: int) -> int:
    """Return how many characters a range has at most, encoded.

    Args:
        distance: of its start from the end of the previous range.
    """
    # Four bytes are a length up to 2 ** 28; base 85 has five characters for four bytes.
    return 5 * (distance.bit_length() // 7 + 1 + 4) // 4 + 1
