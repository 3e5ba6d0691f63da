"""The readers of one consumer: which one takes records, and which ones wait.

Several tasks may read one consumer. One reader at a time, the holder, takes records
from the present lease: its loop advances the cursor of the lease without asking. When
another reader asks, it becomes the holder, and the one before asks for its next record.
So a lease is shared record by record among slow readers, while a fast one takes many.

Readers that find nothing wait in a queue. What arrives wakes the first of them; a
reader that was served, or stopped waiting, wakes the next one if there is more.
"""

from collections import deque
from collections.abc import Awaitable, Callable

from sharecons._record import Record
from sharecons.consumer.implicit_acks import Unacknowledged, Undeserializable
from sharecons.errors import WrongThreadError
from sharecons.net.io.wakeup import Waiter
from sharecons.protocol.acknowledge.leases import Lease

__all__ = ["Reader", "Readers"]


class Reader:
    """One loop over records or batches, or the calls of poll() in one task.

    Attributes:
        hand: what it was given and has not settled.
        waiter: what it waits on.
        passes: it goes record by record: asking for a record settles those before.
        woken: its wait has ended, and it has not run since.
    """

    def __init__(
        self,
        unacknowledged: Unacknowledged,
        waiter: Waiter,
        *,
        per_record: bool = False,
    ) -> None:
        self.unacknowledged = unacknowledged
        self.waiter = waiter
        self.per_record = per_record
        self.woken = False

    def interrupt(self) -> None:
        """Ask for the next record instead of taking it."""


class Readers:
    """All readers that have records in hand or wait for some.

    Args:
        check_caller: raises WrongThreadError outside of the consumer's event loop.
    """

    def __init__(self, check_caller: Callable[[], None]) -> None:
        self._check_caller = check_caller
        self._holder: Reader | None = None
        self._busy: dict[Reader, None] = {}
        self._waiting: deque[Reader] = deque()
        self._woken = 0
        self._removed: deque[Reader] = deque()
        self._undeserializable: list[Undeserializable] = []

    # Records in hand.

    def hold(self, reader: Reader, lease: Lease) -> None:
        """Have the reader take what is handed out of the lease from now on."""
        holder = self._holder
        if holder is not reader:
            if holder is not None:
                if holder.per_record:
                    holder.unacknowledged.accept_passed()
                holder.unacknowledged.stop_taking()
                holder.interrupt()
            self._holder = reader
        reader.unacknowledged.start_taking(lease)
        self._busy[reader] = None

    def settle(self, reader: Reader, *, accept: bool) -> None:
        """Settle what the reader has in hand."""
        self._busy.pop(reader, None)
        reader.unacknowledged.settle(accept=accept)

    def accept_passed(self) -> bool:
        """Accept what the holder has passed; return whether there was anything."""
        # The others passed theirs when they ceased to hold.
        holder = self._holder
        return (
            holder is not None
            and holder.per_record
            and holder.unacknowledged.accept_passed()
        )

    @property
    def can_accept_passed(self) -> bool:
        """True while the holder has something in hand that it may pass."""
        return self._holder is not None and self._holder.unacknowledged.has_records

    def interrupt(self) -> None:
        """Have the holder ask for its next record."""
        if self._holder is not None:
            self._holder.interrupt()

    def processing(self, requester: Reader | None) -> tuple[int, int]:
        """Return how many other readers process records, and how many records."""
        if not self._busy or (len(self._busy) == 1 and requester in self._busy):
            return 0, 0
        # Those that a loop over records has passed are processed.
        counts = [
            min(reader.unacknowledged.count, 1)
            if reader.per_record
            else reader.unacknowledged.count
            for reader in self._busy
            if reader is not requester
        ]
        return len(counts), sum(counts)

    # Readers that leave.

    def remove(self, reader: Reader) -> None:
        """Release what a reader has in hand that will not ask again.

        Releases at once if another reader waits, else when one asks. So after a break
        the application can acknowledge the record first. May be called in any thread,
        as the garbage collector does.
        """
        self._removed.append(reader)
        if self._waiting or self._woken:
            try:
                self._check_caller()
            except WrongThreadError:
                return
            self._release_removed()

    def note_undeserializable(
        self, reader: Reader, lease: Lease, record: Record, until: float
    ) -> None:
        """Note that the record handed out last could not be deserialized."""
        if reader.per_record:
            reader.unacknowledged.accept_passed()
        reader.unacknowledged.remove_last()
        reader.interrupt()
        self._undeserializable.append(Undeserializable(lease, record, until))

    def release_removed(self, now: float) -> None:
        """Release what readers that have left had in hand; another one asks."""
        if self._removed:
            self._release_removed()
        if self._undeserializable:
            self._release_undeserializable(now)

    def _release_removed(self) -> None:
        while self._removed:
            reader = self._removed.popleft()
            if reader.per_record:
                reader.unacknowledged.accept_passed()
            self.settle(reader, accept=False)
            if reader is self._holder:
                self._holder = None

    def _release_undeserializable(self, now: float) -> None:
        """Release records that could not be deserialized, when their tasks ask again.

        Until then the task may reject its record, though its loop has ended.
        """
        kept = []
        for failed in self._undeserializable:
            if failed.is_abandoned(now):
                failed.release()
            else:
                kept.append(failed)
        self._undeserializable = kept

    # Readers that wait.

    @property
    def any_waiting(self) -> bool:
        """True if a reader waits that was not woken."""
        return bool(self._waiting)

    @property
    def any_woken(self) -> bool:
        """True if a reader was woken, and has not run since."""
        return self._woken > 0

    def wait(self, reader: Reader, deadline: float) -> Awaitable[bool]:
        """Wait to be woken, as `Waiter.wait`; call `waited` afterwards.

        The wait may end before the deadline, to call `release_left` again.
        """
        for failed in self._undeserializable:
            deadline = min(deadline, failed.deadline)
        if reader.woken:
            # Another reader took what it was woken for: it keeps its place.
            reader.woken = False
            self._waiting.appendleft(reader)
        else:
            self._waiting.append(reader)
        return reader.waiter.wait(deadline)

    def end_wait(self, reader: Reader) -> None:
        """Note that the wait has ended, in whatever way."""
        if reader.woken:
            self._woken -= 1
        else:
            self._waiting.remove(reader)
        reader.waiter.end_wait()

    def wake(self) -> None:
        """Wake the first reader that waits."""
        if self._waiting:
            self._waiting[0].waiter.wake()  # raises if the event loop is closed
            self._mark_woken()

    def wake_all(self) -> None:
        """Wake all readers that wait."""
        while self._waiting:
            self.wake()

    def resume(self) -> bool:
        """Wake the first reader, as `Waiter.resume` does."""
        return bool(self._waiting) and self._mark_woken().waiter.resume()

    def _mark_woken(self) -> Reader:
        reader = self._waiting.popleft()
        reader.woken = True
        self._woken += 1
        return reader
