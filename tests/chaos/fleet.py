"""The processes of one client: started, killed, paused, and watched."""

import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from sharecons.testing.kafka.cleanup import CleanupProcess
from tests.chaos.clients import Options
from tests.chaos.clients.crashing import EXIT
from tests.chaos.clocks import ProcessClock
from tests.chaos.journal import Entry, JournalTail, read_journal

__all__ = ["Death", "Fleet", "last_error", "running_fleet"]

STOP: Final = 60.0
"""Seconds in which a process leaves its group after SIGTERM."""

SAMPLES: Final = 2.0
"""Seconds between two samples of memory."""

STATUSES: Final[Mapping[str, int]] = {
    "exit": EXIT,
    "segfault": -signal.SIGSEGV,
    "kill": -signal.SIGKILL,
}
"""How a process ends, by the plan of the record that ends it."""

FULL: Final = ("MemoryError", "Py4J")
"""In the log of a process whose memory was full, or whose JVM was killed."""

TRACEBACK: Final = re.compile(r"^(?:Traceback|  \+ Exception Group Traceback)", re.M)
"""The begin of a traceback that is not part of another one."""


@dataclass(frozen=True)
class Death:
    """The end of a process that no record has planned.

    Attributes:
        status: negative for a signal.
        error: the last traceback of its log; without one, the last line.
    """

    name: str
    status: int
    error: str

    def __str__(self) -> str:
        lines = [line.strip(" |") for line in self.error.splitlines()]
        text = [line for line in lines if line.strip("+-")]  # no ends of groups
        return f"{self.name}: {self.status} {text[-1:]}"


