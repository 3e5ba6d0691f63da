"""Waiting for records: the coroutines of loops.

This module is not compiled, because cancelling a compiled coroutine raises a
DeprecationWarning from Python 3.12 on. What happens per record is in `loops`, and
compiled.
"""

from typing import Any, Generic, Protocol, Self

from anyio.lowlevel import checkpoint

from sharecons.batch import Batch
from sharecons.consumer.delivery_queue import DeliveryQueue
from sharecons.consumer.readers import Reader
from sharecons.errors import ClosedError
from sharecons.net.io.wakeup import FOREVER
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.record import KeyT, ValueT

__all__ = ["BatchIterator", "next_record", "wait_for_lease"]


async def wait_for_lease(
    deliveries: DeliveryQueue, reader: Reader, deadline: float
) -> Lease | None:
    """Return the lease to hand out from, its cursor on; None past the deadline.

    What the reader was given before is settled by asking. Cancelling this loses
    nothing.

    Raises: as `DeliveryQueue.check`, and what went wrong with records.
    """
    deliveries.settle_previous(reader)
    if deliveries.is_pause_due:
        await checkpoint()
        deliveries.pause_ended()
        deliveries.check(reader)
    while not deliveries.find_next(reader):
        woken = False
        try:
            woken = await deliveries.wait(reader, deadline)
        finally:
            deliveries.wait_ended(reader)
            if not woken:
                deliveries.wake_next()  # in case it was woken in the same moment
        if not woken and deliveries.clock() >= deadline:
            return None
        deliveries.pause_ended()
        deliveries.check(reader)
    return deliveries.lease


class LeaseReader(Protocol):
    """A reader that hands out the records of a lease one by one."""

    def serve(self, lease: Lease) -> Any:
        """Return the first of the records, and hand out the others from now on."""


async def next_record(deliveries: DeliveryQueue, reader: Any, loop: object) -> Any:
    """Return the next record of a loop whose reader has none at hand.

    Keeps the loop alive while waiting: deleting a loop releases its record.
    """
    try:
        lease = await wait_for_lease(deliveries, reader, FOREVER)
        assert lease is not None, "no deadline"
        return reader.serve(lease)
    except ClosedError:
        raise StopAsyncIteration from None
    except BaseException:
        del loop  # or the traceback would keep it alive
        raise


class BatchIterator(Generic[KeyT, ValueT]):
    """`async for batch in consumer.batches()`.

    Ends when the consumer is closed. Cancelling it while it waits loses nothing. Each
    task has a loop of its own.
    """

    def __init__(self, deliveries: DeliveryQueue) -> None:
        self._deliveries = deliveries
        self._reader = Reader(deliveries.new_unacknowledged(), deliveries.new_waiter())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Batch[KeyT, ValueT]:
        try:
            lease = await wait_for_lease(self._deliveries, self._reader, FOREVER)
            assert lease is not None, "no deadline"
            start, records = self._deliveries.take(self._reader, None)
        except ClosedError:
            raise StopAsyncIteration from None
        except BaseException:
            del self  # or the traceback would keep it alive
            raise
        return Batch(lease, records, start)

    def __del__(self) -> None:
        self._deliveries.remove_reader(self._reader)
