"""A worker process under load receives SIGTERM."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kafka_plugin import Admin
from tests.scenarios.embedded_admin import ON_ASYNCIO
from tests.scenarios.queue import Queue, remaining_records
from tests.scenarios.share_workers import Position, WorkerProcesses
from tests.scenarios.versions import since_4_2

pytestmark = [
    pytest.mark.anyio,
    ON_ASYNCIO,
    pytest.mark.slow("starts a process"),
    since_4_2,
]

RECORDS = 3000
PARTITIONS = 3


@pytest.fixture
def queue(admin: Admin) -> Queue:
    queue = Queue(admin, partitions=PARTITIONS)
    for partition in range(PARTITIONS):
        mine = range(partition, RECORDS, PARTITIONS)
        queue.produce([b"%d" % number for number in mine], partition=partition)
    return queue


@pytest.fixture
def workers(queue: Queue, tmp_path: Path) -> Iterator[WorkerProcesses]:
    workers = WorkerProcesses(queue, tmp_path)
    yield workers
    workers.kill_all()


def positions(entries: list[Any]) -> list[Position]:
    return sorted(entry.at for entry in entries)


def where(record: Any) -> Position:
    return Position(record.topic, record.partition, record.offset)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
async def test_sigterm_under_load_wastes_no_delivery(
    queue: Queue, workers: WorkerProcesses, backend: str
) -> None:
    process = workers.start(backend=backend, concurrency=40, seconds=0.02)
    workers.wait_for("end", RECORDS // 4)
    workers.stop(process, within=8.0)

    ended = positions(workers.of_kind("end"))
    assert positions(workers.of_kind("start")) == ended
    assert positions(workers.of_kind("accepted")) == ended
    assert len(ended) == len({*ended}) < RECORDS
    left = await remaining_records(queue)
    assert {1} == {record.delivery_count for record in left}
    assert sorted([*ended, *map(where, left)]) == [
        Position(queue.topic, partition, offset)
        for partition in range(PARTITIONS)
        for offset in range(RECORDS // PARTITIONS)
    ]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
async def test_sigterm_cancels_handlers_that_exceed_the_grace_period(
    queue: Queue, workers: WorkerProcesses, backend: str
) -> None:
    grace = 1.0
    process = workers.start(
        backend=backend, concurrency=40, seconds=30.0, shutdown_grace=grace
    )
    workers.wait_for("start", 40)
    began = time.monotonic()
    workers.stop(process, within=grace + 7.0)
    took = time.monotonic() - began

    assert grace <= took
    started = {*positions(workers.of_kind("start"))}
    assert [] == workers.of_kind("end") == workers.of_kind("accepted")
    left = await remaining_records(queue)
    assert RECORDS == len(left)
    counts = {where(record): record.delivery_count for record in left}
    assert {2} == {counts[each] for each in started}
