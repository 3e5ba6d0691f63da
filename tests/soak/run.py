"""One run: a cluster, two groups, kills, and the results."""

import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException

from sharecons.testing.kafka.cleanup import CleanupProcess
from tests.chaos.clients import Options
from tests.chaos.cluster import Cluster, running_cluster
from tests.chaos.fleet import Fleet, running_fleet
from tests.chaos.journal import Entry
from tests.chaos.producing import PacedProducer
from tests.soak.books import Books
from tests.soak.client import is_plain, samples_path
from tests.soak.dead_letters import DeadLetters
from tests.soak.minutes import Deliveries, split
from tests.soak.results import (
    GroupResult,
    RunOptions,
    RunResult,
    new_group_result,
    series,
)
from tests.soak.sample import read_samples
from tests.soak.schedule import Kill, plan_kills
from tests.waiting import until_true

__all__ = ["run_once"]

COMMAND: Final = (sys.executable, "-m", "tests.soak.client")
KINDS: Final = {"consumer": "loop", "worker": "worker"}
"""The way to consume, by the name of the group."""

MEASURED: Final = 0
KILLED: Final = 1
"""The places of the two processes in each fleet."""

HANDLER: Final = 0.001
"""Seconds: a loop can handle several times its rate, so that it catches up."""

BLOCK: Final = 60.0
"""Seconds of records in a block of the ledger."""

JOIN: Final = 90.0
SETTLE: Final = 150.0
LATE: Final = 8.0
"""Seconds until all have joined, until all is settled, and for late redeliveries."""


class Group:
    """A group with two processes, its producer and its ledger.

    Attributes:
        fleet: its processes.
        producer: writes its records.
        books: its ledger.
    """

    def __init__(
        self,
        name: str,
        options: RunOptions,
        cluster: Cluster,
        directory: Path,
        cleanup: CleanupProcess,
    ) -> None:
        self.name = name
        self.topic = f"{name}-orders"
        cluster.create_topics(self.topic, name)
        servers = cluster.kafka.bootstrap_servers  # no proxies
        program = Options(
            servers=servers,
            topic=self.topic,
            group=name,
            client_id=name,
            kind=KINDS[name],
            seconds=HANDLER,
            retry_topic=f"{self.topic}.retry",
            dead_letter=f"{self.topic}.dead",
            interval=options.interval,
        )
        self.fleet = Fleet(name, COMMAND, program, directory, cleanup)
        self.producer = PacedProducer(servers, self.topic, options.rate)
        self._letters = DeadLetters(servers, program.dead_letter)
        self._is_plain = is_plain if program.kind == "worker" else lambda _: True
        self.books = Books(
            int(options.rate * BLOCK),
            written=self.producer.written,
            confirmed=self.producer.confirmed,
            dead=self._letters.numbers,
            killed=self.fleet.killed,
            is_plain=self._is_plain,
        )
        self._deliveries = Deliveries()
        self._lines: list[tuple[float, int]] = []

    def has_joined(self) -> bool:
        """Return whether both processes have joined and have records."""
        journals = {self.fleet.journal(place).name for place in (MEASURED, KILLED)}
        handled = (e for e in self.fleet.entries() if e.kind == "handled")
        return journals <= {each.process for each in handled}

    def read(self) -> None:
        """Read the new lines of journals, logs and dead letters."""
        with suppress(KafkaException):  # a broker is down: the next call reads them
            self._letters.read()
        measured = self.fleet.journal(MEASURED).name
        entries = list(self.fleet.new_entries())
        for entry in entries:
            if entry.kind == "handled" and entry.process == measured:
                self._deliveries.add(entry.seconds, self._latency(entry))
        now = time.monotonic()
        self.books.add(entries)
        self.books.close(now)
        log = self.fleet.errors(MEASURED).read_bytes()
        self._lines.append((now, log.count(b"\n")))

    def _latency(self, entry: Entry) -> float | None:
        written = self.producer.written.get(entry.number)
        if written is None or not self._is_plain(entry.number):
            return None
        return entry.seconds - written

    def result(self, kills: Sequence[float], begin: float, end: float) -> GroupResult:
        """Return the result, after the processes have stopped."""
        interval = self.fleet.options.interval
        self.books.close_all()
        self._letters.close()
        samples = list(read_samples(samples_path(self.fleet.journal(MEASURED))))
        minutes = split(
            self._deliveries, kills, begin=begin, end=end, interval=interval
        )
        problems = [*map(str, self.fleet.deaths), *self.fleet.exits]
        return new_group_result(
            self.name,
            self.books.total,
            problems,
            self.producer.unconfirmed,
            series(samples, minutes, self._lines, begin=begin, end=end),
            samples,
            seconds=end - begin,
            begin=begin,
        )


