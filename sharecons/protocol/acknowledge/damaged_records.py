"""The treatment of damaged records: released once, rejected if damaged again.

Damage in a transfer is gone at the next delivery; damage in the log is not. So damaged
records are released once, and rejected if they are damaged again at their next
delivery to this consumer.

Releasing them up to the delivery limit would delay the records behind them: a broker
returns records on their last deliveries one by one, and nothing else with them.
"""

from typing import Final, NamedTuple

from sharecons.protocol.partitions import SharePartition
from sharecons.records.offset_set import OffsetSet

__all__ = ["DamagedRange", "DamagedRecords"]

MAX_RANGES: Final = 1000
"""The maximum number of ranges kept per partition: they stay if another consumer
receives the next delivery."""


class DamagedRange(NamedTuple):
    """Damaged offsets with one treatment; both ends are included."""

    first_offset: int
    last_offset: int
    rejected: bool


class DamagedRecords:
    """The damaged records that a consumer has released."""

    def __init__(self) -> None:
        self._released: dict[SharePartition, OffsetSet] = {}

    def treat(
        self, partition: SharePartition, first: int, last: int
    ) -> list[DamagedRange]:
        """Return which of the damaged offsets to reject, and which to release.

        The released ones are remembered until they are damaged again.
        """
        new = self.others(partition, first, last)
        again = OffsetSet()
        again.add(first, last)
        for part in new:
            again.remove(*part)
        self._remember(partition, new, again)
        return sorted(
            [DamagedRange(*part, rejected=False) for part in new]
            + [DamagedRange(*part, rejected=True) for part in again]
        )

    def others(
        self, partition: SharePartition, first: int, last: int
    ) -> list[tuple[int, int]]:
        """Return the parts of a range that were not released as damaged."""
        released = self._released.get(partition)
        return released.missing(first, last) if released else [(first, last)]

    def _remember(
        self,
        partition: SharePartition,
        new: list[tuple[int, int]],
        again: OffsetSet,
    ) -> None:
        released = self._released.setdefault(partition, OffsetSet())
        for part in again:
            released.remove(*part)
        if len(list(released)) >= MAX_RANGES:
            released = self._released[partition] = OffsetSet()
        for part in new:
            released.add(*part)
