"""Waiting for records: the coroutines of loops and of poll().

This module is not compiled, because cancelling a compiled coroutine raises a
DeprecationWarning from Python 3.12 on. What happens per record is in `loops`, and
compiled.
"""

from typing import Any, Generic, Protocol, Self

from anyio.lowlevel import checkpoint

from sharecons.batch import Batch
from sharecons.deliveries import Asker, Deliveries
from sharecons.errors import ClosedError, DeserializationError
from sharecons.net.waiting import FOREVER
from sharecons.protocol.leases import Lease
from sharecons.record import KeyT, Record, ValueT

__all__ = ["BatchLoop", "Poller", "ask", "next_record"]


async def ask(deliveries: Deliveries, asker: Asker, deadline: float) -> Lease | None:
    """Return the lease to hand out from, its cursor on; None past the deadline.

    What the asker was given before is settled by asking. Cancelling this loses
    nothing.

    Raises: as `Deliveries.check`, and what went wrong with records.
    """
    deliveries.ask(asker)
    if deliveries.is_pause_due:
        await checkpoint()
        deliveries.paused()
    while not deliveries.serve():
        try:
            woken = await deliveries.wait(deadline)
        finally:
            deliveries.waited()
        if not woken:
            return None
        deliveries.paused()
        deliveries.check(asker)
    return deliveries.lease


class Serving(Asker, Protocol):
    """A loop that hands out the records of a lease one by one."""

    def serve(self, lease: Lease) -> Any:
        """Return the first of the records, and hand out the others from now on."""


async def next_record(deliveries: Deliveries, loop: Serving) -> Any:
    """Return the loop's next record where it has none at hand."""
    try:
        lease = await ask(deliveries, loop, FOREVER)
    except ClosedError:
        raise StopAsyncIteration from None
    assert lease is not None, "no deadline"
    return loop.serve(lease)


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
            lease = await ask(self._deliveries, self, FOREVER)
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
        if await ask(self._deliveries, self, deadline) is not None:
            try:
                self._take(records, most)
            except DeserializationError:
                raise
            except BaseException:
                self._deliveries.take_back()
                raise
        return records

    def _take(self, records: list[Record[Any, Any]], most: int | None) -> None:
        deliveries = self._deliveries
        while True:
            room = None if most is None else most - len(records)
            _, taken = deliveries.take(room, first=not records)
            records += taken
            if not taken or len(records) == most or not deliveries.take_more():
                return
