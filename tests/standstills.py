"""Make the standstills of a group, and return what each outlet shows of them.

    python -m tests.standstills kafka
    python -m tests.standstills embedded
    python -m tests.standstills embedded --pictures DIRECTORY

SHARECONS_TEST_KAFKA_VERSION is the version of the real Kafka. It prints a table in
Markdown; names of standstills as further arguments choose some. Pictures are of the
group's page of the dashboard, by Playwright and Chromium.
tests/scenarios/test_standstills.py compares the rows with docs/stuck.md.
"""

import argparse
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
from tests.standstill_pages import Pages, dashboard
from tests.waiting import until_true

__all__ = ["CASES", "Case", "Cluster", "Row", "measure", "started"]

WATCH: Final = 4.0
"""Seconds for which a standstill lasts at least before the outlets are read."""

LOCK: Final = {"share.record.lock.duration.ms": "2000"}
SHOWN: Final = ("stalled", "missing_topic", "lag_records", "oldest_unsettled")
SKIPS: Final = "the group starts at the end"
"""The begin of an INFO line that is shown as well."""

NO_PAGE: Final = "-"

APP: Final = """
import os

import anyio

from sharecons import HealthPolicy, RetryPolicy, ShareWorker

async def handle(record):
    pass

async def hang(record):
    await anyio.sleep_forever()

async def hang_first(record):
    if record.offset == 0:
        await anyio.sleep_forever()

async def fail(record):
    raise ValueError

def make_worker(handler=handle, **options):
    return ShareWorker(
        "TOPIC", handler, group_id="GROUP", bootstrap_servers=os.environ["APP_SERVERS"],
        health=HealthPolicy(topics_missing_after=2.0), **options)

def make_worker_that_fails():
    retry = RetryPolicy(max_attempts=2, initial=45.0, maximum=45.0, jitter=0.0)
    return make_worker(fail, retry=retry, max_held_bytes=150_000)
"""


class Case(NamedTuple):
    """A standstill.

    Attributes:
        name: as in docs/stuck.md.
        make: makes the topic and the group.
        noticed: the begin of /readyz once the worker has noticed it.
        target, options: of `sharecons run`; a consumer holds the records without.
    """

    name: str
    make: Callable[[Admin], Queue]
    noticed: str = NO_PAGE
    target: str | None = None
    options: tuple[str, ...] = ()


class Row(NamedTuple):
    """The texts of the outlets about a standstill; `check` is the exit code.

    `dashboard` is the page of the group; overview and workers are its other pages.
    """

    name: str
    inspect: str
    check: str
    readyz: str
    exporter: str
    log: str
    dashboard: str
    overview: str
    workers: str


def queue_of(
    admin: Admin, count: int = 20, config: Mapping[str, str] | None = None
) -> Queue:
    settings: dict[str, Any] = {**LOCK, **(config or {})}
    queue = Queue(admin, **settings)
    queue.produce([b"x"] * count, batch_num_messages=10)
    return queue


def hot_keys(admin: Admin) -> Queue:
    """Twelve keys, each with a full window behind its first record."""
    queue = Queue(admin, 12, 1, **LOCK)
    for partition in range(12):
        key = b"%d" % partition
        queue.produce([b"x"] * 2000, partition=partition, keys=[key] * 2000)
    return queue


