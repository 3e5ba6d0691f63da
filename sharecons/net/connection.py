"""One connection to one broker: one question at a time, and what follows its answer.

A broker serves one request per connection at a time, so little is gained by sending
a second one early, but where each round trip counts, or much comes: see `Following`.
Answers come in the order of the requests. There is no task that reads, no table of
futures, and nothing to clean up but the wire.

An `ask` that is cancelled or fails leaves an answer on its way that nobody waits
for: the connection is of no use then, and closes itself.
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
    Hear,
    NextFrame,
    NextRequest,
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

WANTS_SASL: Final = "; perhaps this listener wants SASL: see `security`"
"""What ApiVersions is answered without; Kafka hangs up on whatever comes next."""

WANTS_TLS: Final = "; perhaps this is a TLS port: see `security`"
"""A TLS listener closes the connection when the first request reaches it."""


class Connection:
    """An open connection; `open` makes one.

    Attributes:
        broker: who is at the other end, for messages.
        served: the APIs and versions that the broker named.
        closed: it cannot be used any more.
    """

    def __init__(
        self,
        wire: FrameTransport,
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
        self._wire = wire
        self._numbers = CorrelationIds(client_id)
        self._busy = False
        self._login: SaslSession | None = None
        if credentials is not None:
            self._login = SaslSession(credentials, broker)

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
        """Connect, ask which versions are spoken, and say who we are.

        `is_plain` is True where errors may hint at TLS: it is known not to be used.

        Raises:
            ConnectionFailedError: nobody is there, or it is no Kafka broker.
            AuthenticationError: the broker does not let us in, or proved not itself.
            RequestTimedOutError: all that took longer than `timeout` seconds.
        """
        with ErrorMapping(f"connecting to {endpoint}"):
            with anyio.fail_after(timeout):
                wire = await network.connect(endpoint)
                connection = cls(
                    wire, str(endpoint), client_id, credentials, is_plain=is_plain
                )
                try:
                    await connection._introduce(software_version)
                except BaseException:
                    await connection.aclose()
                    raise
        return connection

    async def ask(self, request: Any, timeout: float, hear: Hear = ignore) -> Any:
        """Send a request and wait for its answer.

        `hear` is told the answer as soon as it is read, perhaps outside of any task
        (see `Wire.exchange`): it must not raise. It may give what to ask next, which
        leaves before whom it woke runs, or a `Later` that finds it when they have run;
        this then goes on, to the answer that nothing follows and nothing is behind.

        If this is cancelled or raises, the connection is closed and whether the
        broker acted is unknown.

        Raises:
            UnsupportedVersionError: the broker does not speak it; nothing was sent.
            RequestTimedOutError: no answer within `timeout` seconds.
            ConnectionFailedError: the connection broke, or the answer is garbage.
            AuthenticationError: the broker does not know us any more.
        """
        answer: Any = NextRequest(request, timeout)
        while isinstance(answer, NextRequest):
            if self._login is not None and self._login.is_due:
                await self._log_in(self._login, answer.timeout)
            answer = await self._ask(answer.request, answer.timeout, hear)
        return answer

    async def _ask(self, request: Any, timeout: float, hear: Hear = ignore) -> Any:
        """Give the last answer, or what follows it and could not be sent at once.

        What `hear` was told of need not be given: of `Later`, None is.
        """
        kind = type(request)
        api = registry.api_of(kind)
        version = registry.choose_version(api, self.served, self.broker)
        asking = RequestExchange(kind, api, version, self._numbers, self._login, hear)
        body = api.write(request, version)
        return await self._exchange(
            api.key, version, api.name, body, timeout, asking.read
        )

    async def idle(self, wait: Wait, lost: Callable[[Error], None]) -> None:
        """Await `wait()` while nothing is requested, and watch the connection.

        If it ends meanwhile, or has ended, call `lost` once with the reason, at once,
        perhaps outside of any task; `lost` makes `wait()` return.
        """
        ended = False

        def end(reason: Exception) -> None:
            nonlocal ended
            ended = True
            lost(self._reason(reason))

        try:
            await self._wire.idle(wait, end)
        finally:
            if ended:
                await self.aclose()

    def _reason(self, error: Exception) -> Error:
        try:
            with ErrorMapping(self.broker, asking=True):
                raise error
        except Error as reason:
            return reason
        except Exception as other:  # noqa: BLE001 (whatever an event loop reports)
            return ConnectionFailedError(f"{self.broker}: {other!r}")

    async def aclose(self) -> None:
        """Close at once, without waiting for anybody; may be called again."""
        if not self.closed:
            self.closed = True
            await self._wire.aclose()

    async def _introduce(self, software_version: str) -> None:
        # The caller's time limit holds for all of it.
        await self._ask_versions(software_version)
        if self._login is not None:
            await self._log_in(self._login, inf)

    async def _log_in(self, login: SaslSession, timeout: float) -> None:
        try:
            await login.run(partial(self._ask, timeout=timeout))
        except BaseException:
            await self.aclose()
            raise

    async def _ask_versions(self, software_version: str) -> None:
        body = api_versions.write_versions_request(SOFTWARE, software_version)
        key, version = api_versions.KEY, api_versions.VERSION

        def read(frame: Frame) -> Mapping[int, VersionRange]:
            return api_versions.read_versions(frame, self._numbers.body(frame, key))

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
                f"{name} to {self.broker}: the connection is closed"
            )
        request = self._numbers.request(key, version, body)
        doing = f"{name} to {self.broker}"
        self._busy = True
        try:
            with ErrorMapping(doing, asking=True, if_closed=self._if_closed):
                answer = await self._wire.exchange(request, timeout, read)
                # Of a wire that does not go on by itself.
                while isinstance(answer, Deferred | NextFrame):
                    if isinstance(answer, Deferred):
                        answer = answer.find()
                    else:
                        data, timeout = answer.data, answer.timeout
                        answer = await self._wire.exchange(data, timeout, read)
                return answer
        except BaseException:
            await self.aclose()
            raise
        finally:
            self._busy = False

    def _if_closed(self) -> str:
        if self._is_plain and not self._numbers.answers:
            return WANTS_TLS
        versions_only = self._login is None and self._numbers.answers == 1
        return WANTS_SASL if versions_only else ""
