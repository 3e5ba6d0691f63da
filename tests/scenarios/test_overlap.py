"""Fetches in flight while the application processes records."""

from typing import Any

import anyio
import pytest

from tests.kafka_plugin import Admin
from tests.scenarios.queue import Queue, take
from tests.scenarios.watched import WatchedNetwork

pytestmark = pytest.mark.anyio


MAX_ATTEMPTS = 3
"""A busy machine can run the tasks in an unfavourable order."""


async def test_next_fetch_is_sent_before_batch_is_delivered(
    admin: Admin,
) -> None:
    share = 0.0
    for _ in range(MAX_ATTEMPTS):
        share = max(share, await share_of_fetches_ahead(admin))
        if share > 0.8:
            break
    assert share > 0.8


async def share_of_fetches_ahead(admin: Admin) -> float:
    queue = Queue(admin)
    queue.produce([b"%d" % i for i in range(20_000)])
    network, ahead = WatchedNetwork(), []
    with anyio.fail_after(30):
        async with queue.consumer(
            network=network, max_records=300, acquire_mode="record_limit"
        ) as consumer:
            left = 20_000
            async for batch in consumer.batches():
                # A fast fetch has perhaps already returned its records.
                ahead.append(
                    network.in_flight > 0
                    or network.fetches_with_records > len(ahead) + 1
                )
                left -= len(batch)
                if not left:
                    break

    # The first fetches measure the consumer's speed; the last have no successor.
    judged = ahead[15:-3]
    assert network.fetches_with_records == len(ahead)
    assert len(judged) > 15
    return judged.count(True) / len(judged)


async def test_callbacks_run_in_task(admin: Admin) -> None:
    """Callbacks can use anyio, which needs a task."""
    queue = Queue(admin)
    tasks = set()

    def acknowledged(results: Any) -> None:
        tasks.add(anyio.get_current_task().id)

    async with queue.consumer(on_acknowledged=acknowledged) as consumer:
        records = aiter(consumer)
        for i in range(20):
            queue.produce([b"%d" % i])
            assert 1 == len(await take(records, 1))
        await consumer.commit()

    assert tasks
    assert anyio.get_current_task().id not in tasks
