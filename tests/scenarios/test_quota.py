"""A consumer with a quota of bytes per second."""

import pytest

from tests.kafka_plugin import Kafka
from tests.scenarios.queue import Queue, take
from tests.scenarios.versions import since_4_2

pytestmark = [pytest.mark.anyio, since_4_2]


@pytest.mark.kafka
@pytest.mark.slow("the quota delays each response by seconds")
async def test_consumer_with_quota_loses_one_response_and_uses_the_quota(
    real_kafka: Kafka,
) -> None:
    """A quota of 200 kB/s allows two batches in eleven seconds; a third is lost.

    4,000 records take 34 s. A consumer that ignores the quota received 449 in 60 s.
    """
    admin = real_kafka.admin
    queue = Queue(admin)
    queue.produce([b"x" * 1000] * 4000, batch_size=1_000_000, linger_ms=60_000)
    client_id = f"limited-{queue.group}"
    admin.set_consumer_quota(client_id, 200_000)

    async with queue.consumer(client_id=client_id) as consumer:
        records = await take(aiter(consumer), 1900, within=18)

    assert list(range(1900)) == sorted(record.offset for record in records)
    assert {1, 2} == {record.delivery_count for record in records}
