"""Killed drivers and brokers: each record is in the output exactly once.

SHARECONS_SPARK_RECORDS  the number of records; 300,000 take twenty minutes. With it,
                         each test runs on both Kafkas; without it, all take a minute
SHARECONS_SPARK_KILLS    the number of killed drivers
SHARECONS_SPARK_SEED     the seed for the points and times of kills
SHARECONS_SPARK_MASTER   local[2,4] by default; local-cluster[2,1,1024] has executors in
                         processes of their own, and needs SPARK_SCALA_VERSION=2.13
"""

import os
import random
import signal
import sys
import threading
import time
import uuid
from collections import Counter
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

pytest.importorskip("pyspark", reason="needs sharecons[spark]")

from sharecons import ShareConsumer
from sharecons.spark.store import Store
from tests.kafka_plugin import HALVES
from tests.spark.background import Background, BrokerRestarter
from tests.spark.driver_process import DriverProcess
from tests.spark.faults import POINTS
from tests.spark.spark_session import committed_rows
from tests.waiting import until_true

pytestmark = [
    pytest.mark.slow("drivers are killed and started again", seconds=120),
    pytest.mark.timeout(3600),
    pytest.mark.filterwarnings("ignore"),
]

LONG = "SHARECONS_SPARK_RECORDS" in os.environ
RECORDS = int(os.environ.get("SHARECONS_SPARK_RECORDS", "12000"))
# Kills: at a point, after a time, or of the JVM.
KILL_MODES = (*POINTS, "time", "jvm")
KILLS = int(os.environ.get("SHARECONS_SPARK_KILLS", 2 * len(KILL_MODES) if LONG else 2))
MASTER = os.environ.get("SHARECONS_SPARK_MASTER", "local[2,4]")
SEED = int(os.environ.get("SHARECONS_SPARK_SEED", "1"))

PARTS = 6 if LONG else 3  # of the records that are produced during one program
PRODUCE_INTERVAL = 1.0  # seconds; without it all parts would be one fetch

AVAILABLE_NOW = {"trigger": {"availableNow": True}}


class Scene:
    """A new topic and group, and a query that is started again and again."""

    def __init__(self, kafka, base, *, replication=1, batches=KILLS * PARTS):
        self.kafka, self.base = kafka, Path(base)
        self.max_offsets = RECORDS // batches + 1
        self.group = f"spark-{uuid.uuid4().hex[:8]}"
        self.topic = kafka.admin.create_topic(partitions=3, replication=replication)
        # With the default of 5, a few of 300,000 records are archived: the drivers and
        # the other member have released them five times.
        limit = {"share.delivery.count.limit": 10}
        kafka.admin.set_group_config(
            self.group, {"share.auto.offset.reset": "earliest"} | limit
        )
        self.programs = []

    def program(self, **more):
        """Start a program; Spark starts, and the query waits for `start_query`."""
        faults = {key: more.pop(key) for key in ("kill_at", "chance") if key in more}
        config = {
            "master": MASTER,
            "servers": self.kafka.bootstrap_servers,
            "topic": self.topic,
            "group": self.group,
            "base": str(self.base),
            "options": {
                "maxOffsetsPerTrigger": str(self.max_offsets),
                "minPartitions": "4",
                # The query must end because it has reached its target.
                "idleTimeout": "60s",
            },
            "trigger": {"processingTime": "50 milliseconds"},
        }
        self.programs.append(DriverProcess(config | more, **faults))
        return self.programs[-1]

    def finish(self, program):
        """Run a program to the end, and return all rows of the query."""
        program.start_query()
        if not program.finish():
            # A worker has ten seconds to start, which is too short on a slow machine.
            assert "Python worker failed to connect back" in program.output()
            return self.finish(self.program(**AVAILABLE_NOW))
        return committed_rows(self.base / "out")

    def acquired(self):
        """Return how many offsets the query has acquired, according to its ledger."""
        store = Store(str(self.base / "ledger"))
        try:
            return store.open(self.group).end
        finally:
            store.close()

    def close(self):
        for program in self.programs:
            program.kill()


@pytest.fixture
def scene(request, tmp_path):
    scenes = []

    def make(kafka, **more):
        scenes.append(Scene(kafka, tmp_path, **more))
        return scenes[-1]

    yield make
    for one in scenes:
        one.close()


