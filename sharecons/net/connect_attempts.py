"""Connecting to one of several brokers: overlapping attempts, and retries.

The next address is tried as soon as the previous attempt fails, or after STAGGER
seconds concurrently with it. So a slow broker has the whole time, and an unresponsive
one delays nothing. The first connection is used; the other attempts are cancelled.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import anyio
from anyio.abc import TaskGroup

from sharecons.errors import (
    AuthenticationError,
    ConnectionFailedError,
    Error,
    RequestTimedOutError,
    UnsupportedVersionError,
)
from sharecons.net.connection import Connection
from sharecons.protocol.backoff import Backoff
from sharecons.protocol.partitions import Endpoint

__all__ = ["ConnectAttempts"]

STAGGER: Final = 1.0
"""Seconds until the next address is tried concurrently with an unfinished attempt."""

FIRST_TIMEOUT: Final = 10.0
"""Timeout in seconds of the first attempt at an address; it doubles at each retry."""


class ConnectAttempts:
    """Attempts to connect to the first of several brokers that responds.

    Args:
        connect: connects to one endpoint within a number of seconds.
        endpoints: in the order in which they are tried.
        timeout: seconds for all attempts together.
        retry: try failed endpoints again, with backoff, until `timeout` has passed.
    """

    def __init__(
        self,
        connect: Callable[[Endpoint, float], Awaitable[Connection]],
        endpoints: Sequence[Endpoint],
        timeout: float,
        *,
        retry: bool,
    ) -> None:
        self._connect = connect
        self._endpoints = endpoints
        self._timeout = timeout
        self._retry = retry
        self._reasons: dict[Endpoint, str] = {}
        self._connection: Connection | None = None
        self._error: Exception | None = None
        self._all_started = False
        self._warned = False

    async def run(self) -> Connection:
        """Return the first connection; call this once.

        Raises:
            ConnectionFailedError: no broker responded; the message has each address,
                its reason and the time spent.
            AuthenticationError, UnsupportedVersionError: raised by the first broker
                that responded so; a retry would not help.
        """
        started = anyio.current_time()
        self._deadline = started + self._timeout
        try:
            with anyio.CancelScope(deadline=self._deadline):
                async with anyio.create_task_group() as tasks:
                    await self._start_each(tasks)
        except BaseException:
            if self._connection is not None:
                await self._connection.aclose()
            raise
        if self._connection is not None:
            return self._connection
        if self._error is not None:
            raise self._error
        raise ConnectionFailedError(self._failure_text(anyio.current_time() - started))

    async def _start_each(self, tasks: TaskGroup) -> None:
        stagger = min(STAGGER, self._timeout / (len(self._endpoints) + 1))
        for endpoint in self._endpoints:
            failed = anyio.Event()
            tasks.start_soon(self._attempt, endpoint, failed, tasks.cancel_scope)
            with anyio.move_on_after(stagger):
                await failed.wait()
        self._all_started = True
        self._warn()

    async def _attempt(
        self, endpoint: Endpoint, failed: anyio.Event, others: anyio.CancelScope
    ) -> None:
        backoff = Backoff()
        timeout = FIRST_TIMEOUT
        while True:
            try:
                remaining = self._deadline - anyio.current_time()
                connection = await self._connect(endpoint, min(timeout, remaining))
            except Exception as error:  # noqa: BLE001 (raised by `run`)
                if not _is_retriable(error):
                    self._error = self._error or error
                    others.cancel()
                    return
                self._record_failure(endpoint, error)
                failed.set()
            else:
                await self._on_connected(connection, others)
                return
            if not self._retry:
                return
            timeout *= 2
            await anyio.sleep(backoff.next_delay())

    async def _on_connected(
        self, connection: Connection, others: anyio.CancelScope
    ) -> None:
        others.cancel()
        if self._connection is None and self._error is None:
            self._connection = connection
        else:
            await connection.aclose()  # another attempt was faster

    def _record_failure(self, endpoint: Endpoint, error: Exception) -> None:
        # The overall timeout cuts the last attempt short; keep the earlier reason.
        if endpoint not in self._reasons or not isinstance(error, RequestTimedOutError):
            self._reasons[endpoint] = str(error)
            self._warn()

    def _warn(self) -> None:
        """Log once, early, why the first round of attempts reached no broker."""
        if self._retry and self._all_started and self._reasons and not self._warned:
            self._warned = True
            # structlog takes 0.1 s to import; most connections succeed immediately.
            from sharecons.log import get_logger

            get_logger(__name__).warning(
                "no broker reached yet, retrying",
                timeout=round(self._timeout, 1),
                reasons=list(self._reasons.values()),
            )

    def _failure_text(self, spent: float) -> str:
        reasons = "; ".join(
            self._reasons.get(
                endpoint, f"connecting to {endpoint}: no response in time"
            )
            for endpoint in self._endpoints
        )
        return f"no broker responded; tried for {spent:.1f} s: {reasons}"


def _is_retriable(error: Exception) -> bool:
    """Return whether another attempt can succeed."""
    final = isinstance(error, AuthenticationError | UnsupportedVersionError)
    return isinstance(error, Error) and not final
