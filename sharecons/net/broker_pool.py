"""Connections to the brokers of a cluster: to any broker, or to one by its id.

Each broker has one connection, opened by its first request. Different brokers serve
requests concurrently; the requests to one broker take turns.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

import anyio

from sharecons.errors import (
    AuthenticationError,
    BrokerError,
    ConnectionFailedError,
    Error,
    RequestTimedOutError,
    UnsupportedVersionError,
)
from sharecons.net.cluster import Cluster
from sharecons.net.connection import Connection, SharedConnection
from sharecons.protocol.admin.models import Broker
from sharecons.protocol.admin.requests import (
    CoordinatorKind,
    FindCoordinators,
    Reply,
    TopicMetadata,
    TopicMetadataRequest,
)
from sharecons.protocol.backoff import Backoff
from sharecons.protocol.codes import Code

__all__ = ["BrokerPool", "Deadline"]

ATTEMPT_TIMEOUT: Final = 10.0
"""Seconds to wait for one response, so that time is left to try other brokers."""


class Deadline:
    """The deadline of a call.

    Args:
        attempt_timeout: the maximum seconds to wait for one response.

    Attributes:
        timeout: seconds that the call had, for messages.
        time: on the clock of `anyio.current_time()`.
    """

    def __init__(
        self, timeout: float, attempt_timeout: float = ATTEMPT_TIMEOUT
    ) -> None:
        self.timeout = timeout
        self._max_attempt = attempt_timeout
        self.time = anyio.current_time() + timeout

    @property
    def left(self) -> float:
        """Seconds until the deadline, never negative."""
        return max(0.0, self.time - anyio.current_time())

    @property
    def attempt_timeout(self) -> float:
        """Seconds to wait for one response."""
        return min(self._max_attempt, self.left)


class BrokerPool:
    """Sends requests to the brokers of one cluster.

    Attributes:
        cluster: opens the connections.
        reached: True once any broker has responded.

    All methods that send requests raise:
        ConnectionFailedError: no broker was reached.
        AuthenticationError: the brokers rejected the credentials.
        UnsupportedVersionError: the brokers do not support the request.
    """

    def __init__(self, cluster: Cluster, connect_timeout: float = 0.0) -> None:
        self.cluster = cluster
        self._connect_timeout = connect_timeout
        self._brokers: dict[int, Broker] = {}
        self._connections: dict[Broker, SharedConnection] = {}
        self._any_connection = SharedConnection(self._connect_any)
        self.reached = False
        self._closed = False
        self._connect_timeout_now = ATTEMPT_TIMEOUT
        self._node_timeout = ATTEMPT_TIMEOUT

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections immediately; can be called again."""
        self._closed = True
        connections = [self._any_connection, *self._connections.values()]
        self._connections.clear()
        for connection in connections:
            await connection.aclose()

    def learn(self, brokers: Iterable[Broker]) -> None:
        """Store the addresses of brokers."""
        for broker in brokers:
            if broker.node_id >= 0:
                self._brokers[broker.node_id] = broker

    def broker(self, node_id: int) -> Broker | None:
        """Return the known address of a broker, or None."""
        return self._brokers.get(node_id)

    # Requests.

    async def send_to_any(self, request: Any, deadline: Deadline) -> Any:
        """Send a request to any broker; retry until one responds.

        Before any broker was ever reached, this raises once `connect_timeout` has
        passed; with 0, once each address was tried.
        """
        last_error: Error | None = None
        backoff = Backoff()
        # Connecting must end before the call: its error names the addresses.
        connect_timeout = (
            ATTEMPT_TIMEOUT
            if self.reached
            else self._connect_timeout or ATTEMPT_TIMEOUT
        )
        self._connect_timeout_now = min(connect_timeout, 0.9 * deadline.left)
        with anyio.move_on_after(deadline.left):
            while True:
                try:
                    response = await self._any_connection.send(
                        request, deadline.attempt_timeout
                    )
                except (AuthenticationError, UnsupportedVersionError):
                    raise
                except ConnectionFailedError as error:
                    if self._closed:
                        raise _closed_error() from error
                    if not self.reached:
                        raise
                    last_error = error
                else:
                    self.reached = True
                    return response
                await anyio.sleep(backoff.next_delay())
        if not self.reached:
            raise self.no_response_error(deadline)
        text = self._no_response_text(deadline)
        raise RequestTimedOutError(
            f"{text}; last error: {last_error}" if last_error else text
        ) from last_error

    def no_response_error(self, deadline: Deadline) -> ConnectionFailedError:
        """Return the error for a deadline that passed before any response.

        On a busy machine it can pass before the connect timeout.
        """
        return ConnectionFailedError(self._no_response_text(deadline))

    def _no_response_text(self, deadline: Deadline) -> str:
        addresses = ", ".join(map(str, self.cluster.bootstrap))
        return f"{addresses}: no response within {deadline.timeout:g} s"

    async def send(self, node_id: int, request: Any, deadline: Deadline) -> Any:
        """Send a request to one broker, once; return the response.

        Raises:
            BrokerError: no broker has that id; BROKER_NOT_AVAILABLE.
            Others as `SharedConnection.send`.
        """
        broker = self._brokers.get(node_id)
        if broker is None:
            code = Code.BROKER_NOT_AVAILABLE
            text = f"the cluster has no broker with id {node_id}"
            raise BrokerError(text, code=code, name=code.name)
        if self._closed:
            raise _closed_error()
        if broker not in self._connections:
            self._connections[broker] = SharedConnection(partial(self._connect, broker))
        # Connecting must end before the call: its error says which address failed.
        self._node_timeout = min(ATTEMPT_TIMEOUT, 0.9 * deadline.left)
        try:
            return await self._connections[broker].send(
                request, deadline.attempt_timeout
            )
        except RequestTimedOutError:
            # Perhaps the connection to any broker is to this one, by another name.
            self._any_connection.mark_stale()
            raise

    async def request_topics(
        self,
        names: Iterable[str] | None,
        deadline: Deadline,
        *,
        authorized_operations: bool = False,
    ) -> TopicMetadata:
        """Request topics (None: all) from any broker, and store the brokers."""
        request = TopicMetadataRequest(
            names=None if names is None else tuple(dict.fromkeys(names)),
            authorized_operations=authorized_operations,
        )
        response: TopicMetadata = await self.send_to_any(request, deadline)
        self.cluster.cluster_id = response.cluster_id
        self.learn(response.brokers.values())
        return response

    async def find_coordinators(
        self, kind: CoordinatorKind, keys: Iterable[str], deadline: Deadline
    ) -> Mapping[str, Reply[Broker]]:
        """Look up coordinators; the first request creates a coordinator's topic."""
        request = FindCoordinators(kind=kind, keys=tuple(keys))
        found: Mapping[str, Reply[Broker]] = await self.send_to_any(request, deadline)
        self.learn(
            reply.value
            for reply in found.values()
            if reply.code == Code.NONE and reply.value is not None
        )
        return found

    # Connections.

    async def _connect(self, broker: Broker) -> Connection:
        return await self.cluster.connect(broker.endpoint, self._node_timeout)

    async def _connect_any(self) -> Connection:
        known = [broker.endpoint for broker in self._brokers.values()]
        retry = self._connect_timeout > 0.0 and not self.reached
        return await self.cluster.connect_any(
            known, self._connect_timeout_now, retry=retry
        )


def _closed_error() -> ConnectionFailedError:
    return ConnectionFailedError("the client was closed before the response arrived")