class Producer(Background):
    """Produces numbered records, each once; `write` produces the next part."""

    def __init__(self, scene, parts):
        self.parts = parts
        self.due = threading.Semaphore(0)
        super().__init__(scene)

    def write(self, parts=1):
        if parts:
            self.due.release(parts)

    def work(self):
        for number in range(self.parts):
            self.due.acquire()
            first, last = (RECORDS * n // self.parts for n in (number, number + 1))
            values = [b"%d" % value for value in range(first, last)]
            self.scene.kafka.admin.produce(
                self.scene.topic, values, enable_idempotence=True
            )


class OtherMember(Background):
    """Another member of the group, which joins and leaves repeatedly."""

    def __init__(self, scene):
        self.values = Counter()
        super().__init__(scene)

    def work(self):
        while not self.over.wait(2):
            anyio.run(self.consume, 4)

    async def consume(self, seconds):
        async with ShareConsumer(
            self.scene.topic,
            group_id=self.scene.group,
            bootstrap_servers=self.scene.kafka.bootstrap_servers,
            max_records=20,
        ) as consumer:
            with anyio.move_on_after(seconds):
                async for record in consumer:
                    self.values[int(record.value)] += 1
                    await anyio.sleep(0.002)  # real time: beside real queries


def kill_plan(chance):
    """Yield how each program is killed."""
    modes = list(KILL_MODES)
    chance.shuffle(modes)
    for number in range(KILLS):
        point = modes[number % len(modes)]
        yield f"{point}:{chance.randint(1, 3)}" if point in POINTS else point


def run_until_killed(program, mode, chance, producer):
    """Run a program until it is killed; return whether that was as planned.

    A program that does not reach its point in time is killed anyway.
    """
    timed = mode in ("time", "jvm")
    # The range is from before the member has joined to after several batches.
    timeout = chance.uniform(0.5, 8.0) if timed else 100.0
    program.start_query()
    end, left = time.monotonic() + timeout, PARTS
    while program.process.poll() is None and time.monotonic() < end:
        if left:
            producer.write()
            left -= 1
        with suppress(TimeoutError):
            program.wait(min(PRODUCE_INTERVAL, max(0.0, end - time.monotonic())))
    producer.write(left)
    if mode == "jvm":
        program.kill_jvm()
    as_planned = timed or program.process.poll() == -signal.SIGKILL
    program.kill()
    return as_planned


def mode_of(plan):
    return plan.partition(":")[0]


def report(plans, killed):
    """Print how many drivers were killed as planned (shown by pytest -rP)."""
    for mode, tried in Counter(map(mode_of, plans)).items():
        sys.stdout.write(f"killed at {mode!r}: {killed[mode]} of {tried}\n")


def values(table):
    return Counter(int(value) for value in table["value"].to_pylist())


def missing(table, others=()):
    """Return the records that neither the query nor another member has."""
    return sorted(set(range(RECORDS)) - set(values(table)) - set(others))


def check_once(table):
    """Check that no value, and no partition and offset, is there twice."""
    columns = (table["partition"].to_pylist(), table["offset"].to_pylist())
    offsets = Counter(zip(*columns, strict=True))
    assert [offset for offset, count in offsets.items() if count > 1] == []
    assert [value for value, count in values(table).items() if count > 1] == []


def run_with_kills(scene, kafka, *others):
    """Run queries while drivers, workers and brokers are killed.

    Return the output, the background threads, and the modes without a killed driver.
    """
    chance = random.Random(SEED)
    here = scene(kafka, replication=3)
    producer = Producer(here, KILLS * PARTS)
    background = [producer, BrokerRestarter(here), *(other(here) for other in others)]
    plans, killed = list(kill_plan(chance)), Counter()
    next_program = here.program(kill_at=plans[0], chance=0.1)
    for number, plan in enumerate(plans):
        program, last = next_program, number + 1 == KILLS
        # The next program starts Spark while this one runs.
        next_program = (
            here.program(**AVAILABLE_NOW)
            if last
            else here.program(kill_at=plans[number + 1], chance=0.1)
        )
        killed[mode_of(plan)] += run_until_killed(program, plan, chance, producer)
    for one in background:
        one.end()
    table = here.finish(next_program)
    check_once(table)
    report(plans, killed)
    # The output has all acquired records, and nothing else.
    assert here.acquired() == len(table)
    return (
        table,
        background,
        {mode_of(plan) for plan in plans if not killed[mode_of(plan)]},
    )


LONG_RUN = pytest.mark.skipif(
    not LONG, reason="takes minutes; set SHARECONS_SPARK_RECORDS"
)


# The short run finds regressions; the long one finds rare errors.
@pytest.mark.parametrize("any_kafka3", HALVES if LONG else ["embedded"], indirect=True)
def test_query_alone_in_its_group_has_every_record_exactly_once(any_kafka3, scene):
    table, _, missed = run_with_kills(scene, any_kafka3)

    assert missing(table) == []
    # In the long run each mode is tried twice.
    assert not (LONG and missed)


@LONG_RUN
@pytest.mark.parametrize("any_kafka3", HALVES, indirect=True)
def test_query_beside_another_member_has_its_records_exactly_once(any_kafka3, scene):
    table, background, missed = run_with_kills(scene, any_kafka3, OtherMember)

    consumed = background[-1].values
    assert consumed
    assert missing(table, consumed) == []
    assert not missed


# tests/spark/test_stream.py has the same for queries of one program.
@LONG_RUN
def test_restarted_query_uses_up_no_delivery(embedded_kafka, scene):
    here = scene(embedded_kafka)
    producer = Producer(here, 2)
    producer.write()
    program = here.program()
    program.start_query()
    last = here.program(**AVAILABLE_NOW)
    until_true(lambda: committed_rows(here.base / "out"), 60)
    program.kill(signal.SIGTERM)
    producer.write()
    producer.end()
    table = here.finish(last)

    assert values(table) == Counter(range(RECORDS))
    assert set(table["deliveryCount"].to_pylist()) == {1}


JOINED = ["before commit:2", *(f"{point}:2" for point in POINTS if LONG)]


@pytest.mark.thorough
@pytest.mark.parametrize("kill_at", JOINED)
def test_self_join_has_every_record_exactly_once(embedded_kafka, scene, kill_at):
    here = scene(embedded_kafka, batches=PARTS)
    producer = Producer(here, PARTS)
    program = here.program(kill_at=kill_at, joined=True)
    assert run_until_killed(program, kill_at, random.Random(SEED), producer)
    producer.end()
    table = here.finish(here.program(joined=True, **AVAILABLE_NOW))

    assert values(table) == Counter(range(RECORDS))
    check_once(table)
    assert here.acquired() == RECORDS
