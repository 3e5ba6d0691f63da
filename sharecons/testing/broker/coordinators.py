"""The coordinators of groups, transactions and share group state.

Kafka hashes a key to a partition of an internal topic, whose leader coordinates. Here a
key is hashed to one of the running brokers at its first use, and stays there until that
broker stops. A broker that starts again gets no keys back, as a leader gets none before
the next preferred election.
"""

from collections.abc import Sequence
from typing import Final
from zlib import crc32

from sharecons.testing.broker.signals import Signal

__all__ = ["GROUP", "SHARE", "TRANSACTION", "Coordinators"]

GROUP: Final = 0
TRANSACTION: Final = 1
SHARE: Final = 2


class Coordinators:
    """The coordinator of each key."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[int, str], int] = {}
        self.moved = Signal()
        """Notified when `move` has changed a coordinator."""

    def node_for(self, key_type: int, key: str, running: Sequence[int]) -> int:
        """Return the node id of a key's coordinator; -1 if no broker runs.

        Key types are as in FindCoordinator: 0 groups, 1 transactions, 2 share state.
        """
        if not running:
            return -1
        if self._nodes.get((key_type, key)) not in running:
            nodes = sorted(running)
            chosen = nodes[crc32(f"{key_type}:{key}".encode()) % len(nodes)]
            self._nodes[key_type, key] = chosen
        return self._nodes[key_type, key]

    def move(self, key_type: int, key: str, node_id: int) -> None:
        """Make a broker the coordinator of a key."""
        self._nodes[key_type, key] = node_id
        self.moved.notify()
