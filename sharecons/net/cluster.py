"""The addresses of a cluster, and connections that are opened when they are used."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from random import randrange
from typing import Any, Final

import anyio

from sharecons.config.security import Security
from sharecons.errors import ConnectionFailedError, Error
from sharecons.net.connect_attempts import ConnectAttempts
from sharecons.net.connection import Connection
from sharecons.net.io.idle_watch import Wait
from sharecons.net.io.pipeline import OnResponse, ignore
from sharecons.net.io.transport import Network, TcpNetwork
from sharecons.net.outages import Outages
from sharecons.protocol.messages import Endpoint

__all__ = ["Cluster", "ReconnectingConnection"]

CONNECT_TIMEOUT: Final = 10.0  # socket.connection.setup.timeout.ms


class ReconnectingConnection:
    """A connection that is opened by the first request, and again after a failure.

    Concurrent requests take turns. `ask` raises as `Connection.open` and
    `Connection.ask`; after an error, the next `ask` connects again.
    """

    def __init__(self, connect: Callable[[], Awaitable[Connection]]) -> None:
        self._connect = connect
        self._connection: Connection | None = None
        self._closed = False
        self._lock = anyio.Lock()

    async def ask(
        self, request: Any, timeout: float, on_response: OnResponse = ignore
    ) -> Any:
        try:
            # Usually free: `acquire` takes as long as encoding a request.
            self._lock.acquire_nowait()
        except anyio.WouldBlock:
            await self._lock.acquire()
        try:
            if self._closed:
                raise ConnectionFailedError(
                    "the request was not sent: its connection is closed, because the "
                    "consumer or admin client is closing"
                )
            if self._connection is None or self._connection.closed:
                self._connection = await self._connect()
            return await self._connection.ask(request, timeout, on_response)
        finally:
            self._lock.release()

    async def idle(self, wait: Wait, lost: Callable[[Error], None]) -> None:
        """Await `wait()`; call `lost` if the connection ends meanwhile.

        See `Connection.idle`. Do not call this during an `ask`.
        """
        if self._connection is None or self._connection.closed:
            await wait()
        else:
            await self._connection.idle(wait, lost)

    def use(self, connection: Connection) -> None:
        """Use a connection that is open already."""
        self._connection = connection

    async def aclose(self) -> None:
        """Close for good; later requests raise ConnectionFailedError."""
        self._closed = True
        if self._connection is not None:
            await self._connection.aclose()


class Cluster:
    """The addresses of one cluster, and how to connect to them.

    Args:
        network: opens transports, with TLS if wanted; SASL is added here. None for
            TCP with the TLS settings of `security`.
        choose: returns a random index below a number, of the address to try first.

    Attributes:
        bootstrap: the configured addresses.
        outages: logs failed attempts and the end of outages; None logs nothing.
    """

    def __init__(
        self,
        bootstrap: Sequence[Endpoint],
        network: Network | None = None,
        *,
        client_id: str,
        software_version: str,
        security: Security | None = None,
        choose: Callable[[int], int] = randrange,
    ) -> None:
        security = security or Security()
        self.outages: Outages | None = None
        self._choose = choose
        self.bootstrap = tuple(bootstrap)
        self._network = network or TcpNetwork(security.ssl_context)
        self._is_plain = network is None and security.ssl_context is None
        self._credentials = security.credentials
        self._client_id = client_id
        self._software_version = software_version

    async def connect(
        self, endpoint: Endpoint, timeout: float = CONNECT_TIMEOUT
    ) -> Connection:
        """Connect to one broker; raises as `Connection.open`."""
        try:
            connection = await Connection.open(
                self._network,
                endpoint,
                client_id=self._client_id,
                software_version=self._software_version,
                timeout=timeout,
                credentials=self._credentials,
                is_plain=self._is_plain,
            )
        except Error as error:
            if self.outages is not None:
                self.outages.on_failure(endpoint, error, anyio.current_time())
            raise
        if self.outages is not None:
            self.outages.on_connected(endpoint, anyio.current_time())
        return connection

    async def connect_any(
        self,
        known: Iterable[Endpoint] = (),
        timeout: float = CONNECT_TIMEOUT,
        *,
        retry: bool = False,
    ) -> Connection:
        """Connect to the first broker that responds: known ones, then bootstrap.

        Each list starts at a random index, so that clients spread over the brokers.
        With `retry`, failed addresses are tried again until `timeout` has passed.

        Raises: as `ConnectAttempts.run`.
        """
        rotated = [*self._rotated(tuple(known)), *self._rotated(self.bootstrap)]
        endpoints = tuple(dict.fromkeys(rotated))
        return await ConnectAttempts(
            self.connect, endpoints, timeout, retry=retry
        ).run()

    def _rotated(self, endpoints: tuple[Endpoint, ...]) -> tuple[Endpoint, ...]:
        if len(endpoints) < 2:
            return endpoints
        first = self._choose(len(endpoints))
        return endpoints[first:] + endpoints[:first]
