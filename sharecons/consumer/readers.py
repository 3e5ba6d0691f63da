"""The readers of one consumer: how they share, await and settle records.

Several tasks can read one consumer. One reader at a time, the holder, takes records
from the current lease: its loop advances the cursor of the lease without calling the
queue. When another reader calls the queue, it becomes the holder, and the previous one
calls the queue for its next record. So slow readers share a lease record by record,
while a fast one takes many.

Readers that find no records wait in a queue. Arriving records wake the first of them; a
reader that was served, or stopped waiting, wakes the next one if records are left.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from weakref import ref

from sharecons._record import ACCEPT, RELEASE, Record
from sharecons.consumer.left_loops import LeftLoops
from sharecons.errors import WrongThreadError
from sharecons.metrics.recorder import PollTimes
from sharecons.net.background import current_task, is_task_done
from sharecons.net.io.event_loop import Waiter
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.result_log import AcknowledgeResult

__all__ = [
    "Reader",
    "Readers",
    "Unacknowledged",
    "Undeserializable",
]


class Undeserializable:
    """A record that could not be deserialized, which its task might reject.

    Attributes:
        deadline: when other readers stop waiting for that, on the consumer's clock.
    """

    def __init__(self, lease: Lease, record: Record, until: float) -> None:
        self.deadline = until
        self._lease = lease
        self._record = record
        self._task = ref(current_task())

    def is_abandoned(self, now: float) -> bool:
        """Return whether its task reads again, has ended, or the deadline passed."""
        task = self._task()
        if now >= self.deadline or task is None:
            return True
        return task is current_task() or is_task_done(task)

    def release(self) -> None:
        """Release the record unless it was acknowledged."""
        lease, offset = self._lease, self._record.offset
        if lease.is_open(offset) and not lease.lock_scope.ended:
            lease.acknowledge(offset, RELEASE)


class Unacknowledged:
    """The delivered records of one reader that it has not settled.

    They are ranges of leases. The last range can be open: it ends at the cursor of its
    lease, which moves as records are delivered. In implicit mode the records are
    accepted by the reader's next read, and released when the reader has left (by break,
    a cancel or an exception) and another one reads. In explicit mode neither happens.

    Attributes:
        has_accepted: the reader has read on after its first record or batch.
    """

    def __init__(self, *, implicit: bool) -> None:
        self.has_accepted = False
        self._implicit = implicit
        self._parts: list[tuple[Lease, int, int]] = []
        self._lease: Lease | None = None
        self._start = 0

    @property
    def count(self) -> int:
        """The number of records."""
        count = sum(stop - start for _, start, stop in self._parts)
        return (
            count if self._lease is None else count + self._lease.cursor - self._start
        )

    def start_taking(self, lease: Lease) -> None:
        """Add the records of a lease that are delivered, starting at its cursor."""
        self.stop_taking()
        self._lease, self._start = lease, lease.cursor

    def stop_taking(self) -> None:
        """Add no more records; another reader takes the next ones."""
        lease, self._lease = self._lease, None
        if lease is not None and lease.cursor > self._start:
            self._parts.append((lease, self._start, lease.cursor))

    def remove_last(self) -> None:
        """Remove the record that was delivered last."""
        self.stop_taking()
        lease, start, stop = self._parts.pop()
        self._parts.append((lease, start, stop - 1))

    def settle(self, *, accept: bool) -> bool:
        """Remove all records; in implicit mode accept or release them.

        Return whether any was accepted or released.
        """
        self.stop_taking()
        parts, self._parts = self._parts, []
        if accept and parts:
            self.has_accepted = True
        was_open = False
        if self._implicit:
            kind = ACCEPT if accept else RELEASE
            for lease, start, stop in parts:
                if lease.acknowledge_implicitly(start, stop, kind):
                    was_open = True
        return was_open

    def accept_passed(self) -> bool:
        """Accept all but the last record, for a reader that takes them one by one.

        Return whether any record was accepted.
        """
        lease = self._lease
        if not self._implicit or lease is None:
            return False
        last = lease.cursor - 1
        if last <= self._start:
            return False
        lease.acknowledge_implicitly(self._start, last, ACCEPT)
        self._start = last
        self.has_accepted = True
        return True


class Reader:
    """One loop over records or batches, or the calls of poll() in one task.

    Attributes:
        unacknowledged: the records delivered to it that it has not settled.
        waiter: wakes it.
        per_record: it takes records one by one; each read settles those before.
        is_loop: it is a loop over records or batches, and not the calls of poll().
        woken: it was woken and has not run since.
        poll_times: when it last requested records and received some.
    """

    def __init__(
        self,
        unacknowledged: Unacknowledged,
        waiter: Waiter,
        *,
        per_record: bool = False,
        is_loop: bool = True,
    ) -> None:
        self.unacknowledged = unacknowledged
        self.waiter = waiter
        self.per_record = per_record
        self.is_loop = is_loop
        self.woken = False
        self.poll_times = PollTimes()

    def interrupt(self) -> None:
        """Call the queue for the next record instead of taking it from the lease."""


class Readers:
    """All readers that have records or wait for some; the member's `BufferListener`.

    Args:
        check_caller: raises WrongThreadError outside of the consumer's event loop.
        group_id: for warnings.
    """

    def __init__(self, check_caller: Callable[[], None], group_id: str = "") -> None:
        self._check_caller = check_caller
        self._left_loops = LeftLoops(group_id, is_loops=True)
        self._left_tasks = LeftLoops(group_id, is_loops=False)
        self._holder: Reader | None = None
        self._busy: dict[Reader, None] = {}
        self._waiting: deque[Reader] = deque()
        self._woken = 0
        self._removed: deque[Reader] = deque()
        self._undeserializable: list[Undeserializable] = []

    # Called by the buffer (`BufferListener`).

    def on_ready(self) -> None:
        self.wake()

    def on_locks_lost(self, leases: Sequence[Lease]) -> bool:
        # Loops iterate over a slice of records without a look at their locks.
        self.interrupt()
        self.wake()
        return False

    def on_acks_failed(self, results: Sequence[AcknowledgeResult]) -> None:
        """Do nothing: `on_acknowledged` receives the results."""

    def on_failed(self) -> None:
        self.wake_all()

    def on_closing(self) -> None:
        """Deliver no more records; in implicit mode accept what loops have passed."""
        self.accept_passed()
        self.interrupt()
        self.wake_all()

    # Delivered records.

    def hold(self, reader: Reader, lease: Lease) -> None:
        """Make the reader the holder: it takes the next records of the lease."""
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

    def settle(self, reader: Reader, *, accept: bool) -> bool:
        """Settle the reader's records; return whether any was accepted or released."""
        self._busy.pop(reader, None)
        return reader.unacknowledged.settle(accept=accept)

    def accept_passed(self) -> bool:
        """Accept the records that the holder has passed; return whether any was."""
        # Other readers' passed records were accepted when they stopped being holder.
        holder = self._holder
        return (
            holder is not None
            and holder.per_record
            and holder.unacknowledged.accept_passed()
        )

    def interrupt(self) -> None:
        """Make the holder call the queue for its next record."""
        if self._holder is not None:
            self._holder.interrupt()

    def processing(self, requester: Reader | None) -> tuple[int, int]:
        """Return how many other readers process records, and how many records."""
        if not self._busy or (len(self._busy) == 1 and requester in self._busy):
            return 0, 0
        # A loop over records has processed all but its current record.
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
        """Release the records of a reader that will not read again.

        Releases immediately if another reader waits, else when one reads. So after a
        break the application can acknowledge the record first. Can be called in any
        thread, as the garbage collector does.
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
        """Take back the last returned record, which could not be deserialized."""
        if reader.per_record:
            reader.unacknowledged.accept_passed()
        reader.unacknowledged.remove_last()
        reader.interrupt()
        self._undeserializable.append(Undeserializable(lease, record, until))

    def release_removed(self, now: float) -> None:
        """Release the records of removed readers, because another one reads."""
        if self._removed:
            self._release_removed()
        if self._undeserializable:
            self._release_undeserializable(now)

    def _release_removed(self) -> None:
        while self._removed:
            reader = self._removed.popleft()
            if reader.per_record:
                reader.unacknowledged.accept_passed()
            self._release(reader)
            if reader is self._holder:
                self._holder = None

    def _release(self, reader: Reader) -> None:
        has_accepted = reader.unacknowledged.has_accepted
        has_records = reader.unacknowledged.count > 0
        released = self.settle(reader, accept=False)
        if has_accepted or has_records:
            left = self._left_loops if reader.is_loop else self._left_tasks
            left.on_left(released_first=released and not has_accepted)

    def _release_undeserializable(self, now: float) -> None:
        """Release records that could not be deserialized, when their tasks read again.

        Until then the task can reject its record, though its loop has ended.
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
        """Wait to be woken, as `Waiter.wait`; call `end_wait` afterwards.

        The wait can end before the deadline, so that `release_removed` is called again.
        """
        for failed in self._undeserializable:
            deadline = min(deadline, failed.deadline)
        if reader.woken:
            # Another reader took the records: this one keeps its place in the queue.
            reader.woken = False
            self._waiting.appendleft(reader)
        else:
            self._waiting.append(reader)
        return reader.waiter.wait(deadline)

    def end_wait(self, reader: Reader) -> None:
        """Remove a reader from the waiting ones, whether or not it was woken."""
        if reader.woken:
            self._woken -= 1
        else:
            self._waiting.remove(reader)
        reader.waiter.end_wait()

    def wake(self) -> None:
        """Wake the first reader that waits."""
        if self._waiting:
            self._waiting[0].waiter.wake()  # raises if the event loop is closed
            reader = self._waiting.popleft()
            reader.woken = True
            self._woken += 1

    def wake_all(self) -> None:
        """Wake all readers that wait."""
        while self._waiting:
            self.wake()
