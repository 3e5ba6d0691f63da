"""One connection to one broker: requests go out, each is answered before the next.

A broker serves one request per connection at a time, so nothing is gained by
sending a second one early; and without it there is no task that reads, no table
of futures, and nothing to clean up but the wire.

An `ask` that is cancelled or fails leaves an answer on its way that nobody waits
for: the connection is of no use then, and closes itself.
"""

from collections.abc import Mapping
from typing import Any, Final

import anyio

from sharecons.errors import ConnectionFailedError
from sharecons.net.transport import Network, Troubles, Wire
from sharecons.protocol.values import Endpoint
from sharecons.wire import api_versions, apis, frames
from sharecons.wire.api_versions import VersionRange

__all__ = ["Connection"]

SOFTWARE: Final = "sharecons"


class Connection:
    """An open connection; `open` makes one.

    Attributes:
        broker: who is at the other end, for messages.
        served: the APIs and versions that the broker named.
        closed: it cannot be used any more.
    """

    def __init__(self, wire: Wire, broker: str, client_id: str) -> None:
        self.broker = broker
        self.served: Mapping[int, VersionRange] = {}
        self.closed = False
        self._wire = wire
        self._client_id = client_id
        self._correlation_id = 0
        self._busy = False

    @classmethod
    async def open(
        cls,
        network: Network,
        endpoint: Endpoint,
        *,
        client_id: str,
        software_version: str,
        timeout: float,
    ) -> "Connection":
        """Connect, and ask which versions are spoken.

        Raises:
            ConnectionFailedError: nobody is there, or it is no Kafka broker.
            RequestTimedOutError: all that took longer than `timeout` seconds.
        """
        with Troubles(f"connecting to {endpoint}"):
            with anyio.fail_after(timeout):
                wire = await network.connect(endpoint)
                connection = cls(wire, str(endpoint), client_id)
                try:
                    await connection._ask_versions(software_version)
                except BaseException:
                    await connection.aclose()
                    raise
        return connection

    async def ask(self, request: Any, timeout: float) -> Any:
        """Send a request and wait for its answer.

        If this is cancelled or raises, the connection is closed and whether the
        broker acted is unknown.

        Raises:
            UnsupportedVersionError: the broker does not speak it; nothing was sent.
            RequestTimedOutError: no answer within `timeout` seconds.
            ConnectionFailedError: the connection broke, or the answer is garbage.
        """
        api = apis.APIS[type(request)]
        version = apis.choose_version(api, self.served, self.broker)
        body = api.write(request, version)
        frame, offset = await self._exchange(api.key, version, api.name, body, timeout)
        try:
            with Troubles(f"{api.name} to {self.broker}", asking=True):
                return api.read(frame, offset, version)
        except BaseException:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """Close at once, without waiting for anybody; may be called again."""
        if not self.closed:
            self.closed = True
            await self._wire.aclose()

    async def _ask_versions(self, software_version: str) -> None:
        body = api_versions.write_versions_request(SOFTWARE, software_version)
        key, version = api_versions.KEY, api_versions.VERSION
        # The caller's time limit holds for this one.
        frame, offset = await self._exchange(
            key, version, "ApiVersions", body, float("inf")
        )
        with Troubles(f"ApiVersions to {self.broker}", asking=True):
            self.served = api_versions.read_versions(frame, offset)

    async def _exchange(
        self, key: int, version: int, name: str, body: bytes, timeout: float
    ) -> tuple[memoryview, int]:
        if self.closed or self._busy:
            raise ConnectionFailedError(
                f"{name} to {self.broker}: the connection is closed"
            )
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        correlation_id = self._correlation_id
        request = frames.request_frame(
            key, version, correlation_id, self._client_id, body
        )
        self._busy = True
        try:
            with Troubles(f"{name} to {self.broker}", asking=True):
                frame = await self._wire.exchange(request, timeout)
                return frame, frames.body_offset(frame, key, correlation_id)
        except BaseException:
            await self.aclose()
            raise
        finally:
            self._busy = False
