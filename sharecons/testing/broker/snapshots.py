"""Snapshots for tests: the records of a topic, and the state of a share group.

All values are immutable copies; they do not follow later changes.
"""

from dataclasses import dataclass
from enum import StrEnum

__all__ = [
    "GroupSnapshot",
    "MemberSnapshot",
    "OffsetSnapshot",
    "OffsetState",
    "PartitionSnapshot",
    "RecordSnapshot",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSnapshot:
    """A record in the log of a partition."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    """Milliseconds since the epoch: the producer's, or the time of the append if the
    topic has message.timestamp.type=LogAppendTime."""
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class OffsetState(StrEnum):
    """The state of a record in flight (KIP-932; ARCHIVING: KIP-1191)."""

    AVAILABLE = "available"
    ACQUIRED = "acquired"
    ACKNOWLEDGED = "acknowledged"
    ARCHIVING = "archiving"
    ARCHIVED = "archived"


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetSnapshot:
    """A record in flight."""

    offset: int
    state: OffsetState
    delivery_count: int
    member_id: str | None
    """The member that has acquired it; None in other states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSnapshot:
    """A partition of a share group."""

    topic: str
    partition: int
    start_offset: int | None
    """The first offset in flight: all before it are acknowledged or archived. None
    until a member has fetched from the partition."""
    end_offset: int
    """The end of the partition's log: the offset of the next record to be written."""
    in_flight: tuple[OffsetSnapshot, ...]
    """Each offset from the start offset to the last one that was delivered."""

    def __getitem__(self, offset: int) -> OffsetSnapshot:
        """Return an offset in flight.

        Raises:
            LookupError: it is not in flight.
        """
        first = self.start_offset or 0
        if first <= offset < first + len(self.in_flight):
            return self.in_flight[offset - first]
        raise LookupError(
            f"offset {offset} of {self.topic}-{self.partition} is not in flight: the "
            f"start offset is {self.start_offset}, and {len(self.in_flight)} offsets "
            "are in flight"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSnapshot:
    """A member of a share group."""

    member_id: str
    member_epoch: int
    client_id: str
    topics: tuple[str, ...]
    """The topics that it has subscribed to."""
    assignment: tuple[tuple[str, int], ...]
    """Topics and partitions, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSnapshot:
    """A share group: its members, and its state of each partition."""

    group_id: str
    members: tuple[MemberSnapshot, ...]
    partitions: tuple[PartitionSnapshot, ...]
    """In the order of topics and partitions."""

    def partition(self, topic: str, partition: int = 0) -> PartitionSnapshot:
        """Return one of the partitions.

        Raises:
            LookupError: the group has no state of it.
        """
        for each in self.partitions:
            if (each.topic, each.partition) == (topic, partition):
                return each
        raise LookupError(f"group {self.group_id!r} has no {topic}-{partition}")
