"""What the application was given last, and what becomes of it at the next asking.

A hand is a number of leases, each from the index where handing out began to its
cursor. In implicit mode it is accepted when the same asker asks again, and
released when another asker comes in between (after a loop that was left by break,
a cancel or an exception): as far as anybody told, it was not worked off. In
explicit mode nothing is done to it.

A record that could not be deserialized is never accepted by default: it is
released, unless the application said something of it, in both modes.
"""

from sharecons.protocol.leases import Lease
from sharecons.untyped import ACCEPT, RELEASE, Record

__all__ = ["Hand"]


class Hand:
    """One consumer's hand."""

    def __init__(self, *, implicit: bool) -> None:
        self._implicit = implicit
        self._leases: list[tuple[Lease, int]] = []
        self._unfit: tuple[Lease, Record] | None = None

    @property
    def is_full(self) -> bool:
        """True while putting it down, or passing by, settles something."""
        return self._implicit and bool(self._leases)

    def take(self, lease: Lease) -> None:
        """What is handed out of a lease from its cursor on is in hand."""
        self._leases.append((lease, lease.cursor))

    def cannot_use(self, lease: Lease, record: Record) -> None:
        """A record in hand could not be deserialized."""
        self._unfit = (lease, record)

    def put_down(self, *, accept: bool) -> None:
        """The hand is worked off (`accept`), or left."""
        self._give_back_unfit()
        leases, self._leases = self._leases, []
        if self._implicit:
            for lease, start in leases:
                lease.acknowledge_implicitly(
                    start, lease.cursor, ACCEPT if accept else RELEASE
                )

    def pass_by(self) -> bool:
        """Accept all but the last record, in a loop that goes record by record.

        Tells whether there was anything to accept.
        """
        if not self._implicit or not self._leases:
            return False
        lease, start = self._leases[-1]
        last = lease.cursor - 1
        if last <= start:
            return False
        lease.acknowledge_implicitly(start, last, ACCEPT)
        self._leases[-1] = (lease, last)
        return True

    def _give_back_unfit(self) -> None:
        if self._unfit is not None:
            (lease, record), self._unfit = self._unfit, None
            if lease.is_open(record.offset) and not lease.term.over:
                lease.acknowledge(record.offset, RELEASE)
