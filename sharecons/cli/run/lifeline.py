"""A socket between a supervisor and each of its processes: their common fate, reports.

The supervisor holds one end; the process has the other end as standard input. The
system closes the supervisor's end when it ends, even by SIGKILL; then the process stops
as after SIGTERM, or exits if its event loop is blocked. The supervisor sends the
numbers of requests, one a line; the process responds with a report, one a line
(`report`). `socketpair` exists on Linux and macOS.
"""

import os
import signal
import socket
import threading
from collections.abc import Callable
from typing import Final, final

from sharecons.log import get_logger
from sharecons.worker.failure_log import LineLimit

__all__ = ["Lifeline", "watch_lifeline"]

STDIN: Final = 0

SEND_TIMEOUT: Final = 2.0
"""Seconds to send a report; the supervisor always reads."""

CHUNK: Final = 65536

Respond = Callable[[int], bytes]
"""Returns the line that responds to the request of this number."""


@final
class Lifeline:
    """The end of the process.

    It has a thread of its own, so that it also responds while a handler blocks the
    event loop.

    Attributes:
        on_lost: is called in this thread when the supervisor has died, before SIGTERM.
    """

    def __init__(self, connection: socket.socket, on_lost: Callable[[], None]) -> None:
        self._connection = connection
        self.on_lost = on_lost
        self._respond: Respond | None = None
        self._lock = threading.Lock()
        self._can_send = True
        self._limit = LineLimit()
        self._log = get_logger(__name__)
        connection.settimeout(SEND_TIMEOUT)

    def report_by(self, respond: Respond) -> None:
        """Send a first report, and respond to requests from now on."""
        self._respond = respond
        self.report()

    def report(self, number: int = 0) -> None:
        """Send a report that responds to a request; 0 is none."""
        if self._respond is None:
            return
        try:
            line = self._respond(number)
        except Exception:  # noqa: BLE001 (the thread must notice the supervisor's end)
            if self._limit.allows(""):
                self._log.exception("a report to the supervisor failed")
            return
        with self._lock:
            if self._can_send:
                try:
                    self._connection.sendall(line)
                except OSError:  # a part was sent, or the supervisor has died
                    self._can_send = False

    def run(self) -> None:
        """Respond until the supervisor dies; then stop this process."""
        received = b""
        while chunk := self._receive():
            *requests, received = (received + chunk).split(b"\n")
            if requests:
                self.report(int(requests[-1]))
        self.on_lost()
        os.kill(os.getpid(), signal.SIGTERM)

    def _receive(self) -> bytes:
        while True:
            try:
                return self._connection.recv(CHUNK)
            except TimeoutError:
                continue
            except OSError:
                return b""


def watch_lifeline(on_lost: Callable[[], None]) -> Lifeline:
    """Stop this process when its supervisor dies.

    Sends SIGTERM to this process, after calling `on_lost`, in a thread. Standard input
    is empty afterwards.
    """
    lifeline = Lifeline(socket.socket(fileno=os.dup(STDIN)), on_lost)
    devnull = os.open(os.devnull, os.O_RDONLY)
    os.dup2(devnull, STDIN)
    os.close(devnull)
    thread = threading.Thread(target=lifeline.run, name="sharecons-lifeline")
    thread.daemon = True
    thread.start()
    return lifeline
