"""Groups that read committed records: offsets without a record do not wait."""

import pytest
from anyio import to_thread

from sharecons.cli import main
from sharecons.exporter import Collector
from sharecons.exporter.metrics import Metrics
from sharecons.inspection import OffsetStatus, Reason, inspect_group
from tests.exporter.scraped import GROUP, scrape
from tests.scenarios.queue import Queue, take

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow("a client with transactions, and several collections"),
]

COMMITTED = {"share.isolation.level": "read_committed"}


class Transactions:
    """A transactional producer of one topic."""

    def __init__(self, kafka, topic):
        self._topic = topic
        self._producer = kafka.admin.producer(transactional_id=f"id-{topic}")
        self._producer.init_transactions()

    def begin(self, count):
        self._producer.begin_transaction()
        for _ in range(count):
            self._producer.produce(self._topic, b"x")
        self._producer.flush()

    def abort(self, count=0):
        if count:
            self.begin(count)
        self._producer.abort_transaction()


async def check(kafka, group):
    """Return the exit code of `groups inspect --check`."""
    servers = ["--bootstrap-server", kafka.bootstrap_servers]
    return await to_thread.run_sync(
        main, ["groups", "inspect", group, "--check", *servers]
    )


async def exported(admin, queue, *names):
    """Return metrics of the second of two collections, with what the first knew."""
    collector, metrics = Collector(admin, [queue.group]), Metrics()
    for _ in range(2):
        metrics.update(await collector.collect())
    labels = {"group": queue.group, "topic": queue.topic, "partition": "0"}
    return [scrape(metrics).value(f"{GROUP}{name}", **labels) for name in names]


async def only(admin, queue):
    seen = await inspect_group(admin, queue.group)
    (partition,) = seen.partitions.found.values()
    (findings,) = seen.findings.values()
    return partition, findings


async def accept_all(queue, count):
    async with queue.consumer(acknowledgement="explicit") as consumer:
        for record in await take(aiter(consumer), count):
            record.accept()
        await consumer.commit()


async def test_aborted_records_at_the_end_of_the_log_do_not_wait(kafka, admin):
    queue = Queue(kafka.admin, **COMMITTED)
    queue.produce([b"x"] * 3)
    await accept_all(queue, 3)
    transactions = Transactions(kafka, queue.topic)
    for _ in range(2):
        transactions.abort(2)
    partition, (finding,) = await only(admin, queue)

    assert Reason.SETTLED is finding.reason
    assert 6 == partition.count(OffsetStatus.NO_RECORD)
    assert 0 == await check(kafka, queue.group)
    values = await exported(
        admin, queue, "lag_records", "oldest_unsettled_age_seconds", "log_end_offset"
    )
    assert [0, 0, 9] == values


async def test_aborted_records_of_several_collections_are_one_range(kafka, admin):
    queue = Queue(kafka.admin, **COMMITTED)
    queue.produce([b"x"] * 3)
    await accept_all(queue, 3)
    transactions = Transactions(kafka, queue.topic)
    collector = Collector(admin, [queue.group])
    for _ in range(3):
        transactions.abort(2)
        snapshot = await collector.collect()
    (partition,) = snapshot.groups[queue.group].partitions.values()

    assert [(3, 11, OffsetStatus.NO_RECORD)] == [
        (each.first_offset, each.last_offset, each.status)
        for each in partition.ranges
        if each.status is OffsetStatus.NO_RECORD
    ]


async def test_record_behind_aborted_ones_waits(kafka, admin):
    queue = Queue(kafka.admin, **COMMITTED)
    queue.produce([b"x"] * 3)
    await accept_all(queue, 3)
    Transactions(kafka, queue.topic).abort(2)
    queue.produce([b"y"])
    partition, (finding,) = await only(admin, queue)

    assert (Reason.NO_MEMBERS, 6) == (finding.reason, partition.oldest.offset)
    assert finding.text.startswith("the group has no members; 1 offset waits")
    assert [1] == await exported(admin, queue, "lag_records")


async def test_aborted_records_between_settled_ones_are_not_open(kafka, admin):
    queue = Queue(kafka.admin, **COMMITTED)
    queue.produce([b"x"] * 3)
    Transactions(kafka, queue.topic).abort(4)
    queue.produce([b"x"] * 2)
    async with queue.consumer(acknowledgement="explicit") as consumer:
        held, *others = await take(aiter(consumer), 5)
        for record in others:
            record.accept()
        await consumer.commit()
        partition, _ = await only(admin, queue)
        held.accept()

    assert (0, 1) == (held.offset, partition.count(OffsetStatus.OPEN))
    assert 10 == partition.window


async def test_records_of_an_open_transaction_wait_for_its_end(kafka, admin):
    queue = Queue(kafka.admin, **COMMITTED)
    queue.produce([b"x"] * 3)
    await accept_all(queue, 3)
    transactions = Transactions(kafka, queue.topic)
    transactions.begin(2)
    _, (finding,) = await only(admin, queue)
    code = await check(kafka, queue.group)
    transactions.abort()

    assert (Reason.OPEN_TRANSACTION, 0) == (finding.reason, code)
    assert finding.text.startswith("2 offsets from offset 3 on wait for the end of a")


async def test_group_that_reads_uncommitted_records_waits_for_aborted_ones(
    kafka, admin
):
    queue = Queue(kafka.admin)
    queue.produce([b"x"] * 3)
    await accept_all(queue, 3)
    Transactions(kafka, queue.topic).abort(1)
    partition, (finding,) = await only(admin, queue)

    assert (Reason.NO_MEMBERS, 3) == (finding.reason, partition.oldest.offset)
