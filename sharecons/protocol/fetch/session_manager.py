"""A share session: what one leader knows of us, and under which epoch.

Rule 1: epochs and the session's partitions are counted here and nowhere else.
Rule 2: this file does not know why a request goes out, only how it is numbered.

Theory of operation
-------------------
There is one session for each member and leader. A ShareFetch with epoch 0 opens
it; from then on each request, fetch or acknowledge, carries the next number, and
-1 closes it (KIP-932, "Share sessions"). The numbers are a strict sequence, counted
as requests are sent: a broker takes those of one connection in order, so one may be
sent before the answer of the one before. An answer may then be to a request of a
session that was given up meanwhile: `resets` tells.

The broker remembers the partitions. A fetch names only those that are new to it,
or carry acknowledgements, and those to forget. Naming a partition for its
acknowledgements makes it a part of the session too: then it is forgotten again
in the same request.

When the connection ends the session is gone, and with it the locks: `Term` stands
for one such life, and what was acquired in it asks it whether it is over.
"""

from collections.abc import Set as AbstractSet
from typing import Final

from sharecons.protocol.acknowledge.lock_scope import LockScope
from sharecons.protocol.messages import SharePartition

__all__ = ["ShareSession"]

OPENING = 0
CLOSING = -1

NONE: Final[frozenset[SharePartition]] = frozenset()


class ShareSession:
    """Numbers the requests to one leader.

    Attributes:
        epoch: the number of the next request; 0 while there is no session.
        term: the session's life; another one after `lost`.
        resets: how often a session was given up.
    """

    def __init__(self) -> None:
        self.epoch = OPENING
        self.lock_scope = LockScope()
        self.resets = 0
        self._partitions: frozenset[SharePartition] = frozenset()
        self._requested: frozenset[SharePartition] = frozenset()

    @property
    def is_open(self) -> bool:
        return self.epoch != OPENING

    @property
    def partitions(self) -> frozenset[SharePartition]:
        """What the leader believes us to fetch."""
        return self._partitions

    def update(
        self,
        partitions: frozenset[SharePartition],
        acknowledged: AbstractSet[SharePartition],
    ) -> tuple[frozenset[SharePartition], frozenset[SharePartition]]:
        """Give what a fetch adds to the session and what it makes it forget."""
        self._requested = partitions
        if partitions is self._partitions:
            # As it is where partitions are few; else there may be hundreds of them.
            return NONE, frozenset(acknowledged - partitions)
        added = partitions - self._partitions
        forgotten = self._partitions.union(acknowledged) - partitions
        return added, frozenset(forgotten)

    def next_epoch(self) -> int:
        """Take the number of a request that is sent now."""
        epoch = self.epoch
        self.epoch = 1 if epoch == 0x7FFFFFFF else epoch + 1
        return epoch

    def on_fetch_response(self) -> None:
        """A fetch was answered: the leader holds what the last one listed."""
        self._partitions = self._requested

    def reset(self) -> None:
        """Open anew; the locks outlive it, for they are the member's.

        Measured on Kafka 4.3.0: an epoch of 0 on a live connection replaces the
        session and releases nothing.
        """
        self.epoch = OPENING
        self._partitions = frozenset()
        self.resets += 1

    def on_lost(self, reason: str) -> None:
        """The session ended at the leader's, and every lock taken in it."""
        self.reset()
        self.lock_scope.ended = True
        self.lock_scope.reason = reason
        self.lock_scope = LockScope()
