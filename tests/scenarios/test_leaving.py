"""Members that leave while their coordinator moves to another broker."""

import anyio
import anyio.to_thread
import pytest

from sharecons.admin import ShareGroupAdmin
from tests.kafka_plugin import Admin, Kafka
from tests.scenarios.embedded_admin import ON_ASYNCIO
from tests.scenarios.queue import Queue, take

pytestmark = [
    pytest.mark.anyio,
    ON_ASYNCIO,
    pytest.mark.slow("a broker is stopped and started again"),
    pytest.mark.timeout(120),
]


async def test_member_that_closes_after_its_coordinator_stopped_leaves_the_group(
    admin3: Admin, kafka3: Kafka
) -> None:
    queue = Queue(admin3, replication=3)
    coordinator = admin3.group_coordinator(queue.group)
    queue.produce([b"0"])
    async with queue.consumer() as consumer:
        await take(aiter(consumer), 1)
        await anyio.to_thread.run_sync(kafka3.cluster.stop_broker, coordinator)
        await consumer.aclose(timeout=30)

    async with ShareGroupAdmin(bootstrap_servers=admin3.bootstrap_servers) as admin:
        assert not (await admin.describe_group(queue.group)).members
