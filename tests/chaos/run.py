"""One run: a cluster, clients, faults, and the verdict of each client."""

import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, TopicPartition

from sharecons.testing.kafka.cleanup import CleanupProcess
from tests.bench.roster import build_go
from tests.chaos.clients import Options
from tests.chaos.clients.plans import plan_of
from tests.chaos.cluster import Cluster, running_cluster
from tests.chaos.faults import NEWEST, Faults
from tests.chaos.fleet import Fleet, running_fleet
from tests.chaos.ledger import Ledger, Verdict
from tests.chaos.plan import Fault, plan_faults
from tests.chaos.producing import PacedProducer

__all__ = ["CLIENTS", "KINDS", "ClientResult", "RunOptions", "RunResult", "run_once"]

KINDS: Final = ("loop", "explicit", "worker", "threads", "batches", "keys")

PARTITIONS: Final = 6
JOIN: Final = 60.0
SETTLE: Final = 150.0
"""Seconds after the last record: session timeouts, locks and retries end in less."""

LATE: Final = 8.0
"""Seconds for records that come once more."""

CLIENTS: Final = ("sharecons", "confluent", "franz")
FRANZ: Final = Path(__file__).parent / "clients" / "franz"


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of a run.

    Attributes:
        rate: records per second and client.
        peers: clients that run beside sharecons.
        keeps_ids: members of sharecons keep their ids when they are started again.
    """

    seed: int
    seconds: float
    kind: str
    keeps_ids: bool
    rate: float = 150.0
    processes: int = 3
    peers: Sequence[str] = CLIENTS[1:]
    version: str = "4.4.0"

    @property
    def upgrades(self) -> bool:
        """True if the run begins with an upgrade of the brokers."""
        return self.version != NEWEST


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
        bad = verdict.lost or verdict.unexplained or client.problems
        return not bad and not self.errors


def run_once(options: RunOptions, directory: Path) -> RunResult:
    """Run one history; the directory then has journals and logs of all processes."""
    plan = plan_faults(options.seed, options.seconds, upgrades=options.upgrades)
    (directory / "plan.txt").write_text("".join(f"{fault}\n" for fault in plan))
    with running_cluster(options.version) as cluster:
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
        for name in ("sharecons", *options.peers)
    ]
    servers = cluster.kafka.bootstrap_servers
    producers = [
        PacedProducer(servers, fleet.options.topic, options.rate) for fleet in fleets
    ]
    faults = Faults(cluster, fleets)
    with running_fleet(fleets):
        for fleet, keeps in zip(fleets, _keeps_ids(options), strict=True):
            fleet.start(options.processes, keeps_ids=keeps)
        for producer in producers:
            producer.start()
        _wait_until(lambda: all(_is_joined(f, options) for f in fleets), JOIN)
        began = time.monotonic()
        _carry_out(plan, faults, began)
        rest = began + options.seconds - time.monotonic()
        time.sleep(max(0.0, rest))  # real time: the end of the run, without faults
        cluster.heal()
        ended = time.monotonic()
        for producer in producers:
            producer.stop()
        pairs = list(zip(fleets, producers, strict=True))
        _wait_until(lambda: not any(_unsettled(cluster, *p) for p in pairs), SETTLE)
        time.sleep(LATE)  # real time: a wrong redelivery would come late
        for fleet in fleets:
            fleet.stop()
    minutes = (time.monotonic() - began) / 60
    times = [(first, last) for _, first, last in faults.happened]
    clients = []
    for fleet, producer in pairs:
        deaths = [each for each in fleet.deaths if not _is_denied(each)]
        problems = [*deaths, *fleet.exits]
        verdict = _ledger(cluster, fleet, producer).verdict(times, began, ended)
        clients.append(
            ClientResult(
                fleet.name,
                verdict,
                problems,
                fleet.growth(),
                fleet.log_lines() / minutes,
            )
        )
    return RunResult(options, faults.happened, clients, faults.errors)


def _is_denied(death: str) -> bool:
    """Return whether a process ended since its topic was denied, as documented."""
    return "AuthorizationError" in death


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
    cluster.admin.create_topic(PARTITIONS, topic, replication=3)
    for copies in ("dead", "retry"):
        cluster.admin.create_topic(2, f"{topic}.{copies}", replication=3)
    cluster.admin.set_group_config(group, {"share.auto.offset.reset": "earliest"})
    program = Options(
        servers=cluster.servers,
        topic=topic,
        group=group,
        client_id=name,
        kind=options.kind,
        retry_topic=f"{topic}.retry" if _has_retries(options) else "",
        dead_letter=f"{topic}.dead",
    )
    return Fleet(name, _command(name, directory), program, directory, cleanup)


def _command(name: str, directory: Path) -> list[str]:
    if name == "franz":
        return [str(build_go(FRANZ, directory / "franz-program"))]
    return [sys.executable, "-m", f"tests.chaos.clients.{name}"]


def _has_retries(options: RunOptions) -> bool:
    return options.kind != "keys" and options.seed % 2 == 0


def _keeps_ids(options: RunOptions) -> list[bool]:
    return [options.keeps_ids, *(False for _ in options.peers)]


def _is_joined(fleet: Fleet, options: RunOptions) -> bool:
    """Return whether every process has received records."""
    handled = {e.process for e in fleet.entries() if e.kind == "handled"}
    return len(handled) == options.processes


def _unsettled(cluster: Cluster, fleet: Fleet, producer: PacedProducer) -> int:
    return len(_ledger(cluster, fleet, producer).unsettled())


def _ledger(cluster: Cluster, fleet: Fleet, producer: PacedProducer) -> Ledger:
    return Ledger(
        producer.confirmed,
        fleet.entries(),
        _dead_letters(cluster, fleet.options.dead_letter),
        fleet.killed,
        is_plain=lambda number: plan_of(number) == "succeed",
        has_results=fleet.name == "sharecons",
    )


def _dead_letters(cluster: Cluster, topic: str) -> set[int]:
    """Return the numbers in a dead-letter topic."""
    consumer: Any = Consumer(
        {
            "bootstrap.servers": cluster.kafka.bootstrap_servers,
            "group.id": "reader",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": False,
        }
    )
    numbers = set()
    try:
        ends = {}
        for partition in range(2):
            where = TopicPartition(topic, partition)
            ends[partition] = consumer.get_watermark_offsets(where, timeout=20)[1]
        consumer.assign([TopicPartition(topic, p, 0) for p in ends])
        left = sum(ends.values())
        deadline = time.monotonic() + 20
        while left and time.monotonic() < deadline:
            message = consumer.poll(1.0)
            if message is not None and not message.error():
                numbers.add(int(message.value()))
                left -= 1
    finally:
        consumer.close()
    return numbers


def _wait_until(condition: Any, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(OSError):
            if condition():
                return True
        time.sleep(1.0)  # real time: other processes work
    return False
