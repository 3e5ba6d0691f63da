"""The delivered records that are not settled, and the spans that they belong to.

Locks can be lost without a request that settles the records, so records also leave this
when they are delivered again, or when MAX_DELIVERIES later ones were delivered.
"""

from typing import Final, final

from opentelemetry.trace import SpanContext

from sharecons._record import Record

__all__ = ["Deliveries", "Delivery"]

MAX_DELIVERIES: Final = 20_000
"""A member holds 2,000 records of a partition; one entry takes about 300 bytes."""

Position = tuple[str, int, int]
"""Topic, partition and offset."""


@final
class Delivery:
    """One delivery of a record.

    Attributes:
        creation: the context that the record's headers had.
        process: the span of the latest attempt.
    """

    __slots__ = ("creation", "delivery_count", "process")

    def __init__(self, delivery_count: int, creation: SpanContext | None) -> None:
        self.delivery_count = delivery_count
        self.creation = creation
        self.process: SpanContext | None = None


@final
class Deliveries:
    """The unsettled deliveries of one member."""

    def __init__(self) -> None:
        self._by_position: dict[Position, Delivery] = {}

    def __len__(self) -> int:
        return len(self._by_position)

    def add(
        self, record: Record, creation: SpanContext | None
    ) -> tuple[Delivery, bool]:
        """Return the delivery of a record, and whether it is new."""
        position = (record.topic, record.partition, record.offset)
        found = self._by_position.get(position)
        if found is not None and found.delivery_count == record.delivery_count:
            return found, False
        if found is not None:
            # A stale one would keep its place in the order.
            del self._by_position[position]
        delivery = Delivery(record.delivery_count, creation)
        self._by_position[position] = delivery
        if len(self._by_position) > MAX_DELIVERIES:
            del self._by_position[next(iter(self._by_position))]
        return delivery, True

    def find(self, topic: str, partition: int, offset: int) -> Delivery | None:
        """Return the unsettled delivery of a record, or None."""
        return self._by_position.get((topic, partition, offset))

    def remove(
        self, topic: str, partition: int, offset: int, delivery: Delivery
    ) -> None:
        """Remove a delivery that is settled, unless it was replaced meanwhile."""
        position = (topic, partition, offset)
        if self._by_position.get(position) is delivery:
            del self._by_position[position]
