"""Starting and closing a producer, from any task of the application.

The states are, in this order: new, starting, open, closing, closed. A start that fails
returns to new.
"""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Final, Literal, Self

import anyio
from anyio.abc import TaskGroup

from sharecons.config import validation
from sharecons.errors import (
    BackgroundTaskError,
    ClosedError,
    ConsumerStateError,
    fresh,
)
from sharecons.guard import text_by
from sharecons.log import get_logger
from sharecons.net.background import Background
from sharecons.net.broker_pool import BrokerPool, Deadline
from sharecons.net.cluster import Cluster
from sharecons.net.io.event_loop import LoopGuard, in_trio
from sharecons.producer.idempotent import IdempotentProducer

__all__ = ["ProducerLifecycle"]

CLOSE_TIMEOUT: Final = 10.0
RELEASE_TIMEOUT: Final = 5.0
"""Seconds to wait for cancelled tasks; closing connections takes no time."""

_log = get_logger(__name__)


class ProducerLifecycle(ABC):
    """`async with`, `start`, `stop` and `aclose` of a producer.

    The background task depends on no task of the application (`net.background`). If it
    fails, the failure is logged, and later calls raise it as a `BackgroundTaskError`.
    """

    def __init__(self, cluster: Cluster, connect_timeout: float) -> None:
        self._cluster = cluster
        self._connect_timeout = connect_timeout
        self._state: Literal["new", "starting", "open", "closing", "closed"] = "new"
        self._starting: anyio.CancelScope | None = None
        self._background: Background | None = None
        self._crash: BackgroundTaskError | None = None
        self._loop_guard: LoopGuard | None = None
        self._running: IdempotentProducer | None = None

    @abstractmethod
    def _new_producer(self, brokers: BrokerPool) -> IdempotentProducer:
        """Return the producer to run."""

    # Starting.

    async def __aenter__(self) -> Self:
        """Connect. Cancelling this leaves nothing behind.

        Raises:
            ConnectionFailedError: no broker responded within `connect_timeout`.
            AuthenticationError: either side rejected the credentials.
            UnsupportedVersionError: the broker is too old.
            ConsumerStateError: it was started before; create another producer.
            ClosedError: another task closed it meanwhile.
        """
        await self._start()
        return self

    async def start(self) -> None:
        """Start as `async with` does; `stop` ends it, in this task or in another.

        On asyncio only. A trio program uses `async with`, so that the producer ends
        with its block.

        Raises:
            ConsumerStateError: it was started before, or this is trio.
            Error: others, as `async with`.
        """
        if in_trio():
            raise ConsumerStateError(
                "start() is for asyncio; on trio use `async with producer:`, which "
                "closes the producer when its block ends"
            )
        await self._start()

    async def _start(self) -> None:
        if self._state != "new":
            raise ConsumerStateError(
                f"the producer is {self._state}, and a producer can be started only "
                "once; create another Producer"
            )
        self._state, self._loop_guard = "starting", LoopGuard("producer")
        brokers = BrokerPool(self._cluster, self._connect_timeout)
        try:
            with anyio.CancelScope() as self._starting:
                await brokers.request_topics((), Deadline(self._connect_timeout))
                if self._state == "starting":  # and not closed meanwhile
                    self._run(brokers)
        finally:
            self._starting = None
            if self._state == "starting":
                self._state, self._loop_guard = "new", None
            if self._background is None:
                await brokers.aclose()
        self._check_open()  # `aclose` can cancel the scope

    def _run(self, brokers: BrokerPool) -> None:
        producer = self._running = self._new_producer(brokers)

        def start_tasks(tasks: TaskGroup) -> None:
            tasks.start_soon(producer.run)

        self._background = Background(
            "sharecons, producer", start_tasks, self._on_task_ended, brokers.aclose
        )
        self._state = "open"

    # Closing.

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._close(CLOSE_TIMEOUT)

    async def stop(self, *, timeout: float = CLOSE_TIMEOUT) -> None:
        """Close the producer, as `aclose` does; before `start` it never starts."""
        await self.aclose(timeout=timeout)

    async def aclose(self, *, timeout: float = CLOSE_TIMEOUT) -> None:
        """Wait until all records have their results, and close the connections.

        Records of calls that were cancelled are included. Calls that begin now raise
        ClosedError. Any task can call this. A second call waits for the first.

        After `timeout` seconds, or if this is cancelled, the connections are closed
        immediately. Then calls that wait raise ClosedError; their records might have
        been written.

        Raises:
            WrongThreadError: this is not the event loop that it was started in.
        """
        validation.check_timeout(timeout)
        await self._close(timeout)

    async def _close(self, timeout: float) -> None:
        if self._background is None:
            self._state = "closed"
            if self._starting is not None:
                self._starting.cancel()
            return
        if self._background.has_ended:
            self._state = "closed"
            return
        self._check_caller()
        self._state = "closing" if self._state == "open" else self._state
        try:
            with anyio.move_on_after(timeout):
                await self._flush()
        finally:
            self._state = "closed"
            self._background.cancel()
            with anyio.move_on_after(RELEASE_TIMEOUT, shield=True):
                await self._background.wait()

    async def _flush(self) -> None:
        assert self._running is not None, "started"
        await self._running.flush()

    # The background task.

    def _on_task_ended(self, error: BaseException | None) -> None:
        if isinstance(error, Exception):
            _log.error("a background task of the producer failed", exc_info=error)
        elif error is None or self._state != "open":
            return
        what = "failed" if isinstance(error, Exception) else "was cancelled"
        self._crash = BackgroundTaskError(
            f"a background task of the producer {what}: {text_by(repr, error)}; "
            "records that were not confirmed might have been written; start another "
            "producer"
        )
        self._crash.__cause__ = error

    async def _wait_for_crash(self) -> BackgroundTaskError:
        """Return the failure of the background task, which is ending."""
        assert self._background is not None, "started"
        await self._background.wait()
        assert self._crash is not None, "not closed"
        return self._crash

    def _check_open(self) -> None:
        """Check that the producer can be used.

        Raises:
            ConsumerStateError, ClosedError: it is not open.
            WrongThreadError: this is not its event loop.
            BackgroundTaskError: the background task failed.
        """
        if self._state in ("new", "starting"):
            raise ConsumerStateError(
                "the producer is not started; use `async with producer:` or "
                "`await producer.start()`"
            )
        if self._state != "open":
            raise ClosedError("the producer is closed; create another Producer")
        self._check_caller()
        if self._crash is not None:
            raise fresh(self._crash)

    def _check_caller(self) -> None:
        if self._loop_guard is not None:
            self._loop_guard.check()
