"""One connection to one broker: one request at a time, or a pipeline of fetches.

A broker serves one request per connection at a time, so a second request in flight
gains little, except where each round trip counts or a response is large: see
`net.io.pipeline`. Responses come in the order of the requests. There is no reader task
and no table of futures, and only the transport needs to be closed.

A request that is cancelled or fails may leave its response in flight, so the
connection closes itself.
"""

from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from typing import Any, Final, TypeVar

import anyio

from sharecons.errors import ConnectionFailedError, Error
from sharecons.net.io.idle_watch import Wait
from sharecons.net.io.pipeline import (
    CorrelationIds,
    Deferred,
    NextFrame,
    NextRequest,
    OnResponse,
    RequestExchange,
    ignore,
)
from sharecons.net.io.sasl import SaslSession
from sharecons.net.io.transport import ErrorMapping, FrameTransport, Network
from sharecons.protocol.messages import Endpoint
from sharecons.protocol.sasl.credentials import Credentials
from sharecons.wire import api_versions
from sharecons.wire.api_versions import VersionRange
from sharecons.wire.codec import registry
from sharecons.wire.codec.api import Frame

__all__ = ["Connection"]

T = TypeVar("T")

SOFTWARE: Final = "sharecons"

SASL_HINT: Final = "; if this listener requires SASL, pass `security`"
"""A SASL listener answers ApiVersions, and closes the connection on other requests."""

TLS_HINT: Final = "; if this is a TLS port, pass `security`"
"""A TLS listener closes the connection when it receives the first request."""


class Connection:
    """An open connection, created by `open`.

    Attributes:
        broker: the broker's address, for messages.
        served: the version range of each API that the broker supports.
        closed: True if it cannot be used any more.
    """

    def __init__(
        self,
        transport: FrameTransport,
        broker: str,
        client_id: str,
        credentials: Credentials | None = None,
        *,
        is_plain: bool = False,
    ) -> None:
        self.broker = broker
        self._is_plain = is_plain
        self.served: Mapping[int, VersionRange] = {}
        self.closed = False
        self._transport = transport
        self._correlation_ids = CorrelationIds(client_id)
        self._busy = False
        self._sasl: SaslSession | None = None
        if credentials is not None:
            self._sasl = SaslSession(credentials, broker)

    @classmethod
    async def open(
        cls,
        network: Network,
        endpoint: Endpoint,
        *,
        client_id: str,
        software_version: str,
        timeout: float,
        credentials: Credentials | None = None,
        is_plain: bool = False,
    ) -> "Connection":
        """Connect, request the supported API versions, and authenticate.

        Args:
            timeout: seconds for all of it.
            is_plain: TLS is known not to be used, so errors may suggest it.

        Raises:
            ConnectionFailedError: no connection, or it is no Kafka broker.
            AuthenticationError: either side rejected the credentials.
            RequestTimedOutError: not finished within `timeout` seconds.
        """
        with ErrorMapping(f"connecting to {endpoint}"):
            with anyio.fail_after(timeout):
                transport = await network.connect(endpoint)
                connection = cls(
                    transport, str(endpoint), client_id, credentials, is_plain=is_plain
                )
                try:
                    await connection._handshake(software_version)
                except BaseException:
                    await connection.aclose()
                    raise
        return connection

    async def ask(
        self, request: Any, timeout: float, on_response: OnResponse = ignore
    ) -> Any:
        """Send a request and return its response.

        `on_response` receives the response as soon as it was read, perhaps outside
        of any task (see `FrameTransport.exchange`); it must not raise. It may return
        the next request, which is sent before the tasks that it woke run, or a
        `Deferred` that finds it after they have run. This returns the first response
        with no request after it, once nothing is in flight.

        If this is cancelled or raises, the connection is closed, and whether the broker
        executed the request is unknown.

        Raises:
            UnsupportedVersionError: the broker does not support the request; nothing
                was sent.
            RequestTimedOutError: no response within `timeout` seconds.
            ConnectionFailedError: the connection broke, or the response is invalid.
            AuthenticationError: the broker rejected the credentials.
        """
        response: Any = NextRequest(request, timeout)
        while isinstance(response, NextRequest):
            if self._sasl is not None and self._sasl.is_due:
                await self._authenticate(self._sasl, response.timeout)
            response = await self._send(response.request, response.timeout, on_response)
        return response

    async def _send(
        self, request: Any, timeout: float, on_response: OnResponse = ignore
    ) -> Any:
        """Return the last response, or the next request if it was not sent yet.

        Return None after a `Deferred` that found no request.
        """
        kind = type(request)
        api = registry.api_of(kind)
        version = registry.choose_version(api, self.served, self.broker)
        exchange = RequestExchange(
            kind, api, version, self._correlation_ids, self._sasl, on_response
        )
        body = api.write(request, version)
        return await self._exchange(
            api.key, version, api.name, body, timeout, exchange.read
        )

    async def idle(self, wait: Wait, on_lost: Callable[[Error], None]) -> None:
        """Await `wait()` while nothing is requested, and watch the connection.

        If the connection has ended or ends meanwhile, call `on_lost` once with the
        reason, at once, perhaps outside of any task; `on_lost` makes `wait()` return.
        """
        ended = False

        def end(reason: Exception) -> None:
            nonlocal ended
            ended = True
            on_lost(self._map_error(reason))

        try:
            await self._transport.idle(wait, end)
        finally:
            if ended:
                await self.aclose()

    def _map_error(self, error: Exception) -> Error:
        try:
            with ErrorMapping(self.broker, is_request=True):
                raise error
        except Error as reason:
            return reason
        except Exception as other:  # noqa: BLE001 (event loops may report any)
            return ConnectionFailedError(f"{self.broker}: {other!r}")

    async def aclose(self) -> None:
        """Close at once, without waiting for the broker; may be called again."""
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
            await sasl.authenticate(partial(self._send, timeout=timeout))
        except BaseException:
            await self.aclose()
            raise

    async def _request_versions(self, software_version: str) -> None:
        body = api_versions.write_versions_request(SOFTWARE, software_version)
        key, version = api_versions.KEY, api_versions.VERSION

        def read(frame: Frame) -> Mapping[int, VersionRange]:
            return api_versions.read_versions(
                frame, self._correlation_ids.body_offset(frame, key)
            )

        self.served = await self._exchange(key, version, "ApiVersions", body, inf, read)

    async def _exchange(
        self,
        key: int,
        version: int,
        name: str,
        body: bytes,
        timeout: float,
        read: Callable[[Frame], Any],
    ) -> Any:
        if self.closed or self._busy:
            raise ConnectionFailedError(
                f"{name} to {self.broker}: the connection is closed; try again"
            )
        request = self._correlation_ids.next_frame(key, version, body)
        action = f"{name} to {self.broker}"
        self._busy = True
        try:
            with ErrorMapping(action, is_request=True, if_closed=self._if_closed):
                response = await self._transport.exchange(request, timeout, read)
                # A transport may leave the next frames to its caller.
                while isinstance(response, Deferred | NextFrame):
                    if isinstance(response, Deferred):
                        response = response.find()
                    else:
                        data, timeout = response.data, response.timeout
                        response = await self._transport.exchange(data, timeout, read)
                return response
        except BaseException:
            await self.aclose()
            raise
        finally:
            self._busy = False

    def _if_closed(self) -> str:
        if self._is_plain and not self._correlation_ids.responses:
            return TLS_HINT
        versions_only = self._sasl is None and self._correlation_ids.responses == 1
        return SASL_HINT if versions_only else ""
