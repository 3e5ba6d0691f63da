"""Implicit acknowledgement: the records of one reader that it has not settled.

`Unacknowledged` has ranges of leases. The last range may be open: it ends at the cursor
of its lease, which moves as records are delivered. In implicit mode the records are
accepted by the reader's next read. They are released when the reader has left (by
break, a cancel or an exception) and another one reads. In explicit mode neither
happens.

Records that could not be deserialized are kept apart (`Undeserializable`). They are
released in both modes, unless the application has acknowledged them.
"""

from weakref import ref

from sharecons._record import ACCEPT, RELEASE, Record
from sharecons.net.background import current_task, is_task_done
from sharecons.protocol.acknowledge.leases import Lease

__all__ = ["Unacknowledged", "Undeserializable"]


class Undeserializable:
    """A record that could not be deserialized, which its task may be about to reject.

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
    """The delivered records of one reader that it has not settled."""

    def __init__(self, *, implicit: bool) -> None:
        self._implicit = implicit
        self._parts: list[tuple[Lease, int, int]] = []
        self._lease: Lease | None = None
        self._start = 0

    @property
    def has_records(self) -> bool:
        """True while `settle` or `accept_passed` may acknowledge a record."""
        return self._implicit and bool(self._lease is not None or self._parts)

    @property
    def count(self) -> int:
        """The number of records."""
        count = sum(stop - start for _, start, stop in self._parts)
        return (
            count if self._lease is None else count + self._lease.cursor - self._start
        )

    def start_taking(self, lease: Lease) -> None:
        """Add the records that are delivered of a lease from its cursor on."""
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

    def settle(self, *, accept: bool) -> None:
        """Remove all records; in implicit mode accept or release them."""
        self.stop_taking()
        parts, self._parts = self._parts, []
        if self._implicit:
            kind = ACCEPT if accept else RELEASE
            for lease, start, stop in parts:
                lease.acknowledge_implicitly(start, stop, kind)

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
        return True
