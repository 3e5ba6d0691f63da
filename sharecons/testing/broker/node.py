"""One broker of the cluster: where it listens, and how it answers a request."""

import logging
from typing import Final

import anyio
from anyio.abc import ByteStream, SocketAttribute, TaskStatus

from sharecons.testing.broker.apis import APIS, Api
from sharecons.testing.broker.cluster import Broker, Cluster
from sharecons.testing.broker.codec import (
    ErrorCode,
    Header,
    Request,
    Response,
    read_header,
    read_request,
    response_frame,
)
from sharecons.testing.broker.connection import Connection
from sharecons.testing.broker.context import ClientGoneError, Context
from sharecons.testing.broker.faults import Faults

__all__ = ["Node", "respond"]

API_VERSIONS: Final = 18

log = logging.getLogger("sharecons.testing.broker")


class Node:
    """The server of one broker."""

    def __init__(self, broker: Broker, cluster: Cluster, faults: Faults) -> None:
        self.broker = broker
        self._cluster = cluster
        self._faults = faults
        self._connections: set[Connection] = set()
        self._scope = anyio.CancelScope()

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Listen until it is stopped; ready when the port is open."""
        broker = self.broker
        listener = await anyio.create_tcp_listener(
            local_host=broker.host, local_port=broker.port
        )
        broker.port = listener.extra(SocketAttribute.local_port)
        with anyio.CancelScope() as self._scope:
            async with listener:
                self._cluster.broker_started(broker.node_id)
                task_status.started()
                await listener.serve(self._accepted)

    def stop(self) -> None:
        """Close the port and every connection, as a process that is killed."""
        self._cluster.broker_stopped(self.broker.node_id)
        self._scope.cancel()
        for connection in list(self._connections):
            connection.cut()

    async def serve(self, stream: ByteStream, peer: str = "/127.0.0.1") -> None:
        """Serve a client at the other end of any stream of bytes."""
        connection = Connection(stream, self._answer, peer)
        self._connections.add(connection)
        try:
            async with stream:
                await connection.serve()
        finally:
            self._connections.discard(connection)
            self._cluster.connection_closed(connection)

    async def _accepted(self, stream: ByteStream) -> None:
        address = stream.extra(SocketAttribute.remote_address)
        await self.serve(stream, f"/{address[0]}")

    async def _answer(self, frame: bytes, connection: Connection) -> None:
        """Answer one request, unless it is told to do something else."""
        try:
            header, request = _understood(frame)
        except ValueError as error:
            log.warning("broker %d: %s", self.broker.node_id, error)
            connection.cut()
            return
        context = Context(header, self._cluster, self.broker.node_id, connection)
        try:
            await self._faults.answer(request, context, respond)
        except ClientGoneError:
            return


async def respond(request: Request, context: Context) -> bytes | None:
    """Do what a request asks for, and give the frame of the response."""
    header = context.header
    if request is None:
        return _unsupported(header)
    response = await APIS[header.api_key].handle(request, context)
    if response is None:
        return None
    return response_frame(header, response, header.version)


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


def _unsupported(header: Header) -> bytes:
    """Answer a newer ApiVersions in the first version, as everybody can read it."""
    served = {"api_key": API_VERSIONS, **_range(APIS[API_VERSIONS])}
    response: Response = {
        "error_code": ErrorCode.unsupported_version,
        "api_keys": [served],
    }
    return response_frame(header, response, 0)


def _range(api: Api) -> dict[str, int]:
    return {"min_version": api.versions[0], "max_version": api.versions[-1]}
