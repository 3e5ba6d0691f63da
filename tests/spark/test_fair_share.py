"""A query takes from its group what its batches process, and reports the rest.

The queries here are `StreamQuery`, called as Spark calls them.
"""

import threading
import time
from contextlib import contextmanager

import anyio
import pytest

from sharecons import ShareConsumer, ShareGroupAdmin
from sharecons.exporter import Collector
from sharecons.exporter.ledgers import Ledgers
from sharecons.spark.batch import BatchQuery
from sharecons.spark.options import read_options
from sharecons.spark.stream import StreamQuery
from tests.waiting import until_true

RECORDS = 20_000
BATCH = 100


class Group:
    """A topic, a group that starts at its first record, and a ledger's directory."""

    def __init__(self, kafka, base, partitions):
        self.kafka = kafka
        self.topic = kafka.admin.create_topic(partitions=partitions)
        self._partitions = partitions
        self.name = f"g-{self.topic}"
        self.ledger = base / "ledger"
        kafka.admin.set_group_config(self.name, {"share.auto.offset.reset": "earliest"})

    def produce(self, count):
        values = [b"x" * 100] * (count // self._partitions)
        for partition in range(self._partitions):
            self.kafka.admin.produce(self.topic, values, partition=partition)

    @contextmanager
    def query(self, **more):
        query = Batches(self._options(more))
        try:
            yield query
        finally:
            query.stop()

    def read(self, **more):
        """Plan a batch of `spark.read`; return its number of offsets."""
        tasks = BatchQuery(read_options(self._options(more)), "load").plan_tasks()
        return sum(each.size for task in tasks for each in task)

    def _options(self, more):
        return {
            "kafka.bootstrap.servers": self.kafka.bootstrap_servers,
            "subscribe": self.topic,
            "kafka.share.group.id": self.name,
            "ledgerLocation": str(self.ledger),
            # Stopping waits for the fetch that the broker holds.
            "kafka.fetch.max.wait.ms": "50",
            **more,
        }


class Batches:
    """Runs the batches of a query.

    Attributes:
        finished: offsets of the batches that have finished.
        running: offsets of the batch that runs.
    """

    def __init__(self, given):
        self._options = read_options(given)
        self._query = StreamQuery(self._options)
        self._start = self._query.initial_offset()
        self.finished = self.running = 0

    def begin(self):
        """Finish the last batch, and plan the next one."""
        self.finished += self.running
        end = self._query.latest_offset(
            self._start,
            max_offsets=self._options.max_offsets_per_trigger,
            min_offsets=None,
        )
        tasks = self._query.plan_tasks(self._start, end)
        self.running = sum(each.size for task in tasks for each in task)
        self._query.commit(self._start)
        self._start = end

    def progress(self):
        return self._query.report_latest_offset()

    def stop(self):
        self._query.stop()


class Member:
    """A plain member of the group, in a thread.

    Attributes:
        accepted: the number of records that it has accepted.
    """

    def __init__(self, group, limit=RECORDS):
        self._group = group
        self._limit = limit
        self.accepted = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=lambda: anyio.run(self._run))

    def accept(self, count):
        """Accept this number of records more, and wait for that."""
        self._limit = self.accepted + count
        until_true(lambda: self.accepted == self._limit, what=f"{count} are accepted")

    async def _run(self):
        async with ShareConsumer(
            self._group.topic,
            group_id=self._group.name,
            bootstrap_servers=self._group.kafka.bootstrap_servers,
            acquire_mode="record_limit",
            acknowledgement="explicit",
        ) as consumer:
            while not self._stopped.is_set():
                if wanted := self._limit - self.accepted:
                    records = await consumer.poll(max_records=wanted, timeout=0.1)
                    for record in records:
                        record.accept()
                    await consumer.commit()
                    self.accepted += len(records)
                else:
                    await anyio.sleep(0.01)  # real time: the test sets the limit

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopped.set()
        self._thread.join(20)


@pytest.fixture
def new_group(any_kafka, tmp_path):
    def make(records, partitions=1):
        group = Group(any_kafka, tmp_path, partitions)
        group.produce(records)
        return group

    return make


