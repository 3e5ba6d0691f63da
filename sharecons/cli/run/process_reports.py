"""The reports of several processes: one `/livez`, `/readyz` and `/metrics` for all.

Each page requests reports of the processes that run, and waits up to TIMEOUT for them;
the latest report replaces a missing one. Counters of a process stay in the sums after
its end, so that no counter falls; its gauges leave them. A process that stops by
itself sends a last report. One that is killed has lost what it counted since its last
report, up to INTERVAL seconds before.
"""

import itertools
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, final

import anyio
from anyio import to_thread

from sharecons.cli.run.report import Report, decode_report
from sharecons.metrics.families import MetricFamily, add_up, without_gauges

__all__ = ["ProcessReports"]

TIMEOUT: Final = 1.0
"""Seconds to wait for the reports of all processes."""

INTERVAL: Final = 1.0
"""Seconds between two requests for reports, without a scrape."""

SILENT_AFTER: Final = 5.0
"""Seconds without a response after which a process is not live."""

END_TIMEOUT: Final = 1.0
"""Seconds for the last report of a process that has ended to be read."""


@final
class _Link:
    """The connection to one process.

    Attributes:
        latest: its latest report; None while it starts.
        requested_at: when the first report since its latest one was requested, or None.
        has_ended: it sends no more.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.latest: Report | None = None
        self.requested_at: float | None = None
        self.has_ended = False
        self.reader: threading.Thread | None = None

    def request(self, number: int, now: float) -> None:
        """Request a report. A process that does not read gets no more requests."""
        if self.latest is not None and self.requested_at is None:
            self.requested_at = now
        with suppress(OSError):
            self.connection.send(b"%d\n" % number, socket.MSG_DONTWAIT)

    def close(self) -> None:
        """Close the connection; this ends the reader."""
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        self.connection.close()

    def is_waited_for(self, number: int) -> bool:
        """Return whether a process that has started has not responded."""
        if self.latest is None or self.has_ended:
            return False
        return self.latest.number < number


@final
class ProcessReports:
    """The reports of a supervisor's processes, by index; any thread can read them.

    Args:
        count: how many processes run.
        clock: returns the time in seconds.
    """

    def __init__(self, count: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._expected = set(range(count))
        self._links: dict[int, _Link] = {}
        self._ended: list[MetricFamily] = []
        self._numbers = itertools.count(1)
        self._starts = 0
        self._count = count
        self._changed = threading.Condition()

    # The supervisor.

    def open(self, index: int) -> socket.socket:
        """Return the standard input of a process that starts; close it afterwards."""
        own, other = socket.socketpair()
        link = _Link(own)
        reader = threading.Thread(target=self._read, args=(link,), daemon=True)
        link.reader = reader
        with self._changed:
            self._links[index] = link
            self._starts += 1
        reader.start()
        return other

    async def close(self, index: int) -> None:
        """Keep what a process has counted that has ended."""
        link = self._links[index]
        assert link.reader is not None, "opened"
        with anyio.CancelScope(shield=True):
            # A child of the process can hold its end open.
            await to_thread.run_sync(link.reader.join, END_TIMEOUT)
        with self._changed:
            del self._links[index]
            if link.latest is not None:
                counted = without_gauges(link.latest.families)
                self._ended = add_up([*self._ended, *counted])
        link.close()

    def close_all(self) -> None:
        """Close the connections of processes that did not start, or were killed."""
        with self._changed:
            links = list(self._links.values())
            self._links.clear()
        for link in links:
            link.close()

    def finish(self, index: int) -> None:
        """Stop waiting for reports of a process that is not started again."""
        with self._changed:
            self._expected.discard(index)

    async def request_repeatedly(self) -> None:
        """Request reports at intervals until cancelled."""
        while True:
            self._request()
            await anyio.sleep(INTERVAL)

    # The pages.

    def live(self) -> str | None:
        """Return which processes are not live, and why; None if all are."""
        self._refresh()
        now = self._clock()
        problems: list[str] = []
        with self._changed:
            for index, link in sorted(self._links.items()):
                silent = 0.0 if link.requested_at is None else now - link.requested_at
                if silent >= SILENT_AFTER:
                    problems.append(f"process {index}: no response for {silent:.0f} s")
                elif link.latest is not None and link.latest.live is not None:
                    problems.append(f"process {index}: {link.latest.live}")
        return "; ".join(problems) or None

    def ready(self) -> str | None:
        """Return which processes are not ready, and why; None if all are."""
        self._refresh()
        problems: list[str] = []
        with self._changed:
            for index in sorted(self._expected):
                link = self._links.get(index)
                if link is None:
                    problems.append(f"process {index}: it does not run")
                elif link.latest is None:
                    problems.append(f"process {index}: it starts")
                elif link.latest.ready is not None:
                    problems.append(f"process {index}: {link.latest.ready}")
        return "; ".join(problems) or None

    def families(self) -> list[MetricFamily]:
        """Return the sums of the metrics of all processes."""
        self._refresh()
        with self._changed:
            links = list(self._links.values())
            families = list(self._ended)
            for link in links:
                families += [] if link.latest is None else link.latest.families
            restarts = max(0, self._starts - self._count)
        processes = MetricFamily(
            "sharecons_run_processes",
            "gauge",
            "Processes that run",
            (),
            {(): len(links)},
        )
        restarted = MetricFamily(
            "sharecons_run_restarts_total",
            "counter",
            "Processes that were started again",
            (),
            {(): restarts},
        )
        return [*add_up(families), processes, restarted]

    def _request(self) -> int:
        with self._changed:
            number = next(self._numbers)
            now = self._clock()
            for link in self._links.values():
                link.request(number, now)
        return number

    def _refresh(self) -> None:
        """Request all reports; return once they have responded, or after TIMEOUT."""
        number = self._request()
        with self._changed:
            self._changed.wait_for(
                lambda: not any(
                    link.is_waited_for(number) for link in self._links.values()
                ),
                TIMEOUT,
            )

    def _read(self, link: _Link) -> None:
        """Receive the reports of one process; this is a thread."""
        with suppress(OSError), link.connection.makefile("rb") as lines:
            for line in lines:
                with suppress(ValueError):
                    report = decode_report(line)
                    with self._changed:
                        link.latest = report
                        link.requested_at = None
                        self._changed.notify_all()
        with self._changed:
            link.has_ended = True
            self._changed.notify_all()
