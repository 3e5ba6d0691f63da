"""Counts of what the member of a query has acquired."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sharecons.log import get_logger
from sharecons.spark.ledger import AcquiredRange, describe_ranges

__all__ = ["AcquirerStats"]

_log = get_logger(__name__)


@dataclass(slots=True)
class AcquirerStats:
    """Numbers of offsets since the member joined, for the query's progress.

    Attributes:
        acquired: all acquired offsets, redeliveries included.
        acquired_bytes: the bytes of their batches, as they are in the log.
        entered: the new ones, which were written to the ledger.
        redelivered: the offsets with a delivery count above 1.
        last_deliveries: the offsets whose delivery count has reached the group's limit.
        refused: the offsets whose acceptance failed; they are delivered again.
        lost: those whose lock ended before they were written to the ledger; they are
            delivered again, except after their last delivery.
    """

    acquired: int = 0
    acquired_bytes: int = 0
    entered: int = 0
    redelivered: int = 0
    last_deliveries: int = 0
    refused: int = 0
    lost: int = 0

    def count(self, ranges: Sequence[AcquiredRange], delivery_limit: int) -> None:
        """Count acquired ranges; log offsets that are on their last delivery."""
        self.acquired += sum(each.size for each in ranges)
        self.redelivered += sum(t.size for t in ranges if t.delivery_count > 1)
        last = [t for t in ranges if t.delivery_count >= delivery_limit]
        self.last_deliveries += sum(t.size for t in last)
        if last:
            _log.warning(
                "records were acquired on their last delivery; if this driver is "
                "killed before it accepts them, the broker archives them",
                records=describe_ranges(last),
                delivery_limit=delivery_limit,
            )

    def as_dict(self) -> Mapping[str, int]:
        """Return the counts by name."""
        return {name: getattr(self, name) for name in self.__slots__}
