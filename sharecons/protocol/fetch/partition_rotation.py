"""Which of a leader's partitions a fetch requests while all have a backlog."""

from typing import Final, final
from zlib import crc32

from sharecons.protocol.partitions import SharePartition

__all__ = ["PartitionRotation"]

PART_SIZE: Final = 12
"""Partitions in a part, or some more if the number is not a multiple. With 24 the
broker's CPU time was the same and the client's a tenth more; 6 was not better."""

MAX_FULL_FETCHES: Final = 64
"""The maximum number of fetches for all partitions between two parts."""


@final
class PartitionRotation:
    """Which of a leader's partitions the next fetch requests: all, or a part in turn.

    A broker reads every partition of a session before it returns records. So with a
    backlog, fetches request one part of many partitions after the other, without
    waiting.

    If a part returns few records, other partitions might have some. Then all are
    requested once, and twice as often each time that a part returns few again: if few
    of many partitions have records, rotation has no use.

    Members begin with different parts, by `member_id`, as a broker lets only one fetch
    at a time read a partition.
    """

    def __init__(self, member_id: str) -> None:
        self._all: frozenset[SharePartition] = frozenset()
        self._parts: list[frozenset[SharePartition]] = []
        self._turn = crc32(member_id.encode())
        self._full_fetches = 0
        self._next_full_fetches = 1

    def next(self, partitions: frozenset[SharePartition]) -> frozenset[SharePartition]:
        """Return the partitions to request with a backlog: all, or a part."""
        if partitions is not self._all:
            self._divide(partitions)
        if not self._parts:
            return partitions
        if self._full_fetches:
            self._full_fetches -= 1
            return partitions
        self._turn = (self._turn + 1) % len(self._parts)
        return self._parts[self._turn]

    def on_response(self, requested: frozenset[SharePartition], *, full: bool) -> bool:
        """Handle the response to a fetch; return whether it was for a part.

        Args:
            requested: the partitions of the fetch.
            full: it returned about as many records as requested.
        """
        if (
            not self._parts
            or requested is not self._parts[self._turn % len(self._parts)]
        ):
            return False
        if full:
            self._next_full_fetches = 1
        else:
            self._full_fetches = self._next_full_fetches
            self._next_full_fetches = min(2 * self._next_full_fetches, MAX_FULL_FETCHES)
        return True

    def _divide(self, partitions: frozenset[SharePartition]) -> None:
        self._all = partitions
        count = len(partitions) // PART_SIZE
        ordered = sorted(partitions) if count > 1 else []
        # Each part has partitions of all topics: one topic can have all the records.
        self._parts = [frozenset(ordered[n::count]) for n in range(count) if ordered]
