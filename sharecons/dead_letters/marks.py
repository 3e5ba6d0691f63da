"""The marks of all redrives of a dead-letter topic."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sharecons._record import TopicPartition
from sharecons.admin import CommittedOffset, ShareGroupAdmin
from sharecons.dead_letters.models import DeadLetterRecord
from sharecons.dead_letters.offset_ranges import OffsetRanges
from sharecons.dead_letters.progress import decode_metadata
from sharecons.dead_letters.progress_store import GROUP_PREFIX

__all__ = ["RedriveMarks", "load_marks"]


@dataclass(frozen=True, slots=True)
class RedriveMarks:
    """The offsets that each redrive has redriven, by partition and name."""

    by_partition: Mapping[TopicPartition, Mapping[str, OffsetRanges]]

    def names(self, key: TopicPartition, offset: int) -> tuple[str, ...]:
        """Return the names of the redrives that have redriven an offset, in order."""
        marks = self.by_partition.get(key, {})
        return tuple(name for name in marks if offset in marks[name])

    def of_any_name(self, key: TopicPartition) -> OffsetRanges:
        """Return the offsets that a redrive of any name has redriven."""
        return OffsetRanges().union(*self.by_partition.get(key, {}).values())

    def add_to(self, letter: DeadLetterRecord) -> DeadLetterRecord:
        """Return a dead letter with the names of the redrives that have redriven it."""
        key = TopicPartition(letter.topic, letter.partition)
        names = self.names(key, letter.offset)
        return replace(letter, redriven_by=names) if names else letter


async def load_marks(
    admin: ShareGroupAdmin, partitions: Iterable[TopicPartition]
) -> RedriveMarks:
    """Read the marks of all redrives that the principal is allowed to DESCRIBE.

    Dead letters of a batch that is being written, or was interrupted, are not marked.
    A group whose name begins as a redrive's and that no redrive has written is ignored.

    Raises:
        BrokerError, RequestTimedOutError: the groups or their offsets cannot be read.
    """
    keys = tuple(partitions)
    listing = await admin.list_groups(types=("classic",))
    for error in listing.errors.values():
        raise error
    groups = [each for each in listing.groups if each.startswith(GROUP_PREFIX)]
    found: dict[TopicPartition, dict[str, OffsetRanges]] = {key: {} for key in keys}
    listed = await admin.list_consumer_group_offsets(*groups, partitions=keys)
    for group in groups:
        name = group.removeprefix(GROUP_PREFIX)
        offsets = listed[group].value
        for key in keys:
            if (marks := _marks(offsets[key].value)) is not None:
                found[key][name] = marks
    return RedriveMarks(found)


def _marks(committed: CommittedOffset | None) -> OffsetRanges | None:
    if committed is None:
        return None
    try:
        return decode_metadata(committed.offset, committed.metadata).marks
    except ValueError:
        return None
