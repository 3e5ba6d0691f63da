"""The source on a standalone cluster, by the commands of docs/spark-running.md.

The environment is packed, and the programs are submitted, as the page says. Executors,
workers and drivers are killed while batches are processed.

SHARECONS_SPARK_SEED     the seed for the times and kinds of kills of the long run
SHARECONS_SPARK_RECORDS  its number of records
"""

import json
import os
import random
import subprocess
import sys
import time
import uuid
from collections import Counter
from urllib.parse import unquote

import pyarrow.dataset
import pytest

pytest.importorskip("pyspark", reason="needs sharecons[spark]")

from tests.kafka_plugin import HALVES
from tests.spark.background import BrokerRestarter
from tests.spark.delta import delta_jars, needs_delta
from tests.spark.standalone_cluster import ROOT, StandaloneCluster, commands_of
from tests.waiting import until_true

pytestmark = [
    pytest.mark.slow(
        "packs an environment, starts two drivers on a cluster", seconds=120
    ),
    pytest.mark.timeout(3600),
]

RECORDS = 6_000
MANY = int(os.environ.get("SHARECONS_SPARK_RECORDS", "300000"))
KILLS = 12
SEED = int(os.environ.get("SHARECONS_SPARK_SEED", "1"))
TIMEOUT = 240.0


