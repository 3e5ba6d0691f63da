"""One run: a cluster, clients, faults, and the verdict of each client."""

import math
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from sharecons.testing.kafka.cleanup import CleanupProcess
from tests.bench.roster import build_go
from tests.chaos.clients import Options
from tests.chaos.cluster import Cluster, running_cluster
from tests.chaos.evidence import Evidence
from tests.chaos.faults import Faults
from tests.chaos.fleet import Death, Fleet, running_fleet
from tests.chaos.histories import NEWEST, History
from tests.chaos.ledger import Verdict
from tests.chaos.plan import Fault, kinds_of, plan_faults
from tests.chaos.producing import PacedProducer, number_value, task_value
from tests.chaos.redriving import Redriver

__all__ = [
    "CLIENTS",
    "ClientResult",
    "RunOptions",
    "RunResult",
    "is_denied",
    "run_once",
]

JOIN: Final = 180.0
SETTLE: Final = 150.0
"""Seconds without progress after the last record: session timeouts, locks, retries and
starts end in less. Records that end their process take several starts each."""

SETTLE_PEERS: Final = 90.0
"""The same, once only peers have unsettled records: a session timeout and a lock."""

DENIALS: Final = (
    "AuthorizationError",
    # Certificates and passwords that stay wrong; a supervisor starts it again.
    "AuthenticationError",
)

LATE: Final = 8.0
"""Seconds for records that come once more."""

RECORD_LOCKS: Final = {"share.partition.max.record.locks": "200"}
"""Of groups with a retry topic, so that some waits do not fit in place."""

CLIENTS: Final = ("sharecons", "confluent", "franz")
PROGRAMS: Final = ("taskiq", "spark")
"""Kinds of sharecons that have a program of their own."""

FRANZ: Final = Path(__file__).parent / "clients" / "franz"


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of a run.

    Attributes:
        rate: records per second and client.
        processes: of each client; a Spark query is one.
        peers: clients that run beside sharecons; none in a run with TLS.
        is_secure: brokers have TLS and SCRAM, if the history allows it.
        library: libfaketime, with which clocks jump, or None.
        only: the kinds of faults; empty for all that are possible.
    """

    seed: int
    seconds: float
    history: History
    rate: float = 150.0
    processes: int = 3
    peers: Sequence[str] = CLIENTS[1:]
    is_secure: bool = False
    library: Path | None = None
    only: Sequence[str] = ()

    @property
    def has_tls(self) -> bool:
        return self.is_secure and self.history.allows_tls

    @property
    def clock_library(self) -> Path | None:
        """Clocks jump in runs without peers, whose clocks do not jump.

        A jump delays records for as long as they are locked, and so all figures.
        """
        has_clocks = self.history.allows_clocks and (self.has_tls or not self.peers)
        return self.library if has_clocks else None

    @property
    def kinds(self) -> Sequence[str]:
        """The kinds of the run's faults."""
        possible = kinds_of(
            has_tls=self.has_tls, has_clocks=self.clock_library is not None
        )
        return [kind for kind in possible if not self.only or kind in self.only]

    @property
    def upgrades(self) -> bool:
        """True if the run begins with an upgrade of the brokers."""
        return self.history.version != NEWEST


@dataclass(frozen=True)
class ClientResult:
    """The records of one client, and its processes; see `Verdict`.

    Attributes:
        problems: processes that died or did not stop, and unconfirmed records.
        memory: the most MiB by which a process grew.
        lines: log lines per minute, of all processes.
    """

    name: str
    verdict: Verdict
    problems: list[str]
    memory: float
    lines: float


@dataclass(frozen=True)
class RunResult:
    options: RunOptions
    faults: list[tuple[Fault, float, float]]
    clients: list[ClientResult]
    errors: list[str]

    @property
    def is_good(self) -> bool:
        client = self.clients[0]
        verdict = client.verdict
        bad = verdict.lost or verdict.unexplained or verdict.broken or client.problems
        return not bad and not self.errors


@dataclass(frozen=True)
class _Client:
    """One client, and what writes its records."""

    fleet: Fleet
    producer: PacedProducer
    evidence: Evidence


def run_once(options: RunOptions, directory: Path) -> RunResult:
    """Run one history; the directory then has journals and logs of all processes."""
    plan = plan_faults(
        options.seed, options.seconds, options.kinds, upgrades=options.upgrades
    )
    lines = [str(options.history), *map(str, plan)]
    (directory / "plan.txt").write_text("".join(f"{line}\n" for line in lines))
    secrets = directory.absolute() / "secrets" if options.has_tls else None
    with running_cluster(options.history.version, secrets=secrets) as cluster:
        cleanup = CleanupProcess()
        try:
            return _run(options, plan, cluster, cleanup, directory)
        finally:
            cleanup.close()


