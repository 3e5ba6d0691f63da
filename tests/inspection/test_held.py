"""Groups that settle nothing: new, idle, held by members or brokers; on both Kafkas."""

import json
import time

import anyio
import pytest
from anyio import to_thread

from sharecons import ShareConsumer, TopicPartition
from sharecons.admin import ShareGroupAdmin
from sharecons.cli import main
from sharecons.exporter import Collector
from sharecons.exporter.metrics import Metrics
from sharecons.inspection import Reason, Severity, inspect_group
from tests.broker.log_requests import produce_batch
from tests.broker.raw_batches import batch
from tests.exporter.scraped import GROUP, scrape
from tests.scenarios.queue import Queue, take

pytestmark = pytest.mark.anyio

BATCH = 60
LOCK = {"share.record.lock.duration.ms": "1000"}


def produce_of_ten_minutes_ago(kafka, topic):
    old = time.time_ns() // 1_000_000 - 600_000
    produce_batch(kafka, topic, batch("a", "b", "c", timestamp=old))


async def check(kafka, group):
    """Return the exit code of `groups inspect --check`."""
    servers = ["--bootstrap-server", kafka.bootstrap_servers]
    return await to_thread.run_sync(
        main, ["groups", "inspect", group, "--check", *servers]
    )


class Exported:
    """Repeated collections of one group."""

    def __init__(self, admin, queue):
        self._collector = Collector(admin, [queue.group])
        self._labels = {"group": queue.group, "topic": queue.topic, "partition": "0"}

    async def value(self, name, **labels):
        metrics = Metrics()
        metrics.update(await self._collector.collect())
        return scrape(metrics).value(f"{GROUP}{name}", **self._labels, **labels)

    async def wait_until_held(self):
        with anyio.fail_after(15):
            while not await self.value("stalled", reason="held"):
                pass  # a collection waits for brokers


async def finding_of(admin, queue):
    findings = (await inspect_group(admin, queue.group)).findings
    return findings[TopicPartition(queue.topic, 0)][0]


async def finding_with(reason, admin, queue):
    """Inspect, each time without an earlier inspection, until a finding has it."""
    with anyio.fail_after(15):
        while (finding := await finding_of(admin, queue)).reason is not reason:
            pass  # an inspection waits for brokers
    return finding


@pytest.mark.slow("a lock ends in real time")
async def test_first_deploy_whose_handlers_hang_is_held(kafka, admin):
    queue = Queue(kafka.admin, **LOCK)
    produce_of_ten_minutes_ago(kafka, queue.topic)
    exported = Exported(admin, queue)
    began = anyio.Event()

    async def hang(record):
        began.set()
        await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(queue.worker(hang).run)
        await began.wait()
        finding = await finding_with(Reason.HELD, admin, queue)
        code = await check(kafka, queue.group)
        lag = await exported.value("lag_records")
        age = await exported.value("oldest_unsettled_age_seconds")
        await exported.wait_until_held()
        tasks.cancel_scope.cancel()

    assert (Reason.HELD, Severity.STALLED) == (finding.reason, finding.severity)
    assert "3 offsets wait, the first is offset 0, 10 min" in finding.text
    assert (1, 3) == (code, lag)
    assert 600 <= age < 700


@pytest.mark.slow("its member joins")
async def test_new_group_on_an_old_log_passes_the_check_for_the_time_of_a_lock(
    kafka, admin
):
    queue = Queue(kafka.admin)
    produce_of_ten_minutes_ago(kafka, queue.topic)
    async with queue.consumer(acknowledgement="explicit") as consumer:
        await anext(aiter(consumer))
        finding = await finding_of(admin, queue)
        code = await check(kafka, queue.group)

    assert (Reason.NOT_BEGUN, Severity.NOTE) == (finding.reason, finding.severity)
    assert "3 offsets wait, the first is offset 0, 10 min" in finding.text
    assert 0 == code


@pytest.mark.slow("its member joins")
@pytest.mark.parametrize("command", ["offsets", "describe"])
async def test_group_that_settled_nothing_has_the_lag_of_its_whole_log(
    kafka, admin, capsys, command
):
    queue = Queue(kafka.admin)
    queue.produce([b"x"] * 5)
    async with queue.consumer(acknowledgement="explicit") as consumer:
        await anext(aiter(consumer))
        servers = ["--bootstrap-server", kafka.bootstrap_servers]
        arguments = ["groups", command, queue.group, "--json", *servers]
        code = await to_thread.run_sync(main, arguments)

    (shown,) = json.loads(capsys.readouterr().out)
    row = shown["offsets"][0] if command == "describe" else shown
    assert (0, None, 5) == (code, row["start_offset"], row["lag"])


