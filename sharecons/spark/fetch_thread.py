"""The thread that reads ahead: an event loop, and a queue to the task's own thread.

Spark takes rows when it likes, and may never take the last one. So the thread is one
that does not keep a process alive, and what was read ahead is bounded.
"""

import threading
from collections import deque
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Final

import anyio
from anyio.from_thread import BlockingPortal

from sharecons.errors import ConnectionFailedError, Error
from sharecons.net.cluster import CONNECT_TIMEOUT, Cluster, ReconnectingConnection
from sharecons.net.connection import Connection
from sharecons.net.io.clock import running_clock
from sharecons.net.io.event import AutoResetEvent
from sharecons.protocol.log_reader.reader import (
    FetchedSlice,
    LogReader,
    NodeRequest,
    ReadEvent,
)

__all__ = ["FetchThread"]

MOST_WAITING: Final = 12 << 20
"""Bytes that may wait to be decoded; with so many, nothing more is asked for."""

PATIENCE: Final = 10.0
"""Seconds for the thread to begin, and to end."""


class FetchThread:
    """Carries a `Reading` out. `next`, `start` and `close` are of one thread."""

    def __init__(
        self, reading: LogReader, cluster: Cluster, request_timeout: float
    ) -> None:
        self._fetcher = _Fetcher(reading, cluster, request_timeout)
        self._portal: BlockingPortal | None = None
        self._begun = threading.Event()
        self._fetching: Future[None] | None = None
        self._thread = threading.Thread(
            target=self._run, name="sharecons-fetch", daemon=True
        )

    def start(self) -> None:
        self._thread.start()
        if not self._begun.wait(PATIENCE) or self._portal is None:
            raise ConnectionFailedError("the thread that fetches did not begin")
        self._fetching = self._portal.start_task_soon(self._fetcher.run)

    def next(self) -> ReadEvent | None:
        """Wait for what comes next; None once there is nothing more.

        Raises what the reading ended with.
        """
        assert self._portal is not None, "started"
        assert self._fetching is not None, "started"
        happened: ReadEvent | None = self._portal.call(self._fetcher.next)
        if happened is None:
            self._fetching.result(PATIENCE)
        return happened

    def close(self) -> None:
        """End the thread and its connections; may be called again."""
        if self._portal is not None and self._thread.is_alive():
            with suppress(RuntimeError, CancelledError):  # it is ending by itself
                self._portal.call(self._portal.stop, True)
            self._thread.join(PATIENCE)

    def _run(self) -> None:
        anyio.run(self._serve)

    async def _serve(self) -> None:
        try:
            async with BlockingPortal() as portal:
                self._portal = portal
                self._begun.set()
                await portal.sleep_until_stopped()
        finally:
            self._begun.set()


class _Fetcher:
    """What runs in the thread."""

    def __init__(
        self, reading: LogReader, cluster: Cluster, request_timeout: float
    ) -> None:
        self._reading = reading
        self._cluster = cluster
        self._timeout = request_timeout
        self._links: dict[int | None, ReconnectingConnection] = {}
        self._waiting: deque[ReadEvent] = deque()
        self._size = 0  # of all that waits
        self._came = anyio.Event()
        self._ended = False
        self._bell = AutoResetEvent()

    async def run(self) -> None:
        clock = running_clock()
        try:
            async with anyio.create_task_group() as group:
                while not self._reading.finished:
                    if self._size < MOST_WAITING:
                        for ask in self._reading.next_requests(clock()):
                            group.start_soon(self._ask, ask)
                    await self._bell.wait_until(self._deadline(clock()))
                group.cancel_scope.cancel()
        finally:
            self._ended = True
            self._came.set()
            for link in self._links.values():
                await link.aclose()
        if self._reading.error is not None:
            raise self._reading.error

    async def next(self) -> ReadEvent | None:
        while not self._waiting:
            if self._ended:
                return None
            self._came = anyio.Event()
            await self._came.wait()
        happened = self._waiting.popleft()
        self._size -= _size_of(happened)
        self._bell.set()
        return happened

    def _deadline(self, now: float) -> float:
        # While too much waits, only its being taken is of interest.
        if self._size >= MOST_WAITING:
            return float("inf")
        return self._reading.next_deadline(now)

    async def _ask(self, ask: NodeRequest) -> None:
        clock = running_clock()
        try:
            answer = await self._link(ask.node_id).ask(ask.request, self._timeout)
        except Error as error:
            self._reading.failed(ask, error, clock())
        else:
            for happened in self._reading.answered(ask, answer, clock()):
                self._waiting.append(happened)
                self._size += _size_of(happened)
        self._bell.set()
        if self._waiting:
            self._came.set()

    def _link(self, node_id: int | None) -> ReconnectingConnection:
        link = self._links.get(node_id)
        if link is None:
            link = self._links[node_id] = ReconnectingConnection(
                lambda: self._connect(node_id)
            )
        return link

    async def _connect(self, node_id: int | None) -> Connection:
        brokers = self._reading.brokers
        timeout = min(CONNECT_TIMEOUT, self._timeout)
        if node_id is None:
            return await self._cluster.connect_any(brokers.values(), timeout)
        if node_id not in brokers:
            raise ConnectionFailedError(f"node {node_id} is gone from the cluster")
        return await self._cluster.connect(brokers[node_id], timeout)


def _size_of(happened: ReadEvent) -> int:
    return len(happened.records) if isinstance(happened, FetchedSlice) else 0