def full_memory(admin: Admin) -> Queue:
    queue = queue_of(admin, 0)
    queue.produce([bytes(10_000)] * 20, batch_num_messages=1)
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
TWO: Final = ("--concurrency", "2")
KEYS: Final = ("--key-order", "--concurrency", "50")
CASES: Final = (
    Case("all handlers hang", queue_of, "busy-handlers:", "app:hang", TWO),
    Case("held by a consumer", queue_of),
    Case("hot keys", hot_keys, "hot-key:", "app:hang", KEYS),
    Case("full memory", full_memory, "full-memory:", "app:make_worker_that_fails"),
    Case(
        "full window",
        full_window,
        "held-window:",
        "app:hang_first",
        ("--window-held-after", "2"),
    ),
    Case("missing topic", missing_topic, "missing-topics:", "app:make_worker"),
    Case("no permission", forbidden, "disconnected:", "app:handle"),
    Case("group at the end", at_the_end, "ok", "app:handle", KEEP),
    Case("aborted tail", aborted_tail, "ok", "app:handle"),
    Case("brokers down", queue_of, "disconnected:", "app:hang"),
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


async def exported(
    cluster: Cluster, group: str, is_noticed: Callable[[], bool]
) -> dict[str, float]:
    """Collect once a second until `is_noticed`; return metrics that show a problem."""
    async with ShareGroupAdmin(
        bootstrap_servers=cluster.bootstrap_servers, timeout=5
    ) as admin:
        collector, metrics = Collector(admin, [group]), Metrics()
        with anyio.fail_after(90):
            while not await anyio.to_thread.run_sync(is_noticed):
                metrics.update(await collector.collect())
                await anyio.to_thread.run_sync(wait_a_second)
        metrics.update(await collector.collect())
    found = {} if metrics.reached else {"up": 0.0}
    for metric in metrics.collect():
        name = metric.name.removeprefix("kafka_share_group_")
        for sample in metric.samples:
            if name.startswith(SHOWN) and sample.value:
                text = f"{name} {sample.labels.get('reason', '')}".rstrip()
                found[text] = max(found.get(text, 0.0), sample.value)
    return found


def wait_a_second() -> None:
    end = time.monotonic() + 1.0
    until_true(lambda: time.monotonic() >= end, pause=0.25)


def logged(command: Command) -> str:
    """Return the warnings and errors of a worker, each event once."""
    found: dict[str, str] = {}
    for line in command.stderr.splitlines():
        entry = json.loads(line) if line.startswith("{") else {"event": line}
        event = entry.pop("event")
        shown = entry.get("level") in ("warning", "error", None)
        if shown or event.startswith(SKIPS):
            fields = " ".join(
                f"{key}={value}" for key, value in entry.items() if key not in HIDDEN
            )
            found.setdefault(event, f"{event} {fields}".rstrip())
    return "; ".join(found.values()) or "-"


HIDDEN: Final = ("timestamp", "level", "logger", "group", "process", "exception")


def measure(
    cluster: Cluster, case: Case, directory: Path, pictures: Path | None = None
) -> Row:
    """Make a standstill, and read all outlets while it lasts.

    `pictures` is a directory for the picture of the group's page.
    """
    name = case.name.replace(" ", "-")
    admin = Admin(cluster.bootstrap_servers)
    queue = case.make(admin)

    def look_at(command: Command | None = None) -> Row:
        health = None if command is None else command.health_url()  # type: ignore[no-untyped-call]
        with dashboard(cluster.bootstrap_servers, queue.group, health) as pages:
            row = look(cluster, case, queue, pages, command)
            if pictures is not None:
                pages.save_picture(pictures / f"{name}.png")
        return row

    if case.target is None:
        return held_by_consumer(queue, look_at)
    with running(
        cluster,
        directory / name,
        case.target,
        *(*case.options, "--health-port", "0"),
        app=APP.replace("TOPIC", queue.topic).replace("GROUP", queue.group),
        topic=queue.topic,
        group=queue.group,
    ) as command:
        until_true(lambda: "starting" not in ready(command), pause=0.2)
        return look_at(command)


def look(
    cluster: Cluster, case: Case, queue: Queue, pages: Pages, command: Command | None
) -> Row:
    end = time.monotonic() + WATCH

    def is_noticed() -> bool:
        return time.monotonic() >= end and case.noticed in ready(command)

    if case.name == "brokers down" and command is not None:
        until_true(lambda: "first record received" in command.stderr, pause=0.2)
        cluster.stop_broker(1)
    metrics = anyio.run(exported, cluster, queue.group, is_noticed)
    text, code = inspected(cluster, queue.group)
    values = ", ".join(f"{name}={value:.0f}" for name, value in metrics.items())
    log = "-" if command is None else logged(command)
    return Row(
        *(case.name, text or "-", str(code), ready(command), values or "-", log),
        *pages.read(),
    )


def ready(command: Command | None) -> str:
    """Return the text of /readyz; "starting" before there is one."""
    if command is None:
        return NO_PAGE
    page: tuple[int, str] | None = command.get("/readyz")  # type: ignore[no-untyped-call]
    return "starting" if page is None else " ".join(page[1].split("\n")).strip()


def held_by_consumer(queue: Queue, look: Callable[[], Row]) -> Row:
    async def hold() -> Row:
        async with queue.consumer(acknowledgement="explicit") as consumer:
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:
                    await consumer.assigned()
                    tasks.start_soon(renew, consumer)
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


def main(kind: str, names: list[str], pictures: Path | None) -> None:
    heading = Row(
        *("standstill", "inspect", "--check", "/readyz", "exporter", "log"),
        *("dashboard", "overview", "workers"),
    )
    print(f"| {' | '.join(heading)} |\n{'|---' * len(heading)}|")  # noqa: T201
    with (
        TemporaryDirectory() as directory,
        started(kind) as cluster,
    ):
        for case in CASES:
            if not names or case.name in names:
                row = measure(cluster, case, Path(directory), pictures)
                cells = (each.replace("|", "/") for each in row)
                print(f"| {' | '.join(cells)} |", flush=True)  # noqa: T201


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", nargs="?", default="embedded")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_intermixed_args()
    main(options.kind, options.names, options.pictures)
