"""What a handler knows beside its request: who asks, when, and whom it may ask."""

from collections.abc import Iterable
from dataclasses import dataclass

import anyio

from sharecons.testing.broker.cluster import Broker, Cluster
from sharecons.testing.broker.codec import Header, Response
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

    def address_of(self, broker: Broker) -> tuple[str, int]:
        """Return the host and the port by which the client reaches a broker.

        A broker that listens at all addresses is reached by the address that the client
        has connected to now.
        """
        host = self.connection.host if broker.is_anywhere else None
        return host or broker.host, broker.port

    def endpoint(self, broker: Broker) -> Response:
        """Return the address of a broker as most responses have it."""
        host, port = self.address_of(broker)
        rack = broker.rack
        return {"node_id": broker.node_id, "host": host, "port": port, "rack": rack}

    async def wait(self, signals: Iterable[Signal], until: float) -> None:
        """Wait for something to change, or for a time to come.

        Raises:
            ClientGoneError: the client has closed its connection.
        """
        if not self.connection.gone:
            await wait_for_any((*signals, self.connection.changed), until)
        if self.connection.gone:
            raise ClientGoneError
