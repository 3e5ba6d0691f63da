"""The session manager: epochs and partitions of the share session with one leader.

Theory of operation
-------------------
Each member has one session per leader. A ShareFetch with epoch 0 opens it; each later
request, fetch or acknowledge, has the next epoch; -1 closes it (KIP-932, "Share
sessions"). Epochs are assigned when requests are sent.

The broker keeps the session's partitions. A fetch lists only new partitions, partitions
with acknowledgements, and partitions to forget. Acknowledgements add their partition to
the session, so a partition that is not fetched is forgotten in the same request.

The session ends with the connection, and its locks end with it. Leases refer to the
`LockScope` of the session in which they were acquired.
"""

from collections.abc import Set as AbstractSet
from typing import Final

from sharecons.protocol.acknowledge.lock_scope import LockScope
from sharecons.protocol.codes import Code
from sharecons.protocol.partitions import SharePartition

__all__ = ["CLOSING", "OPENING", "ShareSession"]

OPENING = 0
CLOSING = -1

NONE: Final[frozenset[SharePartition]] = frozenset()


class ShareSession:
    """The share session with one leader.

    Attributes:
        epoch: the epoch of the next request; 0 without a session.
        lock_scope: the scope of the session's locks; a new one after `on_lost`.
    """

    def __init__(self) -> None:
        self.epoch = OPENING
        self.lock_scope = LockScope()
        self._partitions: frozenset[SharePartition] = frozenset()
        self._requested: frozenset[SharePartition] = frozenset()

    @property
    def is_open(self) -> bool:
        return self.epoch != OPENING

    @property
    def partitions(self) -> frozenset[SharePartition]:
        """The partitions of the session, as of the last response."""
        return self._partitions

    def update(
        self,
        partitions: frozenset[SharePartition],
        acknowledged: AbstractSet[SharePartition],
    ) -> tuple[frozenset[SharePartition], frozenset[SharePartition]]:
        """Return the partitions that a fetch adds to the session and forgets."""
        self._requested = partitions
        if partitions is self._partitions:
            # The usual case; a difference of hundreds of partitions takes time.
            return NONE, frozenset(acknowledged - partitions)
        added = partitions - self._partitions
        forgotten = self._partitions.union(acknowledged) - partitions
        return added, frozenset(forgotten)

    def next_epoch(self) -> int:
        """Return the epoch of the request to send now, and advance it."""
        epoch = self.epoch
        # After the largest epoch brokers expect 1, since 0 opens a session.
        self.epoch = 1 if epoch == 0x7FFFFFFF else epoch + 1
        return epoch

    def on_fetch_response(self) -> None:
        """Handle a fetch response: the leader has the partitions last requested."""
        self._partitions = self._requested

    def reset(self) -> None:
        """Open a new session with the next fetch; the member keeps its locks.

        Measured on Kafka 4.3.0: an epoch of 0 on a live connection replaces the
        session and releases nothing.
        """
        self.epoch = OPENING
        self._partitions = frozenset()

    def on_lost(self, reason: str, code: Code = Code.SHARE_SESSION_NOT_FOUND) -> None:
        """Handle the end of the session at the leader, and of all its locks."""
        self.reset()
        self.lock_scope.ended = True
        self.lock_scope.reason = reason
        self.lock_scope.code = code
        self.lock_scope = LockScope()
