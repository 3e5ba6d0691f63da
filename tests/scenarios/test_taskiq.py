"""`taskiq worker` on a share group, on both brokers."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("taskiq", reason="needs sharecons[taskiq]")

from sharecons import ShareGroupAdmin
from sharecons.taskiq import ShareGroupBroker
from tests.complete_lines import complete_lines
from tests.kafka_plugin import Admin
from tests.scenarios.embedded_admin import ON_ASYNCIO
from tests.scenarios.queue import Queue, remaining_records, take
from tests.scenarios.versions import since_4_2
from tests.waiting import until

pytestmark = [
    pytest.mark.anyio,
    ON_ASYNCIO,
    pytest.mark.slow("starts processes"),
    since_4_2,
]

LOCK = 2.0
CONFIG = {
    "share.record.lock.duration.ms": str(round(LOCK * 1000)),
    "share.session.timeout.ms": "6000",
    "share.heartbeat.interval.ms": "2000",
}


@pytest.fixture
def queue(admin: Admin) -> Queue:
    return Queue(admin, partitions=2, **CONFIG)


class Client:
    """Sends the tasks of `taskiq_program`."""

    def __init__(self, queue: Queue) -> None:
        self.broker = ShareGroupBroker(
            queue.topic,
            group_id=queue.group,
            bootstrap_servers=queue.admin.bootstrap_servers,
        )

        @self.broker.task(task_name="work")
        async def work(number: int, seconds: float) -> None: ...

        @self.broker.task(task_name="fail", retry_on_error=True)
        async def fail(number: int) -> None: ...

        @self.broker.task(task_name="crash")
        async def crash(number: int) -> None: ...

        self.work, self.fail, self.crash = work, fail, crash


@pytest.fixture
async def client(queue: Queue) -> AsyncIterator[Client]:
    client = Client(queue)
    await client.broker.startup()
    yield client
    await client.broker.shutdown()


class Workers:
    """Processes of `taskiq worker`, and their log."""

    def __init__(self, queue: Queue, log: Path) -> None:
        self._log = log
        self._environment = {
            **os.environ,
            "BOOTSTRAP": queue.admin.bootstrap_servers,
            "TOPIC": queue.topic,
            "GROUP": queue.group,
            "LOG": str(log),
        }
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self, *options: str) -> subprocess.Popen[bytes]:
        module = "tests.scenarios.taskiq_program:broker"
        command = [sys.executable, "-m", "taskiq", "worker", module, "--workers", "1"]
        process = subprocess.Popen(
            [*command, *options], env=self._environment, start_new_session=True
        )
        self.running.append(process)
        return process

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Send SIGKILL to a supervisor and its worker together."""
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.running.remove(process)

    async def stop(self, process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGTERM)
        await until(lambda: process.poll() is not None, within=30)
        self.running.remove(process)

    def count(self, what: str) -> Counter[int]:
        """Return the number of times that each task has started or ended."""
        words = [line.split() for line in complete_lines(self._log)]
        return Counter(int(number) for kind, number in words if kind == what)

    async def wait_for(self, what: str, count: int, seconds: float = 40) -> None:
        with suppress(TimeoutError):
            await until(lambda: self.count(what).total() >= count, within=seconds)
        assert self.count(what).total() >= count


@pytest.fixture
def workers(queue: Queue, tmp_path: Path) -> Iterator[Workers]:
    workers = Workers(queue, tmp_path / "log")
    yield workers
    for process in list(workers.running):
        workers.kill(process)


async def test_every_task_runs_once_in_two_workers(
    queue: Queue, client: Client, workers: Workers
) -> None:
    processes = [workers.start(), workers.start()]
    for number in range(200):
        await client.work.kiq(number, 0.01)
    await workers.wait_for("end", 200)
    for process in processes:
        await workers.stop(process)

    assert workers.count("start") == Counter(range(200))
    assert await remaining_records(queue) == []


async def test_task_longer_than_its_lock_runs_once(
    queue: Queue, client: Client, workers: Workers
) -> None:
    process = workers.start()
    await client.work.kiq(1, 2.5 * LOCK)
    await workers.wait_for("end", 1)
    await workers.stop(process)

    assert workers.count("start") == {1: 1}
    assert await remaining_records(queue) == []


async def test_failing_task_is_tried_three_times(
    queue: Queue, client: Client, workers: Workers
) -> None:
    process = workers.start()
    await client.fail.kiq(1)
    await workers.wait_for("start", 3)
    await workers.stop(process)

    assert workers.count("start") == {1: 3}
    assert await remaining_records(queue) == []


@pytest.mark.timeout(180)
async def test_tasks_of_a_killed_worker_are_delivered_again(
    queue: Queue, client: Client, workers: Workers
) -> None:
    killed = workers.start()
    for number in range(5):
        await client.work.kiq(number, 60)
    await workers.wait_for("start", 5)
    workers.kill(killed)
    other = workers.start("--wait-tasks-timeout", "0.5")
    await workers.wait_for("start", 10)
    await workers.stop(other)

    assert workers.count("start") == dict.fromkeys(range(5), 2)
    assert workers.count("end") == {}
    async with queue.consumer() as consumer:
        records = await take(aiter(consumer), 5)
    counts: list[Any] = [record.delivery_count for record in records]
    assert counts == [3] * 5


async def test_stopped_worker_releases_what_it_has_not_started(
    queue: Queue, client: Client, workers: Workers
) -> None:
    for number in range(6):
        await client.work.kiq(number, 2)
    process = workers.start("--max-async-tasks", "2", "--max-prefetch", "0")
    await workers.wait_for("start", 2)
    await workers.stop(process)

    done = workers.count("end")
    assert done == workers.count("start")
    assert 2 <= done.total() < 6
    left = await remaining_records(queue)
    assert len(left) == 6 - done.total()
    assert {record.delivery_count for record in left} <= {1, 2}


@pytest.mark.timeout(180)
async def test_task_that_ends_its_process_takes_no_other_with_it_and_no_partition(
    queue: Queue, client: Client, workers: Workers
) -> None:
    members = set()
    for number in range(4):
        await client.work.kiq(number, 0.2)
    await client.crash.kiq(4)
    process = workers.start()

    async with ShareGroupAdmin(
        bootstrap_servers=queue.admin.bootstrap_servers
    ) as admin:
        while workers.count("end").total() < 4 or workers.count("start")[4] < 5:
            members |= await member_ids(admin, queue.group)
            await anyio.sleep(0.2)  # real time: processes start and end
    await workers.stop(process)

    assert workers.count("start")[4] == 5
    assert set(workers.count("end")) == set(range(4))
    assert len(members) == 1, "no former member keeps partitions"
    assert await remaining_records(queue) == []


async def member_ids(admin: ShareGroupAdmin, group: str) -> set[str]:
    described = (await admin.describe_share_groups(group)).found
    return {member.member_id for each in described.values() for member in each.members}
