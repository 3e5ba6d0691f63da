"""Waiting until a worker has partitions."""

import anyio
import pytest

from sharecons.errors import ClosedError
from tests.net.embedded import running
from tests.worker.working import Handled, working

pytestmark = pytest.mark.anyio


async def test_assigned_before_the_start_returns_the_partitions():
    async with running(partitions=2) as broker:
        async with working(broker, Handled()) as worker:
            assigned = await worker.assigned()

    assert {0, 1} == {each.partition for each in assigned}


async def test_end_of_the_worker_ends_a_wait_for_partitions():
    async with running(topic=None) as broker:
        async with anyio.create_task_group() as tasks:
            async with working(broker, Handled()) as worker:

                async def wait():
                    with pytest.raises(ClosedError):
                        await worker.assigned()

                tasks.start_soon(wait)
                await anyio.sleep(1)

        with pytest.raises(ClosedError, match="has ended"):
            await worker.assigned()
