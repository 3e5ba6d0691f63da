"""A leader of a real Kafka that delivers nothing more of a partition."""

from functools import partial

import anyio
import pytest
from anyio import to_thread

from sharecons import TopicPartition
from sharecons.admin import ShareGroupAdmin
from sharecons.inspection import Reason, inspect_group
from tests.scenarios.queue import Queue, take

pytestmark = [pytest.mark.anyio, pytest.mark.kafka]

BATCH = 60
LOCKS = 100
"""Less than two batches: brokers acquire whole ones, so the window has 120 offsets."""

LOCK = 5.0


async def finding_with(reason, queue):
    """Inspect until the first finding about the partition has this reason."""
    servers = queue.admin.bootstrap_servers
    async with ShareGroupAdmin(bootstrap_servers=servers) as admin:
        with anyio.fail_after(30):
            while True:
                findings = (await inspect_group(admin, queue.group)).findings
                finding = findings[TopicPartition(queue.topic, 0)][0]
                if finding.reason is reason:
                    return finding


async def move_leader(queue):
    new = min({1, 2, 3} - {queue.admin.leader(queue.topic)})
    await to_thread.run_sync(partial(queue.admin.move_leader, queue.topic, 0, new))


@pytest.mark.slow("leaders move, and a lock ends in real time")
async def test_leader_that_read_a_full_window_stands_still_until_another_one_leads(
    kafka3,
):
    queue = Queue(
        kafka3.admin,
        replication=2,
        **{
            "share.partition.max.record.locks": str(LOCKS),
            "share.record.lock.duration.ms": str(int(LOCK * 1000)),
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
        finding = await finding_with(Reason.NO_PROGRESS, queue)
        more = await take(records, 1, within=1.0)
        await move_leader(queue)
        rest = await take(records, 3 * BATCH)

    assert 0 == first.offset
    assert [] == more
    assert "the leader of the partition stands still" in finding.text
    assert 3 * BATCH == len(rest)
