"""Who asks for records: a loop over records, one over batches, and poll().

The path of a record ends in `RecordLoop.__anext__`: an index, a look at the
clock, and out. Whatever else there is to do (accept what was passed, let others
run, find the next records, notice that a lock has ended) is done in
`_look_around`, between leases and every SLICE seconds.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, Self

from sharecons.batch import Batch
from sharecons.deliveries import SLICE, Deliveries
from sharecons.errors import ClosedError
from sharecons.net.waiting import FOREVER
from sharecons.protocol.leases import Lease
from sharecons.record import KeyT, Record, ValueT

__all__ = ["BatchLoop", "Poller", "RecordLoop"]

AT_ONCE: Final = float("-inf")


class RecordLoop(Generic[KeyT, ValueT]):
    """`async for record in consumer`.

    Ends when the consumer is closed. Cancelling it while it waits loses nothing.
    """

    passes = True

    def __init__(self, deliveries: Deliveries, tick: Callable[[], None]) -> None:
        self._deliveries = deliveries
        self._tick = tick
        self._clock = deliveries.clock
        self._deserializes = bool(deliveries.deserializers)
        self._lease: Lease | None = None
        self._records: Sequence[Record[KeyT, ValueT]] = ()
        self._pause_at = AT_ONCE

    def __aiter__(self) -> Self:
        return self

    def interrupt(self) -> None:
        self._pause_at = AT_ONCE

    async def __anext__(self) -> Record[KeyT, ValueT]:
        lease = self._lease
        if (
            lease is None
            or lease.cursor >= len(self._records)
            or self._clock() >= self._pause_at
        ):
            lease = await self._look_around()
        index = lease.cursor
        lease.cursor = index + 1
        record = self._records[index]
        if self._deserializes:
            record = self._deliveries.deserialize(lease, record)
        return record

    async def _look_around(self) -> Lease:
        deliveries = self._deliveries
        self._pause_at = AT_ONCE
        try:
            lease = await deliveries.ask(self, FOREVER)
        except ClosedError:
            raise StopAsyncIteration from None
        assert lease is not None, "no deadline"
        self._lease = lease
        self._records = deliveries.records
        deliveries.hand()
        self._pause_at = min(self._clock() + SLICE, lease.deadline)
        if len(self._records) - lease.cursor > 1:
            self._tick()  # of a single record nothing is passed before the next asking
        return lease


class BatchLoop(Generic[KeyT, ValueT]):
    """`async for batch in consumer.batches()`.

    Ends when the consumer is closed. Cancelling it while it waits loses nothing.
    """

    passes = False

    def __init__(self, deliveries: Deliveries) -> None:
        self._deliveries = deliveries

    def __aiter__(self) -> Self:
        return self

    def interrupt(self) -> None:
        """Nothing is kept here between two askings."""

    async def __anext__(self) -> Batch[KeyT, ValueT]:
        try:
            lease = await self._deliveries.ask(self, FOREVER)
        except ClosedError:
            raise StopAsyncIteration from None
        assert lease is not None, "no deadline"
        start, records = self._deliveries.take(None)
        return Batch(lease, records, start)


class Poller:
    """`await consumer.poll()`."""

    passes = False

    def __init__(self, deliveries: Deliveries) -> None:
        self._deliveries = deliveries

    def interrupt(self) -> None:
        """Nothing is kept here between two askings."""

    async def poll(self, deadline: float, most: int | None) -> list[Record[Any, Any]]:
        """Wait for records until the deadline, then take what is ready."""
        records: list[Record[Any, Any]] = []
        served = await self._deliveries.ask(self, deadline) is not None
        while served:
            _, taken = self._deliveries.take(
                None if most is None else most - len(records)
            )
            records += taken
            if most is not None and len(records) >= most:
                break
            served = self._deliveries.take_more()
        return records
