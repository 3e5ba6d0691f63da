"""Drivers that are killed, brokers that go away: each record is there exactly once."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

pytest.importorskip("pyspark")

from sharecons import ShareConsumer
from tests.kafka_plugin import Kafka
from tests.spark.sparks import kept

ROOT = Path(__file__).parent.parent.parent

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore"),
]

RECORDS = int(os.environ.get("SHARECONS_SPARK_RECORDS", "20000"))
KILLS = int(os.environ.get("SHARECONS_SPARK_KILLS", "3"))
SEED = int(os.environ.get("SHARECONS_SPARK_SEED", "1"))


class Program:
    """A driver program in a session of its own, with its JVM and its workers."""

    def __init__(self, said):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TZ": "UTC"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.program", json.dumps(said)],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.printed = []
        # Read to its end, whoever waits: a full pipe would hold Spark up.
        self.reading = threading.Thread(target=self._read, daemon=True)
        self.reading.start()

    def _read(self):
        for line in self.process.stdout:
            self.printed.append(line)

    def wait_for(self, line, within=90):
        end = time.monotonic() + within
        while f"{line}\n" not in self.printed:
            assert self.process.poll() is None, "".join(self.printed)[-3000:]
            assert time.monotonic() < end, f"it did not say {line!r}"
            time.sleep(0.05)

    def kill(self, number=signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)
        self.process.wait(30)

    def finish(self, within=180):
        self.process.wait(within)
        self.reading.join(10)
        assert self.process.returncode == 0, "".join(self.printed)[-3000:]


class Worker:
    """A worker process of a program: the one that runs the member, or tasks."""

    @staticmethod
    def find(program, words):
        """Give the ids of a program's processes whose command line has these words."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                line = (path / "cmdline").read_bytes().decode(errors="replace")
                if os.getpgid(int(path.name)) == program.process.pid and words in line:
                    found.append(int(path.name))
        return found


@pytest.fixture
def programs():
    running = []

    def start(said):
        running.append(Program(said))
        return running[-1]

    yield start
    for program in running:
        program.kill()


@pytest.fixture
def said(any_kafka, tmp_path):
    """What a program is told; the topic and its group are new."""
    group = f"spark-{uuid.uuid4().hex[:8]}"
    topic = any_kafka.admin.create_topic(partitions=3)
    any_kafka.admin.set_group_config(group, {"share.auto.offset.reset": "earliest"})
    return {
        "servers": any_kafka.bootstrap_servers,
        "topic": topic,
        "group": group,
        "base": str(tmp_path),
        "options": {"maxOffsetsPerTrigger": str(max(RECORDS // 12, 1))},
        "trigger": {"processingTime": "50 milliseconds"},
    }


AVAILABLE_NOW = {"trigger": {"availableNow": True}}


class Producing(threading.Thread):
    """Produces numbered records, a few at a time, while something else happens."""

    def __init__(self, kafka: Kafka, topic, seconds):
        super().__init__(daemon=True)
        self.kafka, self.topic, self.seconds = kafka, topic, seconds
        self.start()

    def run(self):
        rounds = 20
        for number in range(rounds):
            first, last = (RECORDS * n // rounds for n in (number, number + 1))
            values = [b"%d" % value for value in range(first, last)]
            self.kafka.admin.produce(self.topic, values)
            time.sleep(self.seconds / rounds)


def values(said):
    """How often each number is in the output, and how often it was delivered."""
    table = kept(Path(said["base"]) / "out")
    return Counter(int(value) for value in table["value"].to_pylist()), table


def missing_and_twice(counts):
    missing = [number for number in range(RECORDS) if not counts[number]]
    twice = [number for number, count in counts.items() if count > 1]
    return missing[:5], twice[:5]


def test_driver_killed_again_and_again_has_every_record_exactly_once(
    any_kafka, said, programs
):
    chance = random.Random(SEED)
    producing = Producing(any_kafka, said["topic"], seconds=8.0 * KILLS)
    for _ in range(KILLS):
        program = programs(said)
        program.wait_for("running")
        # From before the member has joined to well into its batches.
        time.sleep(chance.uniform(0.5, 8.0))
        program.kill()
    producing.join()
    programs(said | AVAILABLE_NOW).finish()

    counts, _ = values(said)
    assert missing_and_twice(counts) == ([], [])
    assert len(counts) == RECORDS


def test_killed_member_and_killed_tasks_lose_nothing(any_kafka, said, programs):
    producing = Producing(any_kafka, said["topic"], seconds=10.0)
    program = programs(said)
    program.wait_for("running")
    chance = random.Random(SEED)
    for words in ("pyspark/daemon", "pyspark.daemon", "python_streaming_source_runner"):
        time.sleep(chance.uniform(2.0, 4.0))
        for pid in Worker.find(program, words):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    producing.join()
    program.kill()
    programs(said | AVAILABLE_NOW).finish()

    counts, _ = values(said)
    assert missing_and_twice(counts) == ([], [])


def test_query_that_is_stopped_and_started_uses_up_no_delivery(
    any_kafka, said, programs
):
    producing = Producing(any_kafka, said["topic"], seconds=12.0)
    for _ in range(2):
        program = programs(said)
        program.wait_for("running")
        time.sleep(5)
        program.kill(signal.SIGTERM)
    producing.join()
    programs(said | AVAILABLE_NOW).finish()

    counts, table = values(said)
    assert missing_and_twice(counts) == ([], [])
    assert set(table["deliveryCount"].to_pylist()) == {1}


def test_other_members_of_the_group_share_the_records(any_kafka, said, programs):
    taken = Counter()

    async def consume(seconds):
        async with ShareConsumer(
            said["topic"],
            group_id=said["group"],
            bootstrap_servers=said["servers"],
            max_records=50,
        ) as consumer:
            with anyio.move_on_after(seconds):
                async for record in consumer:
                    taken[int(record.value)] += 1

    producing = Producing(any_kafka, said["topic"], seconds=10.0)
    program = programs(said)
    program.wait_for("running")
    for _ in range(2):
        anyio.run(consume, 3)
        time.sleep(1)
    producing.join()
    program.kill(signal.SIGTERM)
    programs(said | AVAILABLE_NOW).finish()

    counts, _ = values(said)
    assert taken
    assert [number for number, count in counts.items() if count > 1] == []
    assert [n for n in range(RECORDS) if not counts[n] and not taken[n]] == []
