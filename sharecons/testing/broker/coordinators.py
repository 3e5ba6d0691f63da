"""Which broker coordinates a group, a transaction, a share partition's state."""

from collections.abc import Sequence

__all__ = ["Coordinators"]


class Coordinators:
    """A broker for each key, the same as long as that broker runs."""

    def of(self, key_type: int, key: str, running: Sequence[int]) -> int:
        """Give the node id of a key's coordinator; -1 if no broker runs.

        Key types as in FindCoordinator: 0 groups, 1 transactions, 2 share state.
        """
        raise NotImplementedError

    def move(self, key_type: int, key: str, node_id: int) -> None:
        """Make a broker the coordinator of a key, from now on."""
        raise NotImplementedError
