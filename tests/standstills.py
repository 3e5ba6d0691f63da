"""Make the standstills of a group, and print what each outlet says about them.

    python -m tests.standstills kafka
    python -m tests.standstills embedded

SHARECONS_TEST_KAFKA_VERSION is the version of the real Kafka. It prints a table in
Markdown. Locks last five seconds; each standstill is watched for longer than that.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import anyio

from sharecons import Record, ShareConsumer, ShareGroupAdmin
from sharecons.exporter import Collector
from sharecons.exporter.metrics import Metrics
from sharecons.testing import EmbeddedBroker
from sharecons.testing.kafka import KafkaCluster
from sharecons.testing.kafka.settings import TEST_SETTINGS
from tests.cli.run.running import Command, running
from tests.kafka_plugin import KEEPING, VERSION, Admin
from tests.scenarios.queue import Queue
from tests.waiting import until_true

WATCH: Final = 7.0
"""Seconds for which a standstill lasts before the outlets are read."""

LOCK: Final = {"share.record.lock.duration.ms": "5000"}
SHOWN: Final = ("stalled", "missing_topic", "lag_records", "oldest_unsettled")

APP: Final = """
import anyio

async def handle(record):
    pass

async def hang(record):
    await anyio.sleep_forever()

async def hang_first(record):
    if record.offset == 0:
        await anyio.sleep_forever()
