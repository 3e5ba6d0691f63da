"""The base of `ShareGroupAdmin`: connecting, closing, and one executor per call."""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from sharecons.admin.client_executor import ClientExecutor
from sharecons.config import validation
from sharecons.config.security import Security
from sharecons.errors import ClosedError
from sharecons.net.broker_pool import BrokerPool, Deadline
from sharecons.net.cluster import Cluster
from sharecons.net.io.event_loop import LoopGuard
from sharecons.net.io.transport import Network
from sharecons.version import VERSION

__all__ = ["AdminLifecycle"]


class AdminLifecycle:
    """The connections of an admin client, from its creation to `aclose`."""

    def __init__(
        self,
        *,
        bootstrap_servers: str | Sequence[str] = "localhost:9092",
        client_id: str = "sharecons",
        security: Security | None = None,
        timeout: float = 30.0,
        connect_timeout: float = 10.0,
        network: Network | None = None,
    ) -> None:
        validation.check_number("timeout", timeout, 0.001, validation.HOUR)
        validation.check_number(
            "connect_timeout", connect_timeout, 0.0, validation.HOUR
        )
        self._brokers = BrokerPool(
            Cluster(
                validation.parse_bootstrap(bootstrap_servers),
                network,
                client_id=validation.check_string("client_id", client_id),
                software_version=VERSION,
                security=security,
            ),
            connect_timeout,
        )
        self._timeout = timeout
        self._closed = False
        self._loop_guard: LoopGuard | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def start(self) -> None:
        """Do nothing, as the first call connects; the counterpart of `stop`.

        Raises:
            ClosedError: the admin client is closed.
        """
        self._check_open()

    async def stop(self) -> None:
        """Close the connections, like `aclose`; any task can call this."""
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections; later calls do nothing.

        Raises:
            WrongThreadError: the call is outside of the event loop of the first call.
        """
        if self._loop_guard is not None:
            self._loop_guard.check()
        self._closed = True
        await self._brokers.aclose()

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("the admin client is closed; create a new one")
        if self._loop_guard is None:
            self._loop_guard = LoopGuard("admin")
        self._loop_guard.check()

    def _executor(self) -> ClientExecutor:
        self._check_open()
        return ClientExecutor(self._brokers, Deadline(self._timeout))