def _run(
    options: RunOptions,
    plan: Sequence[Fault],
    cluster: Cluster,
    cleanup: CleanupProcess,
    directory: Path,
) -> RunResult:
    fleets = [
        _prepare(options, name, cluster, cleanup, directory)
        for name in ("sharecons", *(() if options.has_tls else options.peers))
    ]
    producers = [_new_producer(options, fleet, cluster) for fleet in fleets]
    faults = Faults(cluster, fleets, producers)
    clients = [
        _Client(fleet, producer, Evidence(cluster, fleet, producer, faults))
        for fleet, producer in zip(fleets, producers, strict=True)
    ]
    redriver = _new_redriver(options, fleets[0], cluster, cleanup, directory)
    with running_fleet(fleets):
        for fleet in fleets:
            is_own = fleet is fleets[0]
            keeps_ids = is_own and options.history.keeps_ids
            fleet.start(_processes(options, fleet), keeps_ids=keeps_ids)
        for producer in producers:
            producer.start()
        _wait_until(lambda: all(_is_joined(f, options) for f in fleets), JOIN)
        if redriver is not None:
            redriver.start()
        began = time.monotonic()
        _carry_out(plan, faults, began)
        rest = began + options.seconds - time.monotonic()
        time.sleep(max(0.0, rest))  # real time: the end of the run, without faults
        cluster.heal()
        ended = time.monotonic()
        for producer in producers:
            producer.stop()
        _settle(clients, redriver)
        for fleet in fleets:
            fleet.stop()
    minutes = (time.monotonic() - began) / 60
    times = [(first, last) for _, first, last in faults.happened]
    results = [_result(each, times, began, ended, minutes) for each in clients]
    if redriver is not None:
        results[0].problems.extend(redriver.problems)
        results[0].verdict.notes.append(
            f"{redriver.runs} redrives, {redriver.ended} of them killed or interrupted"
        )
    return RunResult(options, faults.happened, results, faults.errors)


def _settle(clients: Sequence[_Client], redriver: Redriver | None) -> None:
    """Wait until all records have an end, and for records that come once more."""
    if redriver is not None:
        redriver.stop()
    fewest, since, patience = math.inf, time.monotonic(), SETTLE
    while fewest and time.monotonic() < since + patience:
        time.sleep(1.0)  # real time: other processes work
        with suppress(OSError):
            # A record that was redriven can be a dead letter again; -1 is a failure.
            redriven = abs(redriver.redrive()) if redriver is not None else 0
            own, *others = (len(each.evidence.unsettled()) for each in clients)
            left = redriven + own + sum(others)
            patience = SETTLE if own or redriven else SETTLE_PEERS
            if left < fewest:
                fewest, since = left, time.monotonic()
    time.sleep(LATE)  # real time: a wrong redelivery would come late


def _result(
    client: _Client,
    times: Sequence[tuple[float, float]],
    began: float,
    ended: float,
    minutes: float,
) -> ClientResult:
    fleet = client.fleet
    deaths = [each for each in fleet.deaths if not is_denied(each)]
    return ClientResult(
        fleet.name,
        client.evidence.verdict(times, began, ended),
        [*map(str, deaths), *fleet.exits],
        fleet.growth(),
        fleet.log_lines() / minutes,
    )


def is_denied(death: Death) -> bool:
    """Return whether a process ended as documented: by an exception with the reason."""
    return death.status == 1 and any(reason in death.error for reason in DENIALS)


def _carry_out(plan: Sequence[Fault], faults: Faults, began: float) -> None:
    """Carry out all faults; one that begins while another lasts has a thread."""
    with ExitStack() as stack:
        for fault in plan:
            wait = began + fault.at - time.monotonic()
            time.sleep(max(0.0, wait))  # real time: the plan's
            stack.callback(faults.start(fault).join)


def _prepare(
    options: RunOptions,
    name: str,
    cluster: Cluster,
    cleanup: CleanupProcess,
    directory: Path,
) -> Fleet:
    topic, group = f"{name}-orders", f"{name}-group"
    cluster.create_topics(topic, group)
    program = Options(servers=cluster.servers, topic=topic, group=group, client_id=name)
    if name == CLIENTS[0]:
        history = options.history
        if history.has_retry_topic:
            cluster.admin.set_group_config(group, RECORD_LOCKS)
        program = replace(
            program,
            kind=history.handler,
            plans=history.plans,
            retry_topic=f"{topic}.retry" if history.has_retry_topic else "",
            dead_letter=f"{topic}.dead" if history.has_dead_letters else "",
            secrets=_secrets_of(cluster),
        )
    command = _command(name, program.kind, directory)
    library = options.clock_library if name == CLIENTS[0] else None
    return Fleet(name, command, program, directory, cleanup, library)


def _secrets_of(cluster: Cluster) -> str:
    certificates = cluster.certificates
    return "" if certificates is None else str(certificates.ca_file.parent)


def _command(name: str, kind: str, directory: Path) -> list[str]:
    if name == "franz":
        return [str(build_go(FRANZ, directory / "franz-program"))]
    module = kind if kind in PROGRAMS else name
    return [sys.executable, "-m", "tests.chaos.clients", module]


def _processes(options: RunOptions, fleet: Fleet) -> int:
    return 1 if fleet.options.kind == "spark" else options.processes


def _new_producer(options: RunOptions, fleet: Fleet, cluster: Cluster) -> PacedProducer:
    value = task_value if fleet.options.kind == "taskiq" else number_value
    servers = cluster.kafka.bootstrap_servers
    return PacedProducer(servers, fleet.options.topic, options.rate, value)


def _new_redriver(
    options: RunOptions,
    fleet: Fleet,
    cluster: Cluster,
    cleanup: CleanupProcess,
    directory: Path,
) -> Redriver | None:
    if options.history.kind != "redrive":
        return None
    dead, seed = fleet.options.dead_letter, options.seed
    return Redriver(cluster.servers, dead, directory, cleanup, seed)


def _is_joined(fleet: Fleet, options: RunOptions) -> bool:
    """Return whether every process has received records."""
    handled = {e.process for e in fleet.entries() if e.kind == "handled"}
    return len(handled) >= _processes(options, fleet)


def _wait_until(condition: Callable[[], Any], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(OSError):
            if condition():
                return True
        time.sleep(1.0)  # real time: other processes work
    return False
