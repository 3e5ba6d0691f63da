"""The thread that fetches for a task: an event loop, and a queue to the task's thread.

Spark can stop taking rows at any time, even before the last one. So the thread is a
daemon, which does not keep the process alive, and the queue is bounded.
"""

import threading
from collections import deque
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Final

import anyio
from anyio.from_thread import BlockingPortal

from sharecons.errors import ConnectionFailedError, Error
from sharecons.net.cluster import CONNECT_TIMEOUT, Cluster
from sharecons.net.connection import Connection, SharedConnection
from sharecons.net.io.event_loop import AutoResetEvent, running_clock
from sharecons.protocol.log_reader.reader import (
    FetchedSlice,
    LogReader,
    NodeRequest,
    ReadEvent,
)

__all__ = ["FetchThread"]

MAX_QUEUED_BYTES: Final = 12 << 20
"""Bytes of fetched records in the queue above which no more requests are sent."""

THREAD_TIMEOUT: Final = 10.0
"""Seconds for the thread to start, and to end."""


class FetchThread:
    """Runs a `LogReader` in a thread; the methods are called by the task's thread."""

    def __init__(
        self, reader: LogReader, cluster: Cluster, request_timeout: float
    ) -> None:
        self._fetcher = _Fetcher(reader, cluster, request_timeout)
        self._portal: BlockingPortal | None = None
        self._started = threading.Event()
        self._fetch_result: Future[None] | None = None
        self._thread = threading.Thread(
            target=self._run, name="sharecons-fetch", daemon=True
        )

    def start(self) -> None:
        self._thread.start()
        if not self._started.wait(THREAD_TIMEOUT) or self._portal is None:
            raise ConnectionFailedError(
                f"the thread that fetches did not start within {THREAD_TIMEOUT:g} s"
            )
        self._fetch_result = self._portal.start_task_soon(self._fetcher.run)

    def next(self) -> ReadEvent | None:
        """Wait for the next event of the reader, and return it; None at the end.

        Raises:
            Error: the reader has failed.
        """
        assert self._portal is not None, "started"
        assert self._fetch_result is not None, "started"
        event: ReadEvent | None = self._portal.call(self._fetcher.next)
        if event is None:
            self._fetch_result.result(THREAD_TIMEOUT)
        return event

    def close(self) -> None:
        """End the thread and its connections; can be repeated."""
        if self._portal is not None and self._thread.is_alive():
            with suppress(RuntimeError, CancelledError):  # it is ending by itself
                self._portal.call(self._portal.stop, True)
            self._thread.join(THREAD_TIMEOUT)

    def _run(self) -> None:
        anyio.run(self._serve)

    async def _serve(self) -> None:
        try:
            async with BlockingPortal() as portal:
                self._portal = portal
                self._started.set()
                await portal.sleep_until_stopped()
        finally:
            self._started.set()


class _Fetcher:
    """Sends the reader's requests, in the thread's event loop."""

    def __init__(
        self, reader: LogReader, cluster: Cluster, request_timeout: float
    ) -> None:
        self._reader = reader
        self._cluster = cluster
        self._timeout = request_timeout
        self._connections: dict[int | None, SharedConnection] = {}
        self._events: deque[ReadEvent] = deque()
        self._queued_bytes = 0  # of all that waits
        self._arrived = anyio.Event()
        self._has_ended = False
        self._wakeup = AutoResetEvent()

    async def run(self) -> None:
        clock = running_clock()
        try:
            async with anyio.create_task_group() as group:
                while not self._reader.finished:
                    if self._queued_bytes < MAX_QUEUED_BYTES:
                        for request in self._reader.next_requests(clock()):
                            group.start_soon(self._send, request)
                    await self._wakeup.wait_until(self._deadline(clock()))
                group.cancel_scope.cancel()
        finally:
            self._has_ended = True
            self._arrived.set()
            for connection in self._connections.values():
                await connection.aclose()
        if self._reader.error is not None:
            raise self._reader.error

    async def next(self) -> ReadEvent | None:
        while not self._events:
            if self._has_ended:
                return None
            self._arrived = anyio.Event()
            await self._arrived.wait()
        event = self._events.popleft()
        self._queued_bytes -= _size_of(event)
        self._wakeup.set()
        return event

    def _deadline(self, now: float) -> float:
        # With a full queue there is nothing to do until `next` takes an event.
        if self._queued_bytes >= MAX_QUEUED_BYTES:
            return float("inf")
        return self._reader.next_deadline(now)

    async def _send(self, request: NodeRequest) -> None:
        clock = running_clock()
        try:
            response = await self._connection(request.node_id).send(
                request.request, self._timeout
            )
        except Error as error:
            self._reader.on_error(request, error, clock())
        else:
            for event in self._reader.on_response(request, response, clock()):
                self._events.append(event)
                self._queued_bytes += _size_of(event)
        self._wakeup.set()
        if self._events:
            self._arrived.set()

    def _connection(self, node_id: int | None) -> SharedConnection:
        connection = self._connections.get(node_id)
        if connection is None:
            connection = self._connections[node_id] = SharedConnection(
                lambda: self._connect(node_id)
            )
        return connection

    async def _connect(self, node_id: int | None) -> Connection:
        brokers = self._reader.brokers
        timeout = min(CONNECT_TIMEOUT, self._timeout)
        if node_id is None:
            return await self._cluster.connect_any(brokers.values(), timeout)
        if node_id not in brokers:
            raise ConnectionFailedError(f"broker {node_id} is not in the cluster")
        return await self._cluster.connect(brokers[node_id], timeout)


def _size_of(event: ReadEvent) -> int:
    return len(event.records) if isinstance(event, FetchedSlice) else 0
