"""Consumers that wait for records."""

from typing import Any

import anyio
import pytest

from sharecons import ShareConsumer
from tests.scenarios.embedded_admin import ON_BOTH, AnyAdmin
from tests.scenarios.queue import Queue
from tests.waiting import until

pytestmark = [pytest.mark.anyio, ON_BOTH]


@pytest.fixture
def admin(any_admin: AnyAdmin) -> AnyAdmin:
    return any_admin


def fetches(consumer: ShareConsumer[Any, Any]) -> float:
    return consumer.metrics()["fetch-total"]


async def test_idle_consumers_receive_record_immediately(admin: AnyAdmin) -> None:
    queue = Queue(admin)
    async with queue.consumer() as one, queue.consumer() as other:
        async with anyio.create_task_group() as tasks:
            delays: list[float] = []

            async def read(consumer) -> None:
                async for record in consumer:
                    delay = anyio.current_time() - float(record.value)
                    delays.append(delay)

            tasks.start_soon(read, one)
            tasks.start_soon(read, other)
            # Several fetches have returned no records: each waits for half a second.
            await until(lambda: min(fetches(one), fetches(other)) >= 4)
            for number in range(10):
                queue.produce([str(anyio.current_time()).encode()])
                await until(lambda count=number + 1: len(delays) == count)
                # real time: the next record arrives later in the broker's wait
                await anyio.sleep(0.05 * number)
            tasks.cancel_scope.cancel()

    assert 10 == len(delays)
    assert sorted(delays)[8] < 0.2
