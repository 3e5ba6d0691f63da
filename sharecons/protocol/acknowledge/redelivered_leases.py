"""The leases with redelivered records, as long as a broker can hold their locks.

An acknowledgement of an earlier delivery must not reach the broker while one of them
has the record: see `ack_batches`.
"""

from collections import deque
from typing import final

from sharecons.protocol.acknowledge.leases import Lease

__all__ = ["RedeliveredLeases"]


@final
class RedeliveredLeases:
    """The leases of one leader that have records with a delivery count above 1."""

    def __init__(self) -> None:
        self._leases: deque[Lease] = deque()

    def add(self, lease: Lease, now: float) -> None:
        """Keep a lease, if it has redelivered records."""
        if lease.highest_delivery_count > 1:
            self._remove_ended(now)
            self._leases.append(lease)

    def held(self, now: float) -> list[Lease]:
        """Return the leases whose locks the broker can still hold."""
        self._remove_ended(now)
        return list(self._leases)

    def _remove_ended(self, now: float) -> None:
        while self._leases:
            locks = self._leases[0].locks
            if now <= max(locks.held_until, locks.last()):
                return
            self._leases.popleft()