@pytest.fixture(scope="session")
def packed_environment(tmp_path_factory):
    """The directory in which the page's commands have packed an environment."""
    base = tmp_path_factory.mktemp("packed")
    wheels = base / "wheels"
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    subprocess.run(
        [*build, "--no-build-isolation", "--wheel-dir", str(wheels), str(ROOT)],
        env={**os.environ, "SHARECONS_PURE": "1"},
        check=True,
    )
    environment = {
        **{name: v for name, v in os.environ.items() if not name.startswith("PYTHON")},
        "PIP_FIND_LINKS": str(wheels),
        "PIP_QUIET": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    commands = commands_of("Pack an environment").replace(
        "python3 -m", f"{sys.executable} -m"
    )
    subprocess.run(
        ["bash", "-euc", commands],
        cwd=base,
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return base


@pytest.fixture
def spark_cluster(tmp_path):
    cluster = StandaloneCluster(tmp_path)
    yield cluster
    cluster.close()


class Scene:
    """A topic, a group, and the page's pipeline, which is started again and again."""

    def __init__(self, kafka, cluster, packed, *, replication=1, sink="parquet"):
        self.kafka, self.cluster, self.sink = kafka, cluster, sink
        self.topic = kafka.admin.create_topic(partitions=4, replication=replication)
        self.group = f"lake-{uuid.uuid4().hex[:8]}"
        # Each killed driver can use up a delivery of the records that it holds.
        kafka.admin.set_group_config(self.group, {"share.delivery.count.limit": 10})
        self.into = cluster.base / "orders"
        self.produced = 0
        self.started = 0
        user = cluster.base / "user"
        user.mkdir()
        for name in ("env", "env.tar.gz"):
            (user / name).symlink_to(packed / name)
        (user / "pipeline.py").write_text(commands_of("The program"))

    def produce(self, count):
        values = [
            b'{"id": %d, "country": "NO"}' % number
            for number in range(self.produced, self.produced + count)
        ]
        self.kafka.admin.produce(self.topic, values, enable_idempotence=True)
        self.produced += count

    def start(self, *, until_drained=False):
        """Run the page's command for a standalone cluster."""
        command = commands_of("A standalone cluster")
        replacements = {
            "spark://master:7077": self.cluster.url,
            "kafka:9092": self.kafka.bootstrap_servers,
            "--topic orders": f"--topic {self.topic}",
            "--group lake": f"--group {self.group}",
            "/data/orders": str(self.into),
        }
        if until_drained:
            replacements |= {' --every "1 second"': ""}
        if self.sink == "delta":
            replacements |= {
                "--archives": f"--jars {delta_jars()} --archives",
                "--into": "--sink delta --into",
            }
        for given, replacement in replacements.items():
            assert given in command, given
            command = command.replace(given, replacement)
        self.started += 1
        return self.cluster.submit(command, f"driver-{self.started}.log")

    def batches(self, name):
        """Return the batches of the checkpoint that have a file in its directory."""
        directory = self.into / "checkpoint" / name
        return {int(file.name) for file in directory.glob("[0-9]*")}

    def wait_for_running_batch(self, driver):
        """Wait until the query processes a batch, and return its number.

        The batch can be one that a killed program has not finished.
        """

        def running():
            assert driver.process.poll() is None, driver.output()
            return self.batches("offsets") - self.batches("commits")

        return max(until_true(running, TIMEOUT, what="a batch is being processed"))

    def wait_for_commit(self, driver, batch):
        """Wait until a batch is committed."""

        def committed():
            assert driver.process.poll() is None, driver.output()
            return batch in self.batches("commits")

        until_true(committed, TIMEOUT, what=f"batch {batch} is committed")

    def ids(self):
        """Return how often each id is in the rows."""
        rows = self.into / "rows"
        files = delta_files(rows) if self.sink == "delta" else str(rows)
        table = pyarrow.dataset.dataset(
            files, format="parquet", partitioning=None
        ).to_table(columns=["id"])
        return Counter(table["id"].to_pylist())


def delta_files(table):
    """Return the files of a Delta table, by the actions of its log (no checkpoints)."""
    files = {}
    for version in sorted((table / "_delta_log").glob("*.json")):
        for action in map(json.loads, version.read_text().splitlines()):
            if "add" in action:
                files[action["add"]["path"]] = None
            elif "remove" in action:
                del files[action["remove"]["path"]]
    return [str(table / unquote(path)) for path in files]


def test_each_record_is_in_the_rows_once_after_executor_worker_and_driver_are_killed(
    any_kafka, spark_cluster, packed_environment
):
    scene = Scene(any_kafka, spark_cluster, packed_environment)
    scene.produce(RECORDS // 3)
    spark_cluster.wait_until_ready()
    first = scene.start()
    batch = scene.wait_for_running_batch(first)
    number = spark_cluster.kill_executor()
    scene.wait_for_commit(first, batch)

    scene.produce(RECORDS // 3)
    scene.wait_for_running_batch(first)
    spark_cluster.kill_worker(number)
    first.kill()

    scene.produce(RECORDS // 3)
    second = scene.start(until_drained=True)
    assert second.finish() == 0, second.output()
    assert scene.ids() == Counter(range(RECORDS))


@pytest.mark.thorough
@pytest.mark.parametrize("any_kafka3", HALVES, indirect=True)
@pytest.mark.parametrize("sink", ["parquet", pytest.param("delta", marks=needs_delta)])
def test_each_of_many_records_is_in_the_rows_once_after_many_kills(
    any_kafka3, spark_cluster, packed_environment, sink
):
    chance = random.Random(SEED)
    scene = Scene(
        any_kafka3, spark_cluster, packed_environment, replication=3, sink=sink
    )
    spark_cluster.wait_until_ready()
    brokers = BrokerRestarter(scene)
    driver = scene.start()
    kinds = ["executor", "worker", "driver"] * (KILLS // 3)
    chance.shuffle(kinds)
    for kill, kind in enumerate(kinds):
        scene.produce(MANY // KILLS)
        batch = scene.wait_for_running_batch(driver)
        time.sleep(chance.uniform(0.0, 3.0))  # real time: within a batch, or after it
        if kind == "driver":
            driver.kill()
            driver = scene.start()
        else:
            number = spark_cluster.kill_executor()
            if kind == "worker":
                spark_cluster.kill_worker(number)
                spark_cluster.start_worker(number)
        # Two kills for a batch: without this, all of them hit the first one.
        if kill % 2:
            scene.wait_for_commit(driver, batch)
    brokers.end()
    driver.kill()
    last = scene.start(until_drained=True)

    assert last.finish(1200) == 0, last.output()
    assert scene.ids() == Counter(range(MANY))
