"""The processes of one client: started, killed, paused, and watched."""

import json
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from sharecons.testing.kafka.cleanup import CleanupProcess
from tests.chaos.clients import Options
from tests.chaos.journal import Entry, read_journal

__all__ = ["Fleet", "running_fleet"]

STOP: Final = 60.0
"""Seconds in which a process leaves its group after SIGTERM."""

SAMPLES: Final = 2.0
"""Seconds between two samples of memory."""


@dataclass
class _Member:
    """One place of a fleet, which a process has at a time.

    Attributes:
        starts: how many processes it has had.
        memory: the resident set of its process, MiB, by CLOCK_MONOTONIC.
    """

    options: Options
    process: subprocess.Popen[bytes]
    journal: Path
    errors: Path
    starts: int
    memory: list[tuple[float, float]]


class Fleet:
    """All processes of one client.

    Attributes:
        name: of the client and its kind.
        killed: when processes were killed, by the names of their journals.
        deaths: the processes that ended by themselves, with their last lines. A
            supervisor starts them again, as it does in production.
        exits: the exit statuses of processes that were stopped, other than 0.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        options: Options,
        directory: Path,
        cleanup: CleanupProcess,
    ) -> None:
        self.name = name
        self.options = options
        self.killed: dict[str, float] = {}
        self._left: set[str] = set()
        self.deaths: list[str] = []
        self.exits: list[str] = []
        self._command = command
        self._directory = directory / name.replace(" ", "-")
        self._directory.mkdir(parents=True)
        self._cleanup = cleanup
        self._members: list[_Member] = []
        self._lock = threading.Lock()

    def start(self, count: int, *, keeps_ids: bool) -> None:
        for number in range(count):
            member = f"{self.name.replace(' ', '-')}-{number}" if keeps_ids else None
            self._members.append(self._launch(number, 0, member))

    def pick(self, number: int) -> int:
        return number % len(self._members)

    def kill(self, place: int) -> None:
        member = self._members[place]
        self.killed.setdefault(member.journal.name, time.monotonic())
        member.process.kill()
        member.process.wait()

    def stop_one(self, place: int) -> None:
        """Stop a process as a deployment does, and wait until it has ended."""
        member = self._members[place]
        self._left.add(member.journal.name)
        member.process.terminate()
        self._wait(member)

    def restart(self, place: int) -> None:
        old = self._members[place]
        if old.process.poll() is None:
            return
        new = self._launch(place, old.starts, old.options.member)
        with self._lock:
            self._members[place] = new

    def pause(self, place: int) -> None:
        self._members[place].process.send_signal(signal.SIGSTOP)

    def resume(self, place: int) -> None:
        self._members[place].process.send_signal(signal.SIGCONT)

    def entries(self) -> Iterator[Entry]:
        for path in sorted(self._directory.glob("journal-*")):
            yield from read_journal(path)

    def log_lines(self) -> int:
        return sum(p.read_bytes().count(b"\n") for p in self._errors())

    def revive(self) -> None:
        """Start the processes again that have ended by themselves."""
        for place, member in enumerate(self._members):
            status = member.process.poll()
            known = member.journal.name in (*self.killed, *self._left)
            if status is not None and not known:
                lines = member.errors.read_text().strip().splitlines()[-1:]
                self.deaths.append(f"{member.journal.name}: {status} {lines}")
                self.killed[member.journal.name] = time.monotonic()
                self.restart(place)

    def sample(self) -> None:
        now = time.monotonic()
        with self._lock:
            members = list(self._members)
        for member in members:
            try:
                status = Path(f"/proc/{member.process.pid}/statm").read_text()
            except OSError:
                continue
            member.memory.append((now, int(status.split()[1]) * 4096 / (1 << 20)))

    def growth(self) -> float:
        """Return the most MiB by which a process has grown since its first 30 s."""
        grown = [0.0]
        for member in self._members:
            if not member.memory:
                continue
            first = member.memory[0][0] + 30.0
            early = [size for at, size in member.memory if at <= first]
            grown.append(max(size for _, size in member.memory) - max(early))
        return max(grown)

    def stop(self) -> None:
        """Stop all processes together; each leaves its group."""
        for member in self._members:
            self._left.add(member.journal.name)
            member.process.send_signal(signal.SIGCONT)
            if member.process.poll() is None:
                member.process.terminate()
        for member in self._members:
            self._wait(member)

    def destroy(self) -> None:
        for member in self._members:
            member.process.kill()
            member.process.wait()

    def _wait(self, member: _Member) -> None:
        try:
            status = member.process.wait(STOP)
        except subprocess.TimeoutExpired:
            member.process.send_signal(signal.SIGABRT)  # it prints its stacks
            member.process.wait()
            self.exits.append(f"{member.journal.name} did not end in {STOP:g} s")
        else:
            if status and member.journal.name not in self.killed:
                self.exits.append(f"{member.journal.name} ended with {status}")

    def _launch(self, place: int, starts: int, member_id: str | None) -> _Member:
        journal = self._directory / f"journal-{place}-{starts}"
        errors = self._directory / f"errors-{place}-{starts}"
        options = replace(self.options, journal=str(journal), member=member_id)
        with errors.open("wb") as stderr:
            process = subprocess.Popen(
                [*self._command, json.dumps(asdict(options))],
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                start_new_session=True,
            )
        self._cleanup.kill(process.pid)
        return _Member(options, process, journal, errors, starts + 1, [])

    def _errors(self) -> list[Path]:
        return sorted(self._directory.glob("errors-*"))


@contextmanager
def running_fleet(fleets: Sequence[Fleet]) -> Iterator[None]:
    """Sample the memory of all fleets during the block, and end their processes."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(SAMPLES):
            for fleet in fleets:
                fleet.sample()
                fleet.revive()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        for fleet in fleets:
            fleet.destroy()
