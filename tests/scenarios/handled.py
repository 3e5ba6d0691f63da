"""A handler of one partition's records that notes their deliveries and results."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio

from sharecons import AcknowledgeResult, Record

__all__ = ["Handled", "hang_at_first"]


class Handled:
    """A handler that notes deliveries and cancellations.

    Attributes:
        deliveries: the delivery counts with which an offset was handled.
        ends: when the handler of an offset ended, if it was not cancelled.
        cancelled: when handlers were cancelled.
        accepted: when the accept of an offset was confirmed.
        rejected: how many accepts of an offset the broker has rejected.
    """

    def __init__(self, act: Callable[[Record[Any, Any]], Awaitable[object]]) -> None:
        self.deliveries: dict[int, list[int]] = {}
        self.ends: dict[int, float] = {}
        self.cancelled: list[float] = []
        self.accepted: dict[int, float] = {}
        self.rejected: Counter[int] = Counter()
        self._act = act

    async def __call__(self, record: Record[Any, Any]) -> None:
        self.deliveries.setdefault(record.offset, []).append(record.delivery_count)
        try:
            await self._act(record)
        except anyio.get_cancelled_exc_class():
            self.cancelled.append(anyio.current_time())
            raise
        self.ends[record.offset] = anyio.current_time()

    @property
    def counts(self) -> Counter[tuple[int, ...]]:
        return Counter(map(tuple, self.deliveries.values()))

    @property
    def accepted_after_ends(self) -> bool:
        """True if every handler that ended did so before its record was accepted."""
        return self.accepted.keys() == self.ends.keys() and all(
            self.ends[offset] <= at for offset, at in self.accepted.items()
        )

    def on_acknowledged(self, results: Sequence[AcknowledgeResult]) -> None:
        """For `ShareConsumer(on_acknowledged=...)`."""
        for each in results:
            if each.type.name != "ACCEPT":
                continue
            for offset in range(each.first_offset, each.last_offset + 1):
                if each.error is None:
                    self.accepted[offset] = anyio.current_time()
                else:
                    self.rejected[offset] += 1


async def hang_at_first(record: Record[Any, Any]) -> None:
    """Never return from the first delivery, and return immediately from others."""
    if record.delivery_count == 1:
        await anyio.sleep_forever()