@pytest.mark.parametrize(
    ("partitions", "share"),
    [
        pytest.param(1, RECORDS, id="both have the partition"),
        pytest.param(4, RECORDS // 2, id="each has two partitions"),
    ],
)
def test_slow_query_leaves_a_fast_member_its_share(new_group, partitions, share):
    group = new_group(RECORDS, partitions)
    with group.query(maxOffsetsPerTrigger=str(BATCH)) as query:
        query.begin()
        time.sleep(1)  # real time: the query is alone in the group
        query.begin()
        with Member(group) as member:
            enough = share - 9 * BATCH
            for _ in range(6):
                if member.accepted < enough:
                    time.sleep(1)  # real time: the query processes 100 records in it
                    query.begin()
            until_true(lambda: member.accepted >= enough)
        acquired = query.progress()["acquired"]

    assert acquired <= query.finished + 3 * BATCH


def test_stalled_query_keeps_its_partition_until_members_exceed_partitions(new_group):
    group = new_group(RECORDS, partitions=2)
    with group.query(maxOffsetsPerTrigger=str(BATCH)) as query:
        until_true(lambda: query.progress()["acquired"] == 2 * BATCH)
        with Member(group) as first:
            # Each of two members has one partition.
            until_true(lambda: first.accepted >= RECORDS // 2 - 2 * BATCH)
            assert first.accepted <= RECORDS // 2
            with Member(group) as second:
                rest = RECORDS - 2 * BATCH
                until_true(lambda: first.accepted + second.accepted == rest)
        assert query.progress()["acquired"] == 2 * BATCH


def test_first_batches_without_a_limit_leave_the_records_to_a_member(new_group):
    group = new_group(RECORDS)
    with group.query() as query:
        until_true(lambda: query.progress()["acquired"] >= 1000)
        time.sleep(0.3)  # real time: the query is alone in the group

        assert query.progress()["acquired"] == 1000


def test_query_that_was_restarted_counts_what_its_ledger_holds(new_group):
    group = new_group(RECORDS)
    with group.query(maxOffsetsPerTrigger=str(BATCH)) as query:
        until_true(lambda: query.progress()["backlog"] == 2 * BATCH)
    with group.query(maxOffsetsPerTrigger=str(BATCH)) as query:
        time.sleep(0.3)  # real time: the query could acquire

        assert query.progress()["backlog"] == 2 * BATCH
        query.begin()
        until_true(lambda: query.progress()["backlog"] == 3 * BATCH)


def test_batch_acquires_no_more_than_its_limit(new_group):
    group = new_group(1000)

    assert group.read(maxOffsetsPerTrigger="10") == 10


# A limit that follows the batches grows until the query takes the member's records.
@pytest.mark.parametrize(
    "options", [{"maxOffsetsAhead": "1000"}, {"maxOffsetsPerTrigger": str(BATCH)}]
)
def test_lag_and_backlog_are_the_unprocessed_records_at_every_look(
    new_group, monkeypatch, options
):
    # The lag is as old as the last refresh.
    monkeypatch.setattr("sharecons.spark.watch.REFRESH_INTERVAL", 0.05)
    produced = 4000
    group = new_group(produced)
    with group.query(**options) as query, Member(group, limit=0) as member:

        def look():
            left = produced - query.finished - member.accepted
            progress = query.progress()
            shown = progress["lag"], progress["backlog"]
            return sum(shown) == left

        for _ in range(3):
            query.begin()
            until_true(look, what="the sum of lag and backlog after a batch")
            member.accept(300)
            until_true(look, what="the sum of lag and backlog after a member")
            group.produce(1000)
            produced += 1000
            until_true(look, what="the sum of lag and backlog after new records")

    assert query.finished


class Exporter:
    """Reads the lag of a group and the backlog of its query, as the exporter does."""

    def __init__(self, group):
        self._group = group
        self._ledgers = Ledgers([str(group.ledger)])

    def unprocessed(self):
        """Return the lag and the backlog."""
        return anyio.run(self._collect)

    async def _collect(self):
        servers = self._group.kafka.bootstrap_servers
        async with ShareGroupAdmin(bootstrap_servers=servers) as admin:
            collector = Collector(admin, [self._group.name], ledgers=self._ledgers)
            found = await collector.collect()
        assert not found.error_messages
        group = found.groups.get(self._group.name)
        lag = sum(each.lag for each in group.partitions.values()) if group else 0
        return lag, sum(found.ledgers[str(self._group.ledger)].offsets.values())


def test_exporter_counts_the_unprocessed_records_at_every_look(new_group, monkeypatch):
    monkeypatch.setattr("sharecons.spark.finished_mark.INTERVAL", 0.05)
    produced = 1000
    group = new_group(produced)
    exporter = Exporter(group)
    with group.query(maxOffsetsPerTrigger=str(BATCH)) as query:

        def has_read():
            lag, backlog = exporter.unprocessed()
            return backlog and lag + backlog == produced

        until_true(has_read)
        for _ in range(3):
            query.begin()
            left = produced - query.finished
            # Never too few: an autoscaler would stop the query.
            assert sum(exporter.unprocessed()) >= left
            until_true(lambda left=left: sum(exporter.unprocessed()) == left)
        assert exporter.unprocessed()[1] == 3 * BATCH
    # A batch that was planned is unprocessed until Spark plans the next one.
    assert sum(exporter.unprocessed()) == produced - query.finished


def test_exporter_counts_nothing_after_a_query_has_processed_everything(new_group):
    group = new_group(150)
    exporter = Exporter(group)
    with group.query(maxOffsetsPerTrigger=str(BATCH)) as query:

        def processed():
            query.begin()
            return query.finished == 150

        until_true(processed)

    # Spark has not committed the last batch.
    assert exporter.unprocessed() == (0, 0)
