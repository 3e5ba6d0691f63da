"""A pipeline whose checkpoint, ledger or output is older than the rest, or lost.

Each record is in the output once, or the run ends with an error that says what to do.
"""

import json
import shutil

import pytest

pytest.importorskip("pyspark", reason="needs sharecons[spark]")

from sharecons.spark.pipeline.__main__ import main
from tests.spark.delta import needs_delta
from tests.spark.pipeline_tables import (
    check_each_once,
    origins,
    produce,
    run_until_killed,
    wait_for_driver,
)

pytestmark = [
    pytest.mark.slow("Spark runs the pipeline several times", seconds=120),
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore"),
]

SCHEMA = "id BIGINT NOT NULL, country STRING NOT NULL"
BATCH = 10


class Lake:
    """A pipeline's directory, and its ledger, which is outside of it."""

    def __init__(self, spark, broker, base, sink):
        self.spark, self.broker, self.base, self.sink = spark, broker, base, sink
        self.into = base / "lake"
        self.ledger = base / "ledger"
        self.commits = base / "ledger.commits"
        self.produced = 0

    @property
    def arguments(self):
        return [
            *["--bootstrap-servers", self.broker.bootstrap_servers],
            *["--topic", "orders", "--group", "lake", "--schema", SCHEMA],
            *["--into", str(self.into), "--sink", self.sink],
            *["--option", f"ledgerLocation={self.ledger}"],
        ]

    def produce(self):
        """Produce the records of a batch; every fifth one goes to quarantine."""
        numbers = range(self.produced, self.produced + BATCH)
        records = [{"id": n, "country": "NO"} if n % 5 else {"id": n} for n in numbers]
        produce(self.broker, records)
        self.produced += BATCH

    def run(self):
        """Run until everything is read; return the exit code."""
        return main(self.arguments)

    def add_batch(self):
        self.produce()
        assert self.run() == 0

    def kill_at(self, point):
        self.produce()
        run_until_killed(self.arguments, point, self.base)

    def commit_file(self):
        (path,) = self.commits.glob("*.json")
        return path

    def save(self, *names):
        """Copy directories of `base`, for `restore`."""
        wait_for_driver(self.ledger)
        for name in names:
            shutil.copytree(self.base / name, self.base / "backup" / name)

    def restore(self, *names):
        wait_for_driver(self.ledger)
        for name in names:
            shutil.rmtree(self.base / name)
            shutil.copytree(self.base / "backup" / name, self.base / name)

    def lose_newest_batches(self, count=1):
        """Remove the newest batches from the checkpoint, as a power failure can."""
        for log in ("offsets", "commits"):
            files = (self.into / "checkpoint" / log).glob("[0-9]*")
            for path in sorted(files, key=lambda each: int(each.name))[-count:]:
                path.unlink()
                path.with_name(f".{path.name}.crc").unlink(missing_ok=True)

    def check(self):
        check_each_once(self.spark, self.into, self.produced, sink=self.sink)


@pytest.fixture(params=["parquet", pytest.param("delta", marks=needs_delta)])
def lake(request, spark, share_broker, tmp_path):
    share_broker.create_topic("orders", partitions=2)
    share_broker.set_group_config("lake", {"share.auto.offset.reset": "earliest"})
    return Lake(spark, share_broker, tmp_path, request.param)


@pytest.mark.parametrize("count", [1, pytest.param(2, marks=pytest.mark.thorough)])
def test_checkpoint_without_its_newest_batches_has_each_record_once(lake, count):
    for _ in range(3):
        lake.add_batch()
    lake.lose_newest_batches(count)

    lake.add_batch()

    lake.check()


@pytest.mark.thorough
def test_lost_checkpoint_batch_that_was_not_published_has_each_record_once(lake):
    lake.add_batch()
    lake.kill_at("committed:1")
    lake.lose_newest_batches()

    lake.add_batch()

    lake.check()


@pytest.mark.thorough
def test_checkpoint_of_six_batches_before_has_each_record_once(lake):
    lake.add_batch()
    lake.save("lake/checkpoint")
    for _ in range(6):
        lake.add_batch()
    lake.restore("lake/checkpoint")

    lake.add_batch()

    lake.check()


@pytest.mark.thorough
def test_new_checkpoint_of_a_ledger_with_batches_has_each_record_once(lake):
    lake.add_batch()
    lake.kill_at("committed:1")
    shutil.rmtree(lake.into / "checkpoint")

    lake.add_batch()

    lake.check()


def test_moved_ledger_needs_its_commit_files(lake, capfd):
    lake.kill_at("committed:1")
    before = lake.commits
    lake.ledger = lake.ledger.rename(lake.base / "moved")

    assert lake.run() == 2
    assert f"were in {before}: " in capfd.readouterr().err
    lake.commits = before.rename(lake.base / "moved.commits")
    lake.add_batch()

    lake.check()


def delete_commit_files(lake):
    shutil.rmtree(lake.commits)


def delete_output(lake):
    shutil.rmtree(lake.into)


def delete_rows(lake):
    shutil.rmtree(lake.into / "rows")


def restore_output(lake):
    lake.restore("lake")


def restore_ledger(lake):
    lake.restore("ledger")


def copy_checkpoint(lake):
    """Copy the checkpoint to another directory, which uses the same ledger."""
    other = lake.base / "other"
    shutil.copytree(lake.into / "checkpoint", other / "checkpoint")
    lake.into = other


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("damage", "code", "message"),
    [
        (delete_commit_files, 2, "are not in {base}/ledger.commits, but were in"),
        (delete_output, 2, "{base}/lake, but that has no layout.json"),
        (delete_rows, 2, "{base}/lake/rows is missing, but the batch"),
        (copy_checkpoint, 2, "{base}/other, but that has no layout.json"),
        (restore_output, 1, "{base}/lake is older than its commit files; restore"),
        (restore_ledger, 1, "ledger in {base}/ledger up to position 20, but it ends"),
    ],
)
def test_state_that_cannot_be_continued_is_an_error(lake, capfd, damage, code, message):
    lake.add_batch()
    lake.save("lake", "ledger")
    lake.add_batch()
    damage(lake)
    lake.produce()

    assert lake.run() == code
    error = capfd.readouterr().err
    assert message.format(base=lake.base) in error.replace("file:", "")


@pytest.mark.thorough
def test_rows_that_were_deleted_are_left_out_if_their_directory_is_empty(lake):
    lake.add_batch()
    delete_rows(lake)
    (lake.into / "rows").mkdir()

    lake.add_batch()

    rows = origins(lake.spark, lake.into / "rows", "_", lake.sink)
    first = BATCH // 2  # of each of the two partitions
    assert min(offset for _, offset in rows) == first
    assert set(rows.values()) == {1}


def test_damaged_commit_file_is_named_in_the_error(lake, capfd):
    lake.kill_at("committed:1")
    lake.commit_file().write_bytes(b"")

    assert lake.run() == 1
    error = capfd.readouterr().err
    assert f"the commit file {lake.commit_file()} is damaged (0 bytes)" in error


@pytest.mark.thorough
def test_commit_file_without_a_range_is_used_for_the_same_batch_only(lake, capfd):
    lake.kill_at("committed:1")
    path = lake.commit_file()
    commit = json.loads(path.read_bytes())
    del commit["range"]
    path.write_text(json.dumps(commit))
    lake.save("lake/checkpoint")

    lake.lose_newest_batches()
    lake.produce()
    assert lake.run() == 1
    assert f"{path.name} has 10 other records" in capfd.readouterr().err
    lake.restore("lake/checkpoint")
    assert lake.run() == 0

    lake.check()
