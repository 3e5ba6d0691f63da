"""The coordinators of groups, transactions and share group state.

Kafka hashes a key to a partition of an internal topic, whose leader coordinates. Here a
key is hashed to one of the running brokers at its first use, and stays there until that
broker stops. A broker that starts again gets no keys back, as a leader gets none before
the next preferred election.

In Kafka a move takes time: first the partition of the internal topic has no leader, and
then the new leader loads it. Here both take `move_time` after a broker has stopped, and
an election by `move` only loads.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias
from zlib import crc32

import anyio

from sharecons.testing.broker.fault_arguments import check_seconds
from sharecons.testing.broker.signals import Signal

__all__ = ["GROUP", "NO_COORDINATOR", "SHARE", "TRANSACTION", "Coordinators"]

GROUP: Final = 0
TRANSACTION: Final = 1
SHARE: Final = 2
NO_COORDINATOR: Final = -1

_Key: TypeAlias = tuple[int, str]


class Coordinators:
    """The coordinator of each key."""

    def __init__(self, clock: Callable[[], float] = anyio.current_time) -> None:
        self.move_time = 0.0
        """Seconds that a key has no coordinator, and that the next one loads it."""
        self.clock = clock
        """Returns the time; not called while moves take no time."""
        self._nodes: dict[_Key, int] = {}
        self._elections: dict[_Key, float] = {}
        """When the keys without a coordinator get one."""
        self._loaded: dict[_Key, float] = {}
        """When the keys that have moved are loaded."""
        self.moved = Signal()
        """Notified when `move` has changed a coordinator."""

    def set_move_time(self, seconds: float) -> None:
        """Set `move_time`.

        Raises:
            TypeError, ValueError: it is not a number of seconds from 0.
        """
        check_seconds("coordinator_move_time", seconds)
        self.move_time = seconds

    def node_for(self, key_type: int, key: str, running: Sequence[int]) -> int:
        """Return the node id of a key's coordinator; -1 if there is none.

        There is none if no broker runs, and during an election. Key types are as in
        FindCoordinator: 0 groups, 1 transactions, 2 share state.
        """
        which = key_type, key
        if not running or self._is_before(self._elections.get(which)):
            return NO_COORDINATOR
        if self._nodes.get(which) not in running:
            nodes = sorted(running)
            chosen = nodes[crc32(f"{key_type}:{key}".encode()) % len(nodes)]
            self._nodes[which] = chosen
        return self._nodes[which]

    def is_loading(self, key_type: int, key: str) -> bool:
        """Return whether the coordinator of a key still loads it after a move."""
        return self._is_before(self._loaded.get((key_type, key)))

    def move(self, key_type: int, key: str, node_id: int) -> None:
        """Make a broker the coordinator of a key."""
        self._nodes[key_type, key] = node_id
        self._start_move((key_type, key), election_time=0.0)
        self.moved.notify()

    def node_stopped(self, node_id: int) -> None:
        """Begin the elections of all keys that a broker has coordinated."""
        for which, coordinator in self._nodes.items():
            if coordinator == node_id:
                self._start_move(which, election_time=self.move_time)

    def _start_move(self, which: _Key, election_time: float) -> None:
        if not self.move_time:
            return
        elected = self.clock() + election_time
        self._elections[which] = elected
        self._loaded[which] = elected + self.move_time

    def _is_before(self, time: float | None) -> bool:
        return time is not None and self.clock() < time