@pytest.mark.slow("a lock ends in real time")
async def test_group_that_worked_before_it_hangs_is_found_by_the_first_inspection(
    kafka, admin
):
    queue = Queue(kafka.admin, **LOCK)
    queue.produce([b"x"] * 3)
    began = anyio.Event()

    async def hang(record):
        if record.offset:
            began.set()
            await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(queue.worker(hang, concurrency=1).run)
        await began.wait()
        finding = await finding_with(Reason.NO_PROGRESS, admin, queue)
        tasks.cancel_scope.cancel()

    assert Severity.WARNING is finding.severity
    assert finding.text.startswith("nothing was settled or released for ")


async def test_group_at_the_end_of_the_log_says_how_many_records_are_before_it(
    kafka, admin
):
    queue = Queue(kafka.admin, **{"share.auto.offset.reset": "latest"})
    queue.produce([b"before"] * 3)
    async with queue.consumer() as consumer:
        await consumer.assigned()
        finding = await finding_of(admin, queue)

    assert Reason.SKIPPED is finding.reason
    assert "the group began at offset 3, by share.auto.offset.reset" in finding.text
    assert "settled nothing since: 3 offsets in the log before it" in finding.text


@pytest.mark.slow("a lock ends in real time")
async def test_group_at_the_end_of_the_log_is_held_only_by_records_that_it_received(
    kafka, admin
):
    queue = Queue(kafka.admin, **LOCK, **{"share.auto.offset.reset": "latest"})
    queue.produce([b"before"] * 3)
    exported = Exported(admin, queue)
    received = []

    async def hang(record):
        received.append(record.value)
        await anyio.sleep_forever()

    worker = queue.worker(hang)
    async with (
        # The first member of a group stores its start: then this group has started.
        ShareConsumer(
            kafka.admin.create_topic(),
            group_id=queue.group,
            bootstrap_servers=kafka.bootstrap_servers,
        ) as first,
        anyio.create_task_group() as tasks,
    ):
        await first.assigned()
        tasks.start_soon(worker.run)
        await worker.assigned()
        idle = await finding_of(admin, queue), await check(kafka, queue.group)
        assert await exported.value("lag_records") is None
        queue.produce([b"after"])
        await exported.wait_until_held()
        lag = await exported.value("lag_records")
        tasks.cancel_scope.cancel()

    assert [b"after"] == received
    assert (Reason.NOT_BEGUN, Severity.NOTE, 0) == (
        idle[0].reason,
        idle[0].severity,
        idle[1],
    )
    assert 1 == lag


async def test_group_of_an_empty_topic_is_not_held(kafka, admin):
    queue = Queue(kafka.admin, **LOCK)
    async with queue.consumer() as consumer:
        await consumer.assigned()
        finding = await finding_of(admin, queue)
        code = await check(kafka, queue.group)

    assert (Reason.NOT_BEGUN, 0) == (finding.reason, code)


@pytest.mark.slow("its members join and leave")
async def test_group_whose_members_left_early_has_lag_and_no_members(kafka, admin):
    queue = Queue(kafka.admin)
    queue.produce([b"x"] * 5)
    async with queue.consumer() as consumer:
        await consumer.assigned()
    exported = Exported(admin, queue)

    assert Reason.NO_MEMBERS is (await finding_of(admin, queue)).reason
    assert 1 == await check(kafka, queue.group)
    assert 5 == await exported.value("lag_records")
    assert 1 == await exported.value("stalled", reason="no_members")


async def move_leader(queue):
    new = min({1, 2, 3} - {queue.admin.leader(queue.topic)})
    await to_thread.run_sync(queue.admin.move_leader, queue.topic, 0, new)


@pytest.mark.kafka
@pytest.mark.slow("leaders move, and a lock ends in real time")
async def test_leader_that_read_a_full_window_stands_still_until_another_one_leads(
    kafka3,
):
    """Brokers acquire whole batches: two of them exceed the limit of the window."""
    queue = Queue(
        kafka3.admin,
        replication=2,
        **{
            "share.partition.max.record.locks": "100",
            "share.record.lock.duration.ms": "5000",
        },
    )
    for _ in range(5):
        queue.produce([b"x"] * BATCH)
    async with queue.consumer(acknowledgement="explicit") as consumer:
        records = aiter(consumer)
        _, *others = await take(records, 2 * BATCH)
        for record in others:
            record.accept()
        await consumer.commit()
        await move_leader(queue)
        (first,) = await take(records, 1)
        first.accept()
        await consumer.commit()
        servers = kafka3.bootstrap_servers
        async with ShareGroupAdmin(bootstrap_servers=servers) as admin:
            finding = await finding_with(Reason.NO_PROGRESS, admin, queue)
        more = await take(records, 1, within=1.0)
        await move_leader(queue)
        rest = await take(records, 3 * BATCH)

    assert 0 == first.offset
    assert [] == more
    assert "the leader of the partition stands still" in finding.text
    assert 3 * BATCH == len(rest)
