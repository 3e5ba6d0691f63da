"""The context of a handler: the cluster, the connection, the time."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import anyio

from sharecons.testing.broker.cluster import Broker, Cluster
from sharecons.testing.broker.codec import ErrorCode, Header, Response
from sharecons.testing.broker.connection import Connection
from sharecons.testing.broker.signals import Signal, wait_for_any

__all__ = ["ClientDisconnectedError", "Context", "PartitionFault"]


class ClientDisconnectedError(Exception):
    """The client has disconnected and waits for no response."""


@dataclass(frozen=True, slots=True)
class PartitionFault:
    """An error that a leader returns for partitions instead of handling them."""

    code: ErrorCode
    topic: str | None = None
    """The topic; None for every topic."""
    partition: int | None = None
    """The partition; None for every partition."""
    leader: Callable[[], tuple[int, int]] | None = None
    """Returns the leader and epoch in the response; None for the actual ones."""

    def matches(self, topic: str, partition: int) -> bool:
        """Return whether a partition has the error."""
        return self.topic in (None, topic) and self.partition in (None, partition)


@dataclass(frozen=True, slots=True)
class Context:
    """The context of one request."""

    header: Header
    cluster: Cluster
    node_id: int
    connection: Connection
    partition_fault: PartitionFault | None = None

    @property
    def version(self) -> int:
        return self.header.version

    @property
    def now(self) -> float:
        """Seconds on the clock of the event loop, for deadlines."""
        return anyio.current_time()

    def address_of(self, broker: Broker) -> tuple[str, int]:
        """Return the host and port by which the client reaches a broker.

        For a broker that binds a wildcard address, this is the address that the client
        has connected to.
        """
        host = self.connection.host if broker.binds_wildcard else None
        return host or broker.host, broker.port

    def endpoint(self, broker: Broker) -> Response:
        """Return a broker's address with the field names of most responses."""
        host, port = self.address_of(broker)
        rack = broker.rack
        return {"node_id": broker.node_id, "host": host, "port": port, "rack": rack}

    async def wait(self, signals: Iterable[Signal], until: float) -> None:
        """Wait for one of the signals, or until a time.

        Raises:
            ClientDisconnectedError: the client has disconnected.
        """
        if not self.connection.is_closed:
            await wait_for_any((*signals, self.connection.changed), until)
            await self.connection.pause.wait_until_ended()
        if self.connection.is_closed:
            raise ClientDisconnectedError
