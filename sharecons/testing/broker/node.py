"""One broker of the cluster: its port, its connections, its handling of requests."""

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
    decode_header,
    decode_request,
)
from sharecons.testing.broker.connection import Connection
from sharecons.testing.broker.context import ClientDisconnectedError, Context
from sharecons.testing.broker.error_responses import error_response
from sharecons.testing.broker.exchange import Exchange, RequestLog
from sharecons.testing.broker.faults import Faults
from sharecons.testing.broker.sockets import Listener

__all__ = ["Node"]

API_VERSIONS: Final = 18

log = logging.getLogger("sharecons.testing.broker")


class Node:
    """The server of one broker; it can be started again after it was stopped."""

    def __init__(
        self, broker: Broker, cluster: Cluster, faults: Faults, request_log: RequestLog
    ) -> None:
        self.broker = broker
        self._cluster = cluster
        self._faults = faults
        self._request_log = request_log
        self._pause = faults.hangs.of_broker(broker.node_id)
        self._listener: Listener | None = None
        self._connections: set[Connection] = set()

    def start(self, tasks: TaskGroup, *, listen: bool = True) -> None:
        """Open the port, and serve its clients in tasks of that group.

        Raises:
            OSError: the port is in use.
        """
        if self.broker.running:
            return
        if listen:
            host, port = self.broker.bind_address or (
                self.broker.host,
                self.broker.port,
            )
            self._listener = listener = Listener(host, port)
            self.broker.bind_address = host, listener.port
            self.broker.port = self.broker.port or listener.port
            try:
                tasks.start_soon(self._accept, listener, tasks)
            except BaseException:
                listener.close()
                raise
        self._cluster.broker_started(self.broker.node_id)

    def stop(self) -> None:
        """Close the port and every connection, as when a process is killed."""
        if self.broker.running:
            self.close()
            self._cluster.broker_stopped(self.broker.node_id)

    def close(self) -> None:
        """Close the port and every connection; the cluster's state stays."""
        self._pause.end()
        if self._listener is not None:
            self._listener.close()
        for connection in list(self._connections):
            connection.cut()

    async def serve(
        self, stream: ByteStream, peer: str = "127.0.0.1", host: str | None = None
    ) -> None:
        """Serve the client at the other end of a byte stream.

        `host` is the address that the client has connected to, if there is one.
        """
        connection = Connection(
            stream, self._handle_frame, f"/{peer}", host, self._pause
        )
        self._connections.add(connection)
        try:
            await self._serve_connection(connection, stream)
        except Exception:
            log.exception("broker %d: a connection failed", self.broker.node_id)

    async def _serve_connection(
        self, connection: Connection, stream: ByteStream
    ) -> None:
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

    async def _handle_frame(self, frame: bytes, connection: Connection) -> None:
        """Respond to one request, or apply a fault to it."""
        try:
            header, request = _parse_request(frame)
        except ValueError as error:
            log.warning("broker %d: %s", self.broker.node_id, error)
            connection.cut()
            return
        context = Context(header, self._cluster, self.broker.node_id, connection)
        self._request_log.add(context)
        version = 0 if request is None else header.version
        try:
            exchange = Exchange(request, context, _handle, version)
            await self._faults.respond(exchange)
        except ClientDisconnectedError:
            return


async def _handle(request: Request, context: Context) -> Response | None:
    api = APIS[context.header.api_key]
    if request is None:
        return _unsupported_version(api)
    try:
        return await api.handle(request, context)
    except ClientDisconnectedError:
        raise
    except Exception:
        # Without a response the client, and so the test, would wait for ever.
        log.exception("broker %d cannot handle %s", context.node_id, api.name)
        return error_response(request, context.header, ErrorCode.unknown_server_error)


def _parse_request(frame: bytes) -> tuple[Header, Request]:
    """Decode a request; it is None for ApiVersions in an unsupported version.

    Raises:
        ValueError: the API or its version is not supported, or the frame is invalid.
    """
    header = decode_header(frame)
    api: Api | None = APIS.get(header.api_key)
    if api is None:
        raise ValueError(f"API key {header.api_key} is not supported")
    if header.version not in api.versions:
        if header.api_key == API_VERSIONS:
            return header, None
        raise ValueError(f"{api.name} version {header.version} is not supported")
    return decode_request(frame)


def _unsupported_version(api: Api) -> Response:
    """Return an ApiVersions error in version 0, which every client can read."""
    served = {
        "api_key": api.key,
        "min_version": api.versions[0],
        "max_version": api.versions[-1],
    }
    return {"error_code": ErrorCode.unsupported_version, "api_keys": [served]}
