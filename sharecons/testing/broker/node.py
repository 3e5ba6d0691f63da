"""One broker of the cluster: where it listens, and how it answers a request."""

import logging
from typing import Final

import anyio
from anyio.abc import ByteStream, TaskGroup

from sharecons.testing.broker.apis import APIS, Api
from sharecons.testing.broker.cluster import Broker, Cluster
from sharecons.testing.broker.codec import (
    ErrorCode,
    Header,
    Request,
    Response,
    read_header,
    read_request,
)
from sharecons.testing.broker.connection import Connection
from sharecons.testing.broker.context import ClientGoneError, Context
from sharecons.testing.broker.exchange import Exchange, Journal
from sharecons.testing.broker.faults import Faults
from sharecons.testing.broker.refusals import refusal
from sharecons.testing.broker.sockets import Listener

__all__ = ["Node", "respond"]

API_VERSIONS: Final = 18

log = logging.getLogger("sharecons.testing.broker")


class Node:
    """The server of one broker; it may be started again after it was stopped."""

    def __init__(
        self, broker: Broker, cluster: Cluster, faults: Faults, journal: Journal
    ) -> None:
        self.broker = broker
        self._cluster = cluster
        self._faults = faults
        self._journal = journal
        self._listener: Listener | None = None
        self._connections: set[Connection] = set()

    def start(self, tasks: TaskGroup, *, listen: bool = True) -> None:
        """Open the port, and serve who comes in by it, in tasks of that group.

        Raises:
            OSError: somebody else has the port.
        """
        if self.broker.running:
            return
        if listen:
            host, port = self.broker.listens_at or (self.broker.host, self.broker.port)
            self._listener = Listener(host, port)
            self.broker.listens_at = host, self._listener.port
            self.broker.port = self.broker.port or self._listener.port
            tasks.start_soon(self._accept, self._listener, tasks)
        self._cluster.broker_started(self.broker.node_id)

    def stop(self) -> None:
        """Close the port and every connection, as a process that is killed."""
        if self.broker.running:
            self.close()
            self._cluster.broker_stopped(self.broker.node_id)

    def close(self) -> None:
        """Close the port and every connection, and leave the cluster as it is."""
        if self._listener is not None:
            self._listener.close()
        for connection in list(self._connections):
            connection.cut()

    async def serve(
        self, stream: ByteStream, peer: str = "127.0.0.1", host: str | None = None
    ) -> None:
        """Serve a client at the other end of any stream of bytes.

        `host` is the address that it has connected to, if there is one.
        """
        connection = Connection(stream, self._answer, f"/{peer}", host)
        self._connections.add(connection)
        try:
            await self._served(connection, stream)
        except Exception:
            log.exception("broker %d: a connection failed", self.broker.node_id)

    async def _served(self, connection: Connection, stream: ByteStream) -> None:
        try:
            async with stream:
                await connection.serve()
        finally:
            self._connections.discard(connection)
            self._cluster.connection_closed(connection)

    async def _accept(self, listener: Listener, tasks: TaskGroup) -> None:
        try:
            while True:
                stream, peer, host = await listener.accept()
                tasks.start_soon(self.serve, stream, peer, host)
        except anyio.ClosedResourceError:
            return
        finally:
            listener.close()

    async def _answer(self, frame: bytes, connection: Connection) -> None:
        """Answer one request, unless it is told to do something else."""
        try:
            header, request = _understood(frame)
        except ValueError as error:
            log.warning("broker %d: %s", self.broker.node_id, error)
            connection.cut()
            return
        context = Context(header, self._cluster, self.broker.node_id, connection)
        self._journal.note(context)
        version = 0 if request is None else header.version
        try:
            exchange = Exchange(request, context, _work, version)
            await self._faults.answer(exchange)
        except ClientGoneError:
            return


async def respond(request: Request, context: Context) -> bytes | None:
    """Do what a request asks for, and give the frame of the response."""
    exchange = Exchange(request, context, _work, context.version)
    response = await exchange.done()
    return None if response is None else exchange.frame(response)


async def _work(request: Request, context: Context) -> Response | None:
    api = APIS[context.header.api_key]
    if request is None:
        return _unsupported(api)
    try:
        return await api.handle(request, context)
    except ClientGoneError:
        raise
    except Exception:
        # A client would wait for an answer, and so would the test: this one shows.
        log.exception("broker %d cannot answer %s", context.node_id, api.name)
        return refusal(request, context.header, ErrorCode.unknown_server_error)


def _understood(frame: bytes) -> tuple[Header, Request]:
    """Read a request; it is None if it is ApiVersions in a version yet to come.

    Raises:
        ValueError: nobody can answer this.
    """
    header = read_header(frame)
    api: Api | None = APIS.get(header.api_key)
    if api is None:
        raise ValueError(f"API {header.api_key} is not served")
    if header.version not in api.versions:
        if header.api_key == API_VERSIONS:
            return header, None
        raise ValueError(f"{api.name} {header.version} is not served")
    return read_request(frame)


def _unsupported(api: Api) -> Response:
    """Answer a newer ApiVersions: in the first version, as everybody can read it."""
    served = {
        "api_key": api.key,
        "min_version": api.versions[0],
        "max_version": api.versions[-1],
    }
    return {"error_code": ErrorCode.unsupported_version, "api_keys": [served]}
