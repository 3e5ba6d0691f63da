"""A connection to a broker, with one request in flight at a time.

A broker serves one request per connection at a time, so a second one in flight would
gain little. There is no reader task and no table of futures, and only the transport
needs to be closed.

A request that is cancelled or fails can leave its response in flight, so the
connection closes itself.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from math import inf
from typing import Any, Final

import anyio

from sharecons.errors import ConnectionFailedError, Error
from sharecons.net.io.idle_watch import Wait
from sharecons.net.io.sasl import SaslSession, SaslSessions
from sharecons.net.io.tls import MapTlsError, map_tls_error
from sharecons.net.io.transport import ErrorMapping, FrameTransport, Network
from sharecons.net.outages import Outages
from sharecons.protocol.partitions import Endpoint
from sharecons.wire import api_versions
from sharecons.wire.codec import frames, registry
from sharecons.wire.codec.api import Api, Frame, VersionRange

__all__ = ["Connection", "ReconnectingConnection", "SharedConnection"]

SOFTWARE: Final = "sharecons"

MAX_CORRELATION_ID: Final = 0x7FFFFFFF

SASL_HINT: Final = (
    "; if this listener requires SASL, pass `security` "
    "(security.protocol=SASL_SSL or SASL_PLAINTEXT)"
)
"""A SASL listener responds to ApiVersions; other requests end the connection."""

TLS_HINT: Final = (
    "; if this is a TLS port, pass `security` (security.protocol=SSL or SASL_SSL)"
)
"""A TLS listener closes the connection when it receives the first request."""


class Connection:
    """An open connection, created by `open`.

    Attributes:
        broker: the broker's address, for messages.
        served: the version range of each API that the broker supports.
        closed: True if it cannot be used any more.
        outages: logs missing responses and lost connections; see `watch`.
        request, response_due, hint: as in `WatchedConnection`.
    """

    def __init__(
        self,
        transport: FrameTransport,
        broker: str,
        client_id: str,
        sasl: SaslSessions | None = None,
        *,
        is_plain: bool = False,
        reached: set[str] | None = None,
        map_tls: MapTlsError = map_tls_error,
    ) -> None:
        self.broker = broker
        self._mapping = partial(ErrorMapping, is_request=True, map_tls=map_tls)
        self.hint = ""
        self._is_plain = is_plain
        self._reached = set() if reached is None else reached
        self.served: Mapping[int, VersionRange] = {}
        self.closed = False
        self.outages: Outages | None = None
        self.request = ""
        self.response_due = inf
        self._transport = transport
        self._client_id = client_id
        self._last_correlation_id = 0
        self._responses = 0
        self._progress = 0, 0  # responses, and bytes of the next one
        self._apis: dict[type, tuple[Api[Any, Any], int]] = {}  # with their versions
        self._busy = False
        self._sasl = SaslSession(sasl, broker) if sasl is not None else None

    @classmethod
    async def open(
        cls,
        network: Network,
        endpoint: Endpoint,
        *,
        client_id: str,
        software_version: str,
        timeout: float,
        sasl: SaslSessions | None = None,
        is_plain: bool = False,
        reached: set[str] | None = None,
        hint: str = "",
        map_tls: MapTlsError = map_tls_error,
    ) -> "Connection":
        """Connect, request the supported API versions, and authenticate.

        Args:
            timeout: seconds for all of it.
            sasl: authenticates the connection; None without SASL.
            is_plain: TLS is known not to be used, so errors can suggest it.
            reached: the addresses of brokers that have responded to a request after
                ApiVersions; it is updated. Their errors suggest no other security.
            hint: ends the message if the broker cannot be reached.
            map_tls: returns the errors of TLS.

        Raises:
            ConnectionFailedError: no connection, it is no Kafka broker, or rejected
                credentials are retriable.
            AuthenticationError: either side rejected the credentials.
            RequestTimedOutError: not finished within `timeout` seconds.
        """
        with ErrorMapping(f"connecting to {endpoint}", hint=hint, map_tls=map_tls):
            with anyio.fail_after(timeout):
                transport = await network.connect(endpoint)
                connection = cls(
                    transport,
                    str(endpoint),
                    client_id,
                    sasl,
                    is_plain=is_plain,
                    reached=reached,
                    map_tls=map_tls,
                )
                try:
                    await connection._handshake(software_version)
                except BaseException:
                    await connection.aclose()
                    raise
        return connection

    def watch(self, outages: Outages) -> None:
        """Log missing responses, and the loss of the connection."""
        self.outages = outages
        outages.watch(self)

    def has_received_more(self) -> bool:
        """Return whether bytes of a response have arrived since the last call."""
        received = getattr(self._transport, "received", 0)
        progress = self._responses, received
        has_more = received > 0 and progress != self._progress
        self._progress = progress
        return has_more

    async def send(self, request: Any, timeout: float) -> Any:
        """Send a request and return its response.

        If this is cancelled or raises, the connection is closed, and whether the broker
        executed the request is unknown.

        Args:
            timeout: seconds to wait for the response.

        Raises:
            UnsupportedVersionError: the broker does not support the request; nothing
                was sent.
            RequestTimedOutError: no response within `timeout` seconds.
            ConnectionFailedError: the connection broke, or the response is invalid.
            AuthenticationError: the broker rejected the credentials.
        """
        # Before a request, as brokers check the session's end when a request arrives.
        if self._sasl is not None and self._sasl.is_due:
            await self._authenticate(self._sasl, timeout)
        outages = self.outages
        if outages is None:
            return await self._send_once(request, timeout)
        self.request = type(request).__name__
        self.response_due = outages.clock() + getattr(request, "max_wait", 0.0)
        try:
            response = await self._send_once(request, timeout)
        except BaseException as error:
            outages.on_error(self.broker, self.request, error)
            raise
        finally:
            self.response_due = inf
        if outages.failed:
            outages.on_response(self.broker, self.request)
        return response

    def _send_once(self, request: Any, timeout: float) -> Awaitable[Any]:
        kind = type(request)
        if kind not in self._apis:
            api = registry.api_of(kind)
            version = registry.choose_version(api, self.served, self.broker)
            self._apis[kind] = api, version
        api, version = self._apis[kind]
        body = api.write(request, version)

        def read(frame: Frame, offset: int) -> Any:
            return api.read(frame, offset, version)

        return self._exchange(api.key, version, api.name, body, timeout, read)

    async def idle(self, wait: Wait, on_lost: Callable[[Error], None]) -> None:
        """Await `wait()` while nothing is requested, and watch the connection.

        If the connection has ended or ends meanwhile, call `on_lost` once with the
        reason, immediately, perhaps outside of any task; `on_lost` makes `wait()`
        return.
        """
        ended = False

        def end(reason: Exception) -> None:
            nonlocal ended
            ended = True
            error = self._map_error(reason)
            if self.outages is not None:
                self.outages.on_lost(self.broker, error)
            on_lost(error)

        try:
            await self._transport.idle(wait, end)
        finally:
            if ended:
                await self.aclose()

    def _map_error(self, error: Exception) -> Error:
        try:
            with self._mapping(self.broker):
                raise error
        except Error as reason:
            return reason
        except Exception as other:  # noqa: BLE001 (event loops can report any)
            return ConnectionFailedError(f"{self.broker}: {other!r}")

    async def aclose(self) -> None:
        """Close without waiting for the broker; can be called again."""
        if not self.closed:
            self.closed = True
            await self._transport.aclose()

    async def _handshake(self, software_version: str) -> None:
        # The caller's timeout covers all of it.
        await self._request_versions(software_version)
        if self._sasl is not None:
            await self._authenticate(self._sasl, inf)

    async def _authenticate(self, sasl: SaslSession, timeout: float) -> None:
        try:
            await sasl.authenticate(partial(self._send_once, timeout=timeout))
        except BaseException:
            await self.aclose()
            raise

    async def _request_versions(self, software_version: str) -> None:
        body = api_versions.write_versions_request(SOFTWARE, software_version)
        key, version = api_versions.KEY, api_versions.VERSION
        read = api_versions.read_versions
        self.served = await self._exchange(key, version, "ApiVersions", body, inf, read)

    async def _exchange(
        self,
        key: int,
        version: int,
        name: str,
        body: bytes,
        timeout: float,
        read: Callable[[Frame, int], Any],
    ) -> Any:
        """Send a request body; return `read(frame, offset)` of the response body."""
        if self.closed or self._busy:
            raise ConnectionFailedError(
                f"{name} to {self.broker}: the connection is closed; try again"
            )
        number = self._last_correlation_id = (
            self._last_correlation_id + 1
        ) & MAX_CORRELATION_ID
        request = frames.request_frame(key, version, number, self._client_id, body)
        self._busy = True
        try:
            frame = await self._transport.exchange(request, timeout)
            self._responses += 1
            # SASL listeners respond to the first one, ApiVersions, without a session.
            if self._responses == 2:
                self._reached.add(self.broker)
            return read(frame, frames.body_offset(frame, key, number))
        except BaseException:
            await self.aclose()
            action = f"{name} to {self.broker}"
            with self._mapping(action, if_closed=self._if_closed):
                raise
        finally:
            self._busy = False

    def _if_closed(self) -> str:
        if self.broker in self._reached:
            return ""
        if self._is_plain and not self._responses:
            return TLS_HINT
        versions_only = self._sasl is None and self._responses == 1
        return SASL_HINT if versions_only else ""


class ReconnectingConnection:
    """A connection that is opened by the first request, and again after a failure.

    One task uses it; see `SharedConnection`. `send` raises as `Connection.open` and
    `Connection.send`; after an error, the next `send` connects again.
    """

    def __init__(self, connect: Callable[[], Awaitable[Connection]]) -> None:
        self._connect = connect
        self._connection: Connection | None = None
        self._closed = False

    @property
    def is_open(self) -> bool:
        return self._connection is not None and not self._connection.closed

    async def open(self) -> None:
        """Connect, if it is not open; `send` does so too.

        For callers that measure how long a response takes.
        """
        await self._connected()

    async def send(self, request: Any, timeout: float) -> Any:
        connection = self._connection
        if self._closed or connection is None or connection.closed:
            connection = await self._connected()
        return await connection.send(request, timeout)

    async def _connected(self) -> Connection:
        connection = self._connection
        if not self._closed and (connection is None or connection.closed):
            self._connection = connection = await self._connect()
            if self._closed:  # meanwhile
                await connection.aclose()
        if self._closed or connection is None:
            raise ConnectionFailedError(
                "the request was not sent: its connection is closed, because the "
                "client is closing"
            )
        return connection

    async def idle(self, wait: Wait, lost: Callable[[Error], None]) -> None:
        """Await `wait()`; call `lost` if the connection ends meanwhile.

        See `Connection.idle`. Do not call this during a `send`.
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


class SharedConnection(ReconnectingConnection):
    """A `ReconnectingConnection` of several tasks, whose requests take turns.

    Args:
        should_avoid: returns whether requests should go to another broker than this
            address; then a request connects again.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[Connection]],
        should_avoid: Callable[[str], bool] = lambda _: False,
    ) -> None:
        super().__init__(connect)
        self._should_avoid = should_avoid
        self._is_stale = False
        self._lock = anyio.Lock()

    def mark_stale(self) -> None:
        """Connect again before the next request."""
        self._is_stale = True

    async def open(self) -> None:
        async with self._lock:
            await super().open()

    async def send(self, request: Any, timeout: float) -> Any:
        async with self._lock:
            connection = self._connection
            if connection is not None and (
                self._is_stale or self._should_avoid(connection.broker)
            ):
                await connection.aclose()
            self._is_stale = False
            return await super().send(request, timeout)
