"""The brokers of a cluster, asked one by one: any, one by id, or who coordinates.

Each broker has a connection of its own, made when it is first asked, which askers
take in turn; so many brokers are asked at once, and none about two things at a time.
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
from sharecons.net.cluster import Cluster, ReconnectingConnection
from sharecons.net.connection import Connection
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
"""Seconds that one broker gets for one answer, so that a silent one leaves time."""


class Deadline:
    """When a call is to be over; `timeout` is how long it had, for messages."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self.time = anyio.current_time() + timeout

    @property
    def left(self) -> float:
        """Seconds until then, never negative."""
        return max(0.0, self.time - anyio.current_time())

    @property
    def attempt_timeout(self) -> float:
        """Seconds that one broker gets out of what is left."""
        return min(ATTEMPT_TIMEOUT, self.left)


class BrokerPool:
    """Ways to ask the brokers of one cluster.

    Attributes:
        reached: some broker has answered.

    All that asks raises, where nothing can be asked:
        ConnectionFailedError: no broker was reached.
        AuthenticationError: the brokers do not let us in.
        UnsupportedVersionError: they do not serve this.
    """

    def __init__(self, cluster: Cluster, connect_timeout: float = 0.0) -> None:
        self._cluster = cluster
        self._connect_timeout = connect_timeout
        self._brokers: dict[int, Broker] = {}
        self._connections: dict[Broker, ReconnectingConnection] = {}
        self._any_connection = ReconnectingConnection(self._connect_any)
        self.reached = False
        self._connect_timeout_now = ATTEMPT_TIMEOUT

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
        """Close all connections, at once; may be called again."""
        connections = [self._any_connection, *self._connections.values()]
        self._connections.clear()
        for connection in connections:
            await connection.aclose()

    def learn(self, brokers: Iterable[Broker]) -> None:
        """Somebody named brokers: remember where they are."""
        for broker in brokers:
            if broker.node_id >= 0:
                self._brokers[broker.node_id] = broker

    def broker(self, node_id: int) -> Broker | None:
        """Give what is known of a broker."""
        return self._brokers.get(node_id)

    # Asking.

    async def ask_any(self, request: Any, deadline: Deadline) -> Any:
        """Ask whichever broker answers, again and again until one does.

        Before any was ever reached, an unreachable cluster is an error once
        `connect_timeout` has passed; with 0, once each address was tried.
        """
        last_error: Error | None = None
        backoff = Backoff()
        # Connecting has to end before the call does, for its errors name addresses.
        connect_timeout = (
            ATTEMPT_TIMEOUT
            if self.reached
            else self._connect_timeout or ATTEMPT_TIMEOUT
        )
        self._connect_timeout_now = min(connect_timeout, 0.9 * deadline.left)
        with anyio.move_on_after(deadline.left):
            while True:
                try:
                    response = await self._any_connection.ask(
                        request, deadline.attempt_timeout
                    )
                except (AuthenticationError, UnsupportedVersionError):
                    raise
                except ConnectionFailedError as error:
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
            f"{text}; last heard: {last_error}" if last_error else text
        ) from last_error

    def no_response_error(self, deadline: Deadline) -> ConnectionFailedError:
        """Make the error for a deadline that came before any broker's answer.

        On a busy machine it may come before the time limit of connecting.
        """
        return ConnectionFailedError(self._no_response_text(deadline))

    def _no_response_text(self, deadline: Deadline) -> str:
        addresses = ", ".join(map(str, self._cluster.bootstrap))
        return f"{addresses}: no answer within {deadline.timeout:g} s"

    async def ask(self, node_id: int, request: Any, deadline: Deadline) -> Any:
        """Ask one broker, once.

        Raises:
            BrokerError: no broker has that id; BROKER_NOT_AVAILABLE.
            Error: what `Link.ask` raises.
        """
        broker = self._brokers.get(node_id)
        if broker is None:
            code = Code.BROKER_NOT_AVAILABLE
            text = f"the cluster has no broker with id {node_id}"
            raise BrokerError(text, code=code, name=code.name)
        if broker not in self._connections:
            self._connections[broker] = ReconnectingConnection(
                partial(self._cluster.connect, broker.endpoint)
            )
        return await self._connections[broker].ask(request, deadline.attempt_timeout)

    async def ask_topics(
        self,
        names: Iterable[str] | None,
        deadline: Deadline,
        *,
        authorized_operations: bool = False,
    ) -> TopicMetadata:
        """Ask any broker for topics (None: all), and learn who the brokers are."""
        request = TopicMetadataRequest(
            names=None if names is None else tuple(dict.fromkeys(names)),
            authorized_operations=authorized_operations,
        )
        response: TopicMetadata = await self.ask_any(request, deadline)
        self.learn(response.brokers.values())
        return response

    async def find_coordinators(
        self, kind: CoordinatorKind, keys: Iterable[str], deadline: Deadline
    ) -> Mapping[str, Reply[Broker]]:
        """Ask any broker who coordinates; a coordinator is made by the first asking."""
        request = FindCoordinators(kind=kind, keys=tuple(keys))
        found: Mapping[str, Reply[Broker]] = await self.ask_any(request, deadline)
        self.learn(
            reply.value
            for reply in found.values()
            if reply.code == Code.NONE and reply.value is not None
        )
        return found

    # Connections.

    async def _connect_any(self) -> Connection:
        known = [broker.endpoint for broker in self._brokers.values()]
        retry = self._connect_timeout > 0.0 and not self.reached
        return await self._cluster.connect_any(
            known, self._connect_timeout_now, retry=retry
        )
