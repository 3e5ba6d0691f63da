"""The end of a record's last delivery, checked on a real broker with raw requests.

Delivery number `share.delivery.count.limit` is the last one. Each end of
it, except an accept, archives the record: so a worker writes its dead letter first.
"""

from typing import Final

import pytest

from sharecons.protocol.partitions import SharePartition
from tests.kafka_plugin import Admin
from tests.scenarios.queue import Queue
from tests.scenarios.raw import RELEASE, RawMember, acks, delivery_counts
from tests.scenarios.repeating import repeat
from tests.scenarios.share_state import share_group_state
from tests.scenarios.versions import since_4_3

pytestmark = [pytest.mark.anyio, since_4_3]

LIMIT: Final = 2
ARCHIVED: Final = 4


@pytest.fixture
def anyio_backend() -> str:
    """One event loop is enough to test a broker."""
    return "asyncio"


async def deliver_twice(member: RawMember, partition: SharePartition) -> None:
    """Fetch two records, and the second one again, which is its last delivery."""
    assert {0: 1, 1: 1} == delivery_counts(await member.fetch_one(partition))
    await member.acknowledge(acks(partition, (1, 1, RELEASE)))
    assert {1: LIMIT} == delivery_counts(await member.fetch_one(partition))


async def end_delivery(member: RawMember, partition: SharePartition, way: str) -> None:
    if way == "release":
        await member.acknowledge(acks(partition, (0, 1, RELEASE)))
    elif way == "close":
        await member.acknowledge({}, epoch=-1)
        member.session_epoch = 0
    elif way == "connection":
        await member.reconnect()


@pytest.mark.parametrize("way", ["release", "lock ends", "connection", "close"])
async def test_every_end_of_the_last_delivery_archives_the_record(
    admin: Admin, way: str
) -> None:
    lock = {"share.record.lock.duration.ms": "1000"} if way == "lock ends" else {}
    queue = Queue(admin, **{"share.delivery.count.limit": str(LIMIT)}, **lock)
    queue.produce([b"0", b"1"], partition=0)
    async with RawMember(admin.bootstrap_servers, queue.group) as member:
        (partition,) = await member.join(queue.topic)
        await deliver_twice(member, partition)
        await end_delivery(member, partition, way)

        async def fetch() -> dict[int, int]:
            return delivery_counts(await member.fetch_one(partition, wait=0.5))

        delivered = [await repeat(fetch, until=bool)]
        delivered.append(await fetch())
        states = share_group_state(
            admin.bootstrap_servers, queue.group, partition.topic_id, 0
        )

    assert [{0: 2}, {}] == delivered
    assert (1, 1, ARCHIVED, LIMIT) in states
