"""A topic with many partitions; each fetch requests some of them."""

from collections import Counter
from typing import Any, Final

import anyio
import pytest

from sharecons.protocol.fetch.partition_rotation import PART_SIZE
from sharecons.testing.broker.codec import decode_request
from tests.scenarios.embedded_admin import ON_BOTH, AnyAdmin
from tests.scenarios.queue import Queue, remaining_records
from tests.scenarios.watched import WatchedNetwork

pytestmark = [pytest.mark.anyio, ON_BOTH]


@pytest.fixture
def admin(any_admin: AnyAdmin) -> AnyAdmin:
    return any_admin


PARTITIONS: Final = 120  # one member has a third of them, or all
RECORDS: Final = 200  # per partition


def count_partition_removals(network: WatchedNetwork) -> int:
    """Return the number of fetches that removed many partitions from the session."""
    requests = [decode_request(data[4:])[1] for data in network.sent]
    forgotten = [getattr(request, "forgotten_topics_data", ()) for request in requests]
    return sum(
        sum(len(topic.partitions) for topic in topics) >= PART_SIZE
        for topics in forgotten
    )


async def test_three_consumers_receive_each_record_of_many_partitions_once(
    admin: AnyAdmin,
) -> None:
    queue = Queue(admin, PARTITIONS)
    for partition in range(PARTITIONS):
        values = [b"%d" % i for i in range(RECORDS)]
        queue.produce(values, partition=partition)
    network = WatchedNetwork(admin.network)
    offsets: Counter[tuple[int, int]] = Counter()
    deliveries: Counter[int] = Counter()
    all_received = anyio.Event()
    failed = []

    def acknowledged(results: Any) -> None:
        failed.extend(result for result in results if result.error)

    async def consume() -> None:
        async with queue.consumer(
            network=network, max_records=300, on_acknowledged=acknowledged
        ) as consumer:
            async for batch in consumer.batches():
                offsets.update((r.partition, r.offset) for r in batch)
                deliveries.update(r.delivery_count for r in batch)
                if len(offsets) == PARTITIONS * RECORDS:
                    all_received.set()  # the next request accepts the last records

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(consume)
            await all_received.wait()
            tasks.cancel_scope.cancel()

    assert len(offsets) == PARTITIONS * RECORDS
    assert {1} == set(offsets.values())
    assert {1} == set(deliveries)
    assert [] == failed
    assert count_partition_removals(network)
    assert [] == await remaining_records(queue)
