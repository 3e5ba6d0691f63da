"""Which broker coordinates a group, a transaction, a share partition's state.

Kafka hashes a key to a partition of an internal topic, whose leader coordinates. Here
a key is hashed to one of the brokers that run when it is first asked for, and stays
there as long as that broker runs: one that comes back gets nothing back, as a leader
does not either before the next preferred election.
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
    """A broker for each key, the same as long as that broker runs."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[int, str], int] = {}
        self.moved = Signal()
        """Told when a key has been given to another broker by `move`."""

    def of(self, key_type: int, key: str, running: Sequence[int]) -> int:
        """Give the node id of a key's coordinator; -1 if no broker runs.

        Key types as in FindCoordinator: 0 groups, 1 transactions, 2 share state.
        """
        if not running:
            return -1
        if self._nodes.get((key_type, key)) not in running:
            nodes = sorted(running)
            chosen = nodes[crc32(f"{key_type}:{key}".encode()) % len(nodes)]
            self._nodes[key_type, key] = chosen
        return self._nodes[key_type, key]

    def move(self, key_type: int, key: str, node_id: int) -> None:
        """Make a broker the coordinator of a key, from now on."""
        self._nodes[key_type, key] = node_id
        self.moved.ring()
