"""Fetching and work at once: what is under way when the application is served."""

from typing import Any

import anyio
import pytest

from tests.kafka_plugin import Admin
from tests.scenarios.queue import Queue, take
from tests.scenarios.watched import WatchedNetwork

pytestmark = pytest.mark.anyio


TRIES = 3
"""A machine that is busy elsewhere lets whom it likes run first."""


async def test_next_fetch_is_on_its_way_before_what_came_is_worked(
    admin: Admin,
) -> None:
    share = 0.0
    for _ in range(TRIES):
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
                # Or what it brought is here, where it was quicker than the machine.
                ahead.append(network.under_way > 0 or network.brought > len(ahead) + 1)
                left -= len(batch)
                if not left:
                    break

    # The first ones find out how fast this consumer is; after the last there is none.
    judged = ahead[15:-3]
    assert network.brought == len(ahead)
    assert len(judged) > 15
    return judged.count(True) / len(judged)


async def test_while_much_comes_the_next_fetch_is_sent(
    admin: Admin, anyio_backend_name: str
) -> None:
    """Where a wire goes on by itself; each record comes once, and in order."""
    queue = Queue(admin, partitions=6)
    network = WatchedNetwork()
    wanted = 1 if anyio_backend_name == "trio" else 2
    value = b"x" * 4096
    produced = got = 0
    next_offset = [0] * 6
    with anyio.fail_after(60):
        async with queue.consumer(network=network, max_records=500) as consumer:
            batches = aiter(consumer.batches())
            while produced < 12_000 or (network.most < wanted and produced < 60_000):
                queue.produce([value] * 12_000)
                produced += 12_000
                while got < produced:
                    batch = await anext(batches)
                    got += len(batch)
                    for record in batch:
                        assert record.offset == next_offset[record.partition]
                        next_offset[record.partition] += 1

    assert network.most == wanted


async def test_callbacks_run_in_a_task(admin: Admin) -> None:
    """Where all of anyio can be used, though answers are read outside of any task."""
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