class Run:
    """The groups, and the kills that were carried out."""

    def __init__(
        self, options: RunOptions, cluster: Cluster, groups: Sequence[Group]
    ) -> None:
        self._options = options
        self._cluster = cluster
        self._groups = groups
        self._kills: list[tuple[str, float]] = []
        self._errors: list[str] = []

    def run(self) -> RunResult:
        """Run until the end of the time, or until Ctrl-C."""
        for group in self._groups:
            group.fleet.start(2, keeps_ids=False)
            group.producer.start()
        for group in self._groups:
            until_true(group.has_joined, JOIN, what=f"{group.name} receives records")
        begin = time.monotonic()
        with suppress(KeyboardInterrupt):
            self._drive(begin)
        end = time.monotonic()
        for group in self._groups:
            group.producer.stop()
        self._settle()
        for group in self._groups:
            group.fleet.stop()
        self._read()
        times = [at for _, at in self._kills]
        return RunResult(
            self._options,
            end - begin,
            [(role, at - begin) for role, at in self._kills],
            self._errors,
            [group.result(times, begin, end) for group in self._groups],
        )

    def _drive(self, begin: float) -> None:
        """Read once in an interval, and carry out the kills."""
        kills = plan_kills(self._options.seconds)
        end = begin + self._options.seconds
        while (now := time.monotonic()) < end:
            if kills and begin + kills[0].at <= now:
                self._kill(kills.pop(0))
                continue
            self._read()
            next_kill = begin + kills[0].at if kills else end
            wake = min(end, next_kill, now + self._options.interval)
            time.sleep(max(0.0, wake - time.monotonic()))  # real time: the run lasts

    def _read(self) -> None:
        for group in self._groups:
            group.read()

    def _kill(self, kill: Kill) -> None:
        self._kills.append((kill.role, time.monotonic()))
        try:
            if kill.role == "member":
                self._kill_members(kill.down)
            else:
                self._kill_broker(kill)
        except Exception as error:
            self._errors.append(f"{kill}: {type(error).__name__}: {error}")

    def _kill_members(self, down: float) -> None:
        for group in self._groups:
            group.fleet.kill(KILLED)
        time.sleep(down)  # real time: the others take over
        for group in self._groups:
            group.fleet.restart(KILLED)

    def _kill_broker(self, kill: Kill) -> None:
        group = self._groups[kill.turn % len(self._groups)]
        kafka = self._cluster.kafka
        node_id = self._cluster.broker(kill.role, group.topic, group.name, kill.turn)
        kafka.kill(node_id)
        time.sleep(kill.down)  # real time: the others take over
        kafka.start_broker(node_id)

    def _settle(self) -> None:
        """Wait until each record has its end, and for redeliveries that come late."""
        deadline = time.monotonic() + SETTLE
        self._read()
        while time.monotonic() < deadline and any(g.books.open for g in self._groups):
            time.sleep(2.0)  # real time: other processes work
            self._read()
        time.sleep(LATE)  # real time: a wrong redelivery would come late


def run_once(options: RunOptions, directory: Path) -> RunResult:
    """Run once; the directory then has journals, logs and samples of all processes."""
    with running_cluster(options.version) as cluster:
        cleanup = CleanupProcess()
        try:
            groups = [
                Group(name, options, cluster, directory, cleanup) for name in KINDS
            ]
            with running_fleet([group.fleet for group in groups]):
                return Run(options, cluster, groups).run()
        finally:
            cleanup.close()
