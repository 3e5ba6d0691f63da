"""A worker process that is killed repeatedly at random points."""

import logging
import random
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from sharecons.copies.dead_letter_headers import read_origin
from tests.kafka_plugin import Admin
from tests.scenarios.embedded_admin import ON_ASYNCIO
from tests.scenarios.queue import Queue, unsettled
from tests.scenarios.record_plans import NEVER_DONE, plan_of
from tests.scenarios.share_workers import (
    Position,
    WorkerProcesses,
    all_records,
    wait_until_settled,
)
from tests.scenarios.versions import since_4_2

pytestmark = [pytest.mark.anyio, ON_ASYNCIO, since_4_2]

log = logging.getLogger(__name__)

DELIVERY_LIMIT = 10
"""Kafka's highest. A record is lost to the limit if this many kills in a row hit it."""

DELAY = 0.5
WINDOW = 30
"""The number of records that can wait behind another one; further ones are moved."""

PER_KILL = 150
"""Records that are produced for each kill."""

LIFE = 1.2
"""The maximum of seconds between the first handler of a process and its end."""


class KilledWorker:
    """A worker with retries and dead letters, whose processes follow one another."""

    def __init__(self, admin: Admin, directory: Path) -> None:
        self.admin = admin
        limit = {"share.delivery.count.limit": str(DELIVERY_LIMIT)}
        self.queue = Queue(admin, partitions=2, **limit)
        self.retries = admin.create_topic(partitions=2)
        self.dead_letters = admin.create_topic()
        self.produced = 0
        self.processes = WorkerProcesses(
            self.queue,
            directory,
            member="the-worker",
            concurrency=20,
            plans=True,
            retry_topic=self.retries,
            retry_delay=DELAY,
            dead_letter=self.dead_letters,
            window=WINDOW,
        )

    def produce(self, count: int) -> None:
        first, self.produced = self.produced, self.produced + count
        self.queue.produce([b"%d" % n for n in range(first, self.produced)])

    def run_and_kill(self, chance: random.Random) -> None:
        """Start a process, and kill it while it starts or while it works."""
        process = self.processes.start(backend=chance.choice(["asyncio", "trio"]))
        if chance.random() < 0.1:
            time.sleep(chance.uniform(0.0, 1.0))  # real time: the process starts
        else:
            self.processes.wait_for("start", 1)
            time.sleep(chance.uniform(0.0, LIFE) ** 2)  # real time: it works
        process.kill()
        process.wait()

    def unfinished(self) -> set[int]:
        """Return the numbers of records whose handlers must still return."""
        expected = {n for n in range(self.produced) if plan_of(n) not in NEVER_DONE}
        return expected - {each.number for each in self.processes.of_kind("end")}

    async def finish(self) -> None:
        """Start a process that handles the remaining records, and stop it.

        It has records of its own: without any, it would be stopped before it can
        receive a signal.
        """
        left = self.unfinished()
        log.info("%d records left by the killed processes", len(left))
        self.produce(PER_KILL)
        process = self.processes.start()
        what = f"the handlers of {self.produced} records done"
        self.processes.wait_until(
            lambda: not self.unfinished(), within=90, what=what, pause=0.1
        )
        # The other records become dead letters.
        partitions = {self.queue.topic: 2, self.retries: 2}
        await wait_until_settled(self.admin, self.queue.group, partitions)
        self.processes.stop(process, within=15.0)


async def check_ends(worker: KilledWorker) -> None:
    """Check that every record is done or a dead letter, and none is left."""
    topics = (worker.queue.topic, worker.retries)
    assert [] == await unsettled(worker.admin, worker.queue.group, *topics)
    letters = await all_records(worker.admin, worker.dead_letters)
    assert len(letters) < 2000
    for letter in letters:
        origin = read_origin(letter.headers)
        assert origin is not None
        assert (worker.queue.topic, worker.queue.group) == (origin.topic, origin.group)
    done = {entry.number for entry in worker.processes.of_kind("end")}
    dead = {int(letter.value) for letter in letters}
    never = {n for n in range(worker.produced) if plan_of(n) in NEVER_DONE}
    assert {*range(worker.produced)} - never == done
    assert never == dead


def check_repeats(worker: KilledWorker) -> int:
    """Check that every repeat is recognisable; return how many deliveries are repeats.

    A record that one process has received, and another one receives again, has a higher
    delivery count. A copy of it in the retry topic names it as its origin.
    """
    counts: defaultdict[Position, dict[int, int]] = defaultdict(dict)
    origins: dict[int, set[Position]] = defaultdict(set)
    repeats = 0
    for entry in worker.processes.of_kind("start"):
        deliveries = counts[entry.at]
        before = [count for run, count in deliveries.items() if run < entry.run]
        if before:
            assert entry.delivery_count > max(before) >= 1, entry
            repeats += entry.run not in deliveries
        first = deliveries.setdefault(entry.run, entry.delivery_count)
        assert entry.delivery_count == first, "retries in place use no delivery"
        assert entry.delivery_count <= DELIVERY_LIMIT
        assert entry.origin.topic == worker.queue.topic
        origins[entry.number].add(entry.origin)
    assert all(len(each) == 1 for each in origins.values())
    return repeats


async def kill_often(worker: KilledWorker, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    try:
        for _ in range(kills):
            worker.produce(PER_KILL)
            worker.run_and_kill(chance)
        await worker.finish()
    finally:
        worker.processes.kill_all()
    await check_ends(worker)
    repeats = check_repeats(worker)
    log.info("%d kills, %d records, %d repeated", kills, worker.produced, repeats)
    assert repeats > kills


@pytest.fixture
def worker(admin: Admin, tmp_path: Path) -> Iterator[KilledWorker]:
    worker = KilledWorker(admin, tmp_path)
    yield worker
    worker.processes.kill_all()


@pytest.mark.slow("starts seven processes")
async def test_worker_killed_six_times_loses_no_record(worker: KilledWorker) -> None:
    await kill_often(worker, 6, seed=1)


@pytest.mark.thorough
@pytest.mark.slow("starts a hundred processes")
@pytest.mark.timeout(900)
async def test_worker_killed_a_hundred_times_loses_no_record(
    worker: KilledWorker,
) -> None:
    await kill_often(worker, 100, seed=2)