def last_error(log: str) -> str:
    """Return the last traceback of a log, whole; without one, its last line."""
    found = [match.start() for match in TRACEBACK.finditer(log)]
    return log[found[-1] :] if found else "".join(log.splitlines()[-1:])


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
        crashed: when processes ended by themselves, in the same way. A supervisor
            starts them again, as it does in production.
        deaths: ends that no record has planned.
        exits: the exit statuses of processes that were stopped, other than 0.

    Args:
        clock_library: libfaketime, with which the clocks of processes jump; None for
            the clocks of the machine.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        options: Options,
        directory: Path,
        cleanup: CleanupProcess,
        clock_library: Path | None = None,
    ) -> None:
        self.name = name
        self.options = options
        self.killed: dict[str, float] = {}
        self.crashed: dict[str, float] = {}
        self._left: set[str] = set()
        self.deaths: list[Death] = []
        self.exits: list[str] = []
        self._command = command
        self._directory = directory / name.replace(" ", "-")
        self._directory.mkdir(parents=True)
        self._cleanup = cleanup
        self._clock_library = clock_library
        self._clocks: list[ProcessClock] = []
        self._members: list[_Member] = []
        self._tails: dict[Path, JournalTail] = {}
        self._lock = threading.Lock()
        self._changing = threading.RLock()

    def start(self, count: int, *, keeps_ids: bool) -> None:
        for number in range(count):
            self._add_clock(number, has_monotonic=number == count - 1)
            member = f"{self.name.replace(' ', '-')}-{number}" if keeps_ids else None
            self._members.append(self._launch(number, 0, member))

    def pick(self, number: int) -> int:
        return number % len(self._members)

    def kill(self, place: int) -> None:
        member = self._members[place]
        self._note_end(member)
        self.killed.setdefault(member.journal.name, time.monotonic())
        _signal(member, signal.SIGKILL)
        member.process.wait()

    def stop_one(self, place: int) -> None:
        """Stop a process as a deployment does, and wait until it has ended."""
        member = self._members[place]
        self._note_end(member)
        self._left.add(member.journal.name)
        member.process.terminate()
        self._wait(member)

    def restart(self, place: int) -> None:
        with self._changing:
            old = self._members[place]
            if old.process.poll() is None:
                return
            _signal(old, signal.SIGKILL)  # what it has started
            self._cleanup.spare(old.process.pid)
            new = self._launch(place, old.starts, old.options.member)
            with self._lock:
                self._members[place] = new

    def set_wall_clock(self, number: int, seconds: int) -> None:
        """Set the wall clock of one process ahead by seconds, which can be negative."""
        clocks = [clock for clock in self._clocks if not clock.has_monotonic]
        if clocks:
            clocks[number % len(clocks)].set(seconds)

    def advance_monotonic_clock(self, seconds: int) -> None:
        """Let CLOCK_MONOTONIC of the last process jump, and its wall clock."""
        for clock in self._clocks[-1:]:
            clock.set(clock.offset + seconds)

    def pause(self, place: int) -> None:
        _signal(self._members[place], signal.SIGSTOP)

    def resume(self, place: int) -> None:
        _signal(self._members[place], signal.SIGCONT)

    def entries(self) -> Iterator[Entry]:
        for path in sorted(self._directory.glob("journal-*")):
            yield from read_journal(path)

    def new_entries(self) -> Iterator[Entry]:
        """Yield the entries since the last call: of a long run, not all at a time."""
        for path in sorted(self._directory.glob("journal-*")):
            yield from self._tails.setdefault(path, JournalTail(path)).read()

    def journal(self, place: int) -> Path:
        return self._members[place].journal

    def errors(self, place: int) -> Path:
        """Return the file of what a process has logged."""
        return self._members[place].errors

    def log_lines(self) -> int:
        return sum(p.read_bytes().count(b"\n") for p in self._errors())

    def revive(self) -> None:
        """Start the processes again that have ended by themselves."""
        for place, member in enumerate(self._members):
            with self._changing:
                if self._note_end(member):
                    self.restart(place)

    def _note_end(self, member: _Member) -> bool:
        """Record the end of a process by itself; return whether this is new."""
        name, status = member.journal.name, member.process.poll()
        known = {*self.killed, *self.crashed, *self._left}
        if status is None or name in known:
            return False
        self._note_crash(member)
        if not self._is_planned(member, status):
            log = member.errors.read_text(errors="replace").strip()
            self.deaths.append(Death(name, status, last_error(log)))
        return True

    def _note_crash(self, member: _Member) -> None:
        """Record the time of the last line of a process that has ended.

        Its end is noticed later, perhaps after another process has its records.
        """
        last = max(read_journal(member.journal), default=None)
        self.crashed[member.journal.name] = last.seconds if last else time.monotonic()

    def _is_planned(self, member: _Member, status: int) -> bool:
        """Return whether a record has ended the process, in the way of its plan."""
        plans = {e.error for e in read_journal(member.journal) if e.kind == "crashes"}
        if status in {STATUSES[plan] for plan in plans & STATUSES.keys()}:
            return True
        text = member.errors.read_text(errors="replace")
        return "memory" in plans and any(word in text for word in FULL)

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
            _signal(member, signal.SIGCONT)
            if member.process.poll() is None:
                member.process.terminate()
        for member in self._members:
            self._wait(member)

    def destroy(self) -> None:
        for member in self._members:
            _signal(member, signal.SIGKILL)
            member.process.wait()

    def _wait(self, member: _Member) -> None:
        try:
            status = member.process.wait(STOP)
        except subprocess.TimeoutExpired:
            member.process.send_signal(signal.SIGABRT)  # it prints its stacks
            member.process.wait()
            self.exits.append(f"{member.journal.name} did not end in {STOP:g} s")
        else:
            name = member.journal.name
            if status and name not in {*self.killed, *self.crashed}:
                self._note_crash(member)
                if not (self._is_planned(member, status) or _is_early(member, status)):
                    self.exits.append(f"{name} ended with {status}")

    def _add_clock(self, place: int, *, has_monotonic: bool) -> None:
        if self._clock_library is not None:
            file = self._directory / f"clock-{place}"
            clock = ProcessClock(self._clock_library, file, has_monotonic=has_monotonic)
            self._clocks.append(clock)

    def _launch(self, place: int, starts: int, member_id: str | None) -> _Member:
        journal = self._directory / f"journal-{place}-{starts}"
        errors = self._directory / f"errors-{place}-{starts}"
        options = replace(self.options, journal=str(journal), member=member_id)
        environment = dict(os.environ)
        if self._clocks:
            environment |= self._clocks[place].environment
        with errors.open("wb") as stderr:
            process = subprocess.Popen(
                [*self._command, json.dumps(asdict(options))],
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                start_new_session=True,
                env=environment,
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


def _is_early(member: _Member, status: int) -> bool:
    """Return whether SIGTERM has ended a process before it could handle signals."""
    kinds = {entry.kind for entry in read_journal(member.journal)}
    return status == -signal.SIGTERM and not kinds


def _signal(member: _Member, number: int) -> None:
    """Send a signal to a process and to what it has started, such as a JVM."""
    with suppress(ProcessLookupError):
        os.killpg(member.process.pid, number)
