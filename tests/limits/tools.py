"""Every tool that reads the cluster, measured while the members are idle."""

import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple
from urllib.request import urlopen

import psutil

from sharecons.testing.kafka.cleanup import CleanupProcess
from tests.bench.processes import ProgramError, run_program, running_program
from tests.limits.command import RUNS
from tests.limits.figures import Figure
from tests.limits.scenes import Scene
from tests.limits.traffic import Traffic

__all__ = ["DEAD_LETTERS", "Tools"]

DEAD_LETTERS: Final = "letters"
COMMAND_TIMEOUT: Final = 300.0

COLLECTIONS: Final = 2
"""Collections that are measured."""

STEP: Final = 0.005

INTERVAL: Final = 2.0
"""Seconds between two of them."""

RARELY: Final = 600.0
"""The interval while pages are measured."""

PAGES: Final = 3
"""Loads of each page; the figure is their average."""


class Page(NamedTuple):
    """A page of a server, and text that it has once the server has read the cluster."""

    server: str
    path: str
    has: bytes = b"group-0"


SERVED: Final = (
    Page("exporter", "/metrics"),
    Page("dashboard", "/"),
    Page("dashboard", "/group?id=group-0"),
)


def _commands(scene: Scene) -> Mapping[str, list[str]]:
    """Return the arguments of each command, by its name in tables."""
    group, topic = scene.newcomer.group, scene.newcomer.topics[0]
    topics = [f"{name}:{count}" for name, count in scene.topics.items()]
    return {
        "preflight": ["preflight"],
        "create-topics, which exist": ["create-topics", *topics],
        "groups list --state": ["groups", "list", "--state"],
        "groups describe GROUP": ["groups", "describe", group],
        "groups describe --all-groups": ["groups", "describe", "--all-groups"],
        "groups configure GROUP": ["groups", "configure", group],
        "groups inspect GROUP": ["groups", "inspect", group],
        "peek TOPIC": ["peek", topic, "--max", "20"],
        "dead-letters list": ["dead-letters", "list", DEAD_LETTERS],
        "dead-letters redrive --dry-run": [
            *["dead-letters", "redrive", DEAD_LETTERS, "--dry-run"]
        ],
    }


class Tools:
    """Measures the tools beside one broker.

    Args:
        bootstrap: a proxy that only tools use.
        traffic: of this proxy.
    """

    def __init__(
        self, bootstrap: str, traffic: Traffic, cleanup: CleanupProcess, scratch: Path
    ) -> None:
        self._bootstrap = bootstrap
        self._traffic = traffic
        self._cleanup = cleanup
        self._scratch = scratch

    def measure(self, scene: Scene) -> Iterator[Figure]:
        """Yield the figures of all tools."""
        for name, arguments in _commands(scene).items():
            yield from self._command(name, arguments)
        for server in dict.fromkeys(page.server for page in SERVED):
            yield from self._collections(server)
            yield from self._pages(server)

    def _command(self, name: str, arguments: list[str]) -> Iterator[Figure]:
        before, file = self._traffic.copy(), self._scratch / "command.json"
        run_program(
            [
                *[sys.executable, "-m", "tests.limits.command", str(file)],
                *[*arguments, "--bootstrap-server", self._bootstrap],
            ],
            self._cleanup,
            COMMAND_TIMEOUT,
        )
        passed, result = self._traffic.since(before), json.loads(file.read_text())
        if result["code"] not in (0, 1):
            raise ProgramError(f"{name} ended with {result['code']}")
        yield Figure(name, "requests", passed.total / RUNS)
        yield Figure(name, "kB", passed.kilobytes / RUNS)
        yield Figure(name, "CPU ms", result["cpu"] * 1000)
        yield Figure(name, "s", result["seconds"])

    def _collections(self, server: str) -> Iterator[Figure]:
        """Yield the figures of one collection, which ends as the next one begins."""
        with self._serving(server, INTERVAL) as (process, address):
            for page in SERVED:
                if page.server == server:
                    _load_until(address + page.path, page.has)
            self._wait_for_collection()
            before, cpu = self._traffic.copy(), _cpu(process)
            for _ in range(COLLECTIONS):
                self._wait_for_collection()
            passed, used = self._traffic.since(before), _cpu(process) - cpu
        count = COLLECTIONS
        name = f"{server}, a collection"
        yield Figure(name, "requests", passed.total / count)
        yield Figure(name, "kB", passed.kilobytes / count)
        yield Figure(name, "CPU ms", used * 1000 / count)

    def _wait_for_collection(self) -> None:
        """Wait until the next collection begins: it lists the groups."""
        begun = self._traffic.requests["ListGroups"]
        while self._traffic.requests["ListGroups"] == begun:
            time.sleep(STEP)

    def _pages(self, server: str) -> Iterator[Figure]:
        with self._serving(server, RARELY) as (process, address):
            for page in SERVED:
                if page.server != server:
                    continue
                _load_until(address + page.path, page.has)
                began, cpu = time.perf_counter(), _cpu(process)
                sizes = [len(_load(address + page.path)) for _ in range(PAGES)]
                name = f"{server}, page {page.path}"
                used, taken = _cpu(process) - cpu, time.perf_counter() - began
                yield Figure(name, "kB", sizes[-1] / 1000)
                yield Figure(name, "CPU ms", used * 1000 / PAGES)
                yield Figure(name, "s", taken / PAGES)

    @contextmanager
    def _serving(
        self, server: str, interval: float
    ) -> Iterator[tuple[psutil.Process, str]]:
        command = [
            *[sys.executable, "-m", "sharecons", server, "--port", "0"],
            *["--interval", str(interval), "--bootstrap-server", self._bootstrap],
        ]
        with running_program(command, self._cleanup) as process:
            assert process.stdout is not None
            line = process.stdout.readline()  # "metrics: http://127.0.0.1:1234/metrics"
            address = line.split()[-1].removesuffix("metrics").rstrip("/")
            yield psutil.Process(process.pid), address


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def _load(address: str) -> bytes:
    with urlopen(address, timeout=COMMAND_TIMEOUT) as response:
        content: bytes = response.read()
        return content


def _load_until(address: str, has: bytes) -> None:
    """Load a page until it has a text.

    Raises:
        ProgramError: it has not within COMMAND_TIMEOUT.
    """
    deadline = time.monotonic() + COMMAND_TIMEOUT
    while has not in _loaded(address):
        if time.monotonic() > deadline:
            raise ProgramError(f"{address} has no {has.decode()}")
        time.sleep(0.2)


def _loaded(address: str) -> bytes:
    try:
        return _load(address)
    except OSError:  # 404 before the first collection
        return b""
