"""The processes of members: started, measured, and their events."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import psutil

from sharecons.testing.kafka.cleanup import CleanupProcess
from tests.limits.scenes import Seat

__all__ = ["TIMEOUT", "Members", "Usage", "running_members", "usage_of"]

TIMEOUT: Final = 60.0
"""Seconds in which members join, leave, or have their partitions."""

STEP: Final = 0.01
MIB: Final = 1 << 20

Event = dict[str, Any]
Usage = tuple[float, float]
"""Seconds of CPU since the start, and resident MiB."""


def usage_of(processes: Sequence[psutil.Process]) -> Usage:
    """Return the CPU and the memory of processes together."""
    times = [each.cpu_times() for each in processes]
    memory = sum(each.memory_info().rss for each in processes)
    return sum(each.user + each.system for each in times), memory / MIB


class Members:
    """Processes with some members each, in the order of their seats.

    Attributes:
        count: of members.
        base: MiB of the processes together, before they had members.
        events: by the numbers of members, in the order of arrival.
    """

    def __init__(
        self, processes: Sequence[subprocess.Popen[str]], first: Sequence[int]
    ) -> None:
        self.processes = [psutil.Process(each.pid) for each in processes]
        self.base = 0.0
        self.events: list[Event] = []
        self.failed = ""
        self._pipes = list(processes)
        self._first = first
        self._threads = [
            threading.Thread(target=self._read, args=each, daemon=True)
            for each in zip(processes, first, strict=True)
        ]
        for thread in self._threads:
            thread.start()

    def send(self, command: str) -> None:
        """Send a line to all processes."""
        for place in range(len(self._pipes)):
            self._send(place, command)

    def leave(self, member: int) -> None:
        """Close one member."""
        place = max(at for at, first in enumerate(self._first) if first <= member)
        self._send(place, f"leave {member - self._first[place]}")

    def usage(self) -> Usage:
        return usage_of(self.processes)

    def received(self) -> int:
        """Return the number of records that all members have received."""
        earlier = len(self.of("received"))
        self.send("received")
        wanted = earlier + len(self._pipes)
        self.wait(lambda: len(self.of("received")) == wanted, "counts")
        return sum(event["count"] for event in self.of("received")[earlier:])

    def of(self, name: str) -> list[Event]:
        return [event for event in self.events if event["event"] == name]

    def wait(self, is_done: Callable[[], bool], what: str) -> None:
        """Wait for events.

        Raises:
            RuntimeError: they have not arrived in TIMEOUT, or a process has ended.
        """
        deadline = time.monotonic() + TIMEOUT
        while not is_done():
            if time.monotonic() > deadline or self.failed:
                raise RuntimeError(f"no {what} in {TIMEOUT:g} s; {self.failed}")
            time.sleep(STEP)

    def join(self) -> None:
        """Wait until all events of processes that have ended are read."""
        for thread in self._threads:
            thread.join(TIMEOUT)

    def _send(self, place: int, command: str) -> None:
        pipe = self._pipes[place].stdin
        assert pipe is not None
        pipe.write(f"{command}\n")
        pipe.flush()

    def _read(self, process: subprocess.Popen[str], first: int) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "ready":
                self.base += event["memory"] / MIB
            if "member" in event:
                event["member"] += first
            self.events.append(event)
        if process.wait():
            self.failed = f"a process of members ended with {process.returncode}"


@contextmanager
def running_members(
    bootstrap: str,
    seats: Sequence[Seat],
    per_process: int,
    cleanup: CleanupProcess,
) -> Iterator[Members]:
    """Run members during the block; at its end they leave their groups."""
    firsts = range(0, len(seats), per_process)
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                _process(bootstrap, seats[first : first + per_process], cleanup)
            )
            for first in firsts
        ]
        yield Members(processes, firsts)


@contextmanager
def _process(
    bootstrap: str, seats: Sequence[Seat], cleanup: CleanupProcess
) -> Iterator[subprocess.Popen[str]]:
    options = json.dumps({"bootstrap": bootstrap, "seats": seats})
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.limits.member", options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    cleanup.kill(process.pid)
    try:
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()  # they leave
        try:
            process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        cleanup.spare(process.pid)