"""


class Case(NamedTuple):
    """A standstill: how it is made, with the options of a worker, if it has one."""

    name: str
    make: Callable[[Admin], Queue]
    target: str | None = None
    options: tuple[str, ...] = ()


def watch() -> None:
    """Wait until a lock has ended, and a worker has looked at it."""
    end = time.monotonic() + WATCH
    until_true(lambda: time.monotonic() >= end, pause=0.5)


def queue_of(
    admin: Admin, count: int = 20, config: Mapping[str, str] | None = None
) -> Queue:
    settings: dict[str, Any] = {**LOCK, **(config or {})}
    queue = Queue(admin, **settings)
    queue.produce([b"x"] * count, batch_num_messages=10)
    return queue


def hot_key(admin: Admin) -> Queue:
    queue = queue_of(admin, 0)
    queue.produce([b"x"] * 20, keys=[b"one"] * 20)
    return queue


def full_window(admin: Admin) -> Queue:
    return queue_of(admin, 300, {"share.partition.max.record.locks": "100"})


def missing_topic(admin: Admin) -> Queue:
    queue = queue_of(admin)
    admin.delete_topic(queue.topic)
    return queue


def forbidden(admin: Admin) -> Queue:
    queue = queue_of(admin)
    admin.hide_records(queue.topic)
    return queue


def at_the_end(admin: Admin) -> Queue:
    return queue_of(admin, config={"share.auto.offset.reset": "latest"})


def aborted_tail(admin: Admin) -> Queue:
    queue = queue_of(admin, 0, {"share.isolation.level": "read_committed"})
    producer = admin.producer(transactional_id=queue.topic)
    producer.init_transactions()
    for commits in (True, False):
        producer.begin_transaction()
        producer.produce(queue.topic, b"x")
        producer.flush()
        producer.commit_transaction() if commits else producer.abort_transaction()
    return queue


KEEP: Final = ("--auto-offset-reset", "none")
CASES: Final = (
    Case("all handlers hang", queue_of, "app:hang", ("--concurrency", "2")),
    Case("held by a consumer", queue_of),
    Case("hot key", hot_key, "app:hang", ("--key-order", "--concurrency", "2")),
    Case("window full", full_window, "app:hang_first"),
    Case("topic missing", missing_topic, "app:handle"),
    Case("no permission to read", forbidden, "app:handle"),
    Case("group at latest", at_the_end, "app:handle", KEEP),
    Case("aborted tail", aborted_tail, "app:handle"),
    Case("brokers down", queue_of, "app:hang"),
)


class Cluster(NamedTuple):
    """The brokers under test."""

    bootstrap_servers: str
    stop_broker: Callable[[int], None]


@contextmanager
def started(kind: str) -> Iterator[Cluster]:
    if kind == "kafka":
        with KafkaCluster(VERSION, config=KEEPING) as kafka:
            yield Cluster(kafka.bootstrap_servers, kafka.stop_broker)
    else:
        with EmbeddedBroker(settings=TEST_SETTINGS) as embedded:
            yield Cluster(embedded.bootstrap_servers, embedded.stop_broker)


def inspected(cluster: Cluster, group: str) -> tuple[str, int]:
    """Return the findings of `groups inspect`, and the exit code of `--check`."""
    command = [sys.executable, "-m", "sharecons", "groups", "inspect", group, "--check"]
    command += ["--timeout", "5000", "--bootstrap-server", cluster.bootstrap_servers]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    names = ("NOTE: ", "WARNING: ", "STALLED: ")
    lines = [
        line
        for line in done.stdout.splitlines()
        if any(f": {name}" in line for name in names)
    ]
    return "; ".join([*lines, *done.stderr.splitlines()]), done.returncode


async def exported(cluster: Cluster, group: str, collected: list[str]) -> None:
    """Collect for longer than a lock lasts; append the metrics that show a problem."""
    async with ShareGroupAdmin(cluster.bootstrap_servers, timeout=5) as admin:
        collector, metrics = Collector(admin, [group]), Metrics()
        metrics.update(await collector.collect())
        await anyio.to_thread.run_sync(watch)
        metrics.update(await collector.collect())
    if not metrics.reached:
        collected.append("up 0")
    for metric in metrics.collect():
        name = metric.name.removeprefix("kafka_share_group_")
        for sample in metric.samples:
            if name.startswith(SHOWN) and sample.value:
                reason = sample.labels.get("reason", "")
                collected.append(f"{name} {reason} {sample.value:.0f}")


def logged(command: Command) -> str:
    """Return the warnings and errors of a worker, each once."""
    found: dict[str, None] = {}
    for line in command.stderr.splitlines():
        event = json.loads(line) if line.startswith("{") else {"event": line}
        if event.get("level") in ("warning", "error", None):
            rest = {k: v for k, v in event.items() if k in ("error", "reason", "code")}
            found[" ".join(map(str, (event["event"], *rest.values())))] = None
    return "; ".join(found) or "-"


def measure(cluster: Cluster, case: Case, directory: Path) -> list[str]:
    admin = Admin(cluster.bootstrap_servers)
    queue = case.make(admin)
    code = None
    metrics: list[str] = []

    def look() -> list[str]:
        if case.name == "brokers down":
            cluster.stop_broker(1)
            watch()
        nonlocal code
        anyio.run(exported, cluster, queue.group, metrics)
        text, code = inspected(cluster, queue.group)
        return [case.name, text or "-", str(code)]

    if case.target is None:
        return [*held_by_consumer(queue, look), "-", ", ".join(metrics) or "-", "-"]
    options = (*case.options, "--health-port", "0")
    place = directory / case.name.replace(" ", "-")
    with running(
        cluster,
        place,
        case.target,
        *options,
        app=APP,
        topic=queue.topic,
        group=queue.group,
    ) as command:
        watch()
        row = look()
        page = command.get("/readyz")
        ready = "no health port" if page is None else " ".join(page[1].split("\n"))
        return [*row, ready, ", ".join(metrics) or "-", logged(command)]


def held_by_consumer(queue: Queue, look: Callable[[], list[str]]) -> list[str]:
    async def hold() -> list[str]:
        async with queue.consumer(acknowledgement="explicit") as consumer:
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(renew, consumer)
                    await anyio.to_thread.run_sync(watch)
                    row = await anyio.to_thread.run_sync(look)
                    scope.cancel()
        return row

    async def renew(consumer: ShareConsumer[Any, Any]) -> None:
        held: list[Record[Any, Any]] = []
        while True:
            held += await consumer.poll(timeout=1.0)
            for each in held:
                each.renew()

    return anyio.run(hold)


def main(kind: str, names: list[str]) -> None:
    heading = ("standstill", "inspect", "check", "/readyz", "exporter", "log")
    print(f"| {' | '.join(heading)} |\n{'|---' * len(heading)}|")  # noqa: T201
    with TemporaryDirectory() as directory, started(kind) as cluster:
        for case in CASES:
            if not names or case.name in names:
                row = measure(cluster, case, Path(directory))
                cells = (each.replace("|", "/") for each in row)
                print(f"| {' | '.join(cells)} |", flush=True)  # noqa: T201


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    main(sys.argv[1] if len(sys.argv) > 1 else "embedded", sys.argv[2:])
