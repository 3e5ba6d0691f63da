"""The partitions of one leader that are not paused."""

import math
from typing import final

from sharecons.protocol.fetch.fetch_pauses import FetchPauses
from sharecons.protocol.partitions import SharePartition

__all__ = ["FetchablePartitions"]


@final
class FetchablePartitions:
    """The partitions of one leader that are not paused.

    While they do not change, `select` returns the same object, so that the session can
    compare by identity.
    """

    def __init__(self, pauses: FetchPauses) -> None:
        self._pauses = pauses
        self._partitions: frozenset[SharePartition] = frozenset()
        self._changes = -1
        self._next_end = -math.inf
        self._fetchable = self._partitions

    def select(
        self, partitions: frozenset[SharePartition], now: float
    ) -> frozenset[SharePartition]:
        """Return the partitions that can be fetched now."""
        pauses = self._pauses
        if not pauses.codes and not pauses.left_out:
            return partitions
        changes = pauses.changes
        if (
            partitions is self._partitions
            and changes == self._changes
            and now < self._next_end
        ):
            return self._fetchable
        paused = {
            each: until
            for each in pauses.codes
            if each in partitions and (until := pauses.paused_until(each)) > now
        }
        for each in partitions if pauses.left_out else ():
            if each.topic_id in pauses.left_out:
                paused[each] = math.inf
        found = partitions.difference(paused) if paused else partitions
        self._partitions, self._changes = partitions, changes
        self._next_end = min(paused.values(), default=math.inf)
        if found != self._fetchable or not paused:
            self._fetchable = found
        return self._fetchable

    def next_pause_end(
        self, partitions: frozenset[SharePartition], now: float
    ) -> float:
        """Return when the next pause ends."""
        at = self.select(partitions, now)
        return math.inf if at is partitions else self._next_end
