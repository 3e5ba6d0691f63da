"""What a handler knows beside its request: who asks, when, and whom it may ask."""

from collections.abc import Iterable
from dataclasses import dataclass

import anyio

from sharecons.testing.broker.cluster import Cluster
from sharecons.testing.broker.codec import Header
from sharecons.testing.broker.connection import Connection
from sharecons.testing.broker.signals import Signal, wait_for_any

__all__ = ["ClientGoneError", "Context"]


class ClientGoneError(Exception):
    """Nobody waits for this answer any more."""


@dataclass(frozen=True, slots=True)
class Context:
    """One request's surroundings."""

    header: Header
    cluster: Cluster
    node_id: int
    connection: Connection

    @property
    def version(self) -> int:
        return self.header.version

    @property
    def now(self) -> float:
        """Seconds on the clock of the event loop, for deadlines."""
        return anyio.current_time()

    async def wait(self, signals: Iterable[Signal], until: float) -> None:
        """Wait for something to change, or for a time to come.

        Raises:
            ClientGoneError: the client has closed its connection.
        """
        if not self.connection.gone:
            await wait_for_any((*signals, self.connection.changed), until)
        if self.connection.gone:
            raise ClientGoneError
