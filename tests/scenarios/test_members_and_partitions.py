"""Which member receives records of which partition, as docs/concepts.md says."""

from collections import Counter
from contextlib import AsyncExitStack
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


async def join(
    stack: AsyncExitStack, queue: Queue, members: int, partitions: int
) -> list[ShareConsumer[Any, Any]]:
    """Start the members; return them once every partition has its share of them."""
    joined = [await stack.enter_async_context(queue.consumer()) for _ in range(members)]
    each = -(-members // partitions)

    def is_balanced() -> bool:
        held = Counter(at for member in joined for at in member.assignment)
        return (
            all(member.assignment for member in joined[:partitions])
            and len(held) == partitions
            and max(held.values()) <= each
            and sum(held.values()) >= members
        )

    await until(is_balanced, within=30)
    return joined


@pytest.mark.parametrize(
    ("members", "partitions", "partitions_of_members", "members_of_partitions"),
    [
        (1, 3, [3], [1, 1, 1]),
        (2, 2, [1, 1], [1, 1]),
        (2, 3, [1, 2], [1, 1, 1]),
        (4, 2, [1, 1, 1, 1], [2, 2]),
        (4, 1, [1, 1, 1, 1], [4]),
        (5, 2, [1, 1, 1, 1, 2], [3, 3]),
    ],
)
async def test_members_are_assigned_partitions_evenly(
    admin: AnyAdmin,
    members: int,
    partitions: int,
    partitions_of_members: list[int],
    members_of_partitions: list[int],
) -> None:
    queue = Queue(admin, partitions=partitions)
    async with AsyncExitStack() as stack:
        joined = await join(stack, queue, members, partitions)

        held = Counter(at for member in joined for at in member.assignment)
        assert partitions_of_members == sorted(len(m.assignment) for m in joined)
        assert members_of_partitions == sorted(held.values())


async def test_members_of_one_partition_leave_the_other_partition_alone(
    admin: AnyAdmin,
) -> None:
    queue = Queue(admin, partitions=2)
    received: Counter[int] = Counter()

    async def read(number: int, consumer: ShareConsumer[Any, Any]) -> None:
        async for _ in consumer:
            received[number] += 1
            await until(lambda: len(received) == 2)  # one member cannot take all

    async with AsyncExitStack() as stack:
        joined = await join(stack, queue, 4, 2)
        async with anyio.create_task_group() as tasks:
            for number, consumer in enumerate(joined):
                tasks.start_soon(read, number, consumer)
            queue.produce([b"%d" % number for number in range(200)], partition=0)
            await until(lambda: received.total() == 200, within=30)
            tasks.cancel_scope.cancel()

        of_partition_0 = {
            number
            for number, consumer in enumerate(joined)
            if 0 in {at.partition for at in consumer.assignment}
        }
        assert 2 == len(of_partition_0)
        assert of_partition_0 == received.keys()


async def test_slow_member_keeps_its_partition_waiting_while_the_other_is_idle(
    admin: AnyAdmin,
) -> None:
    queue = Queue(admin, partitions=2)
    received: Counter[int] = Counter()

    async def read(number: int, consumer: ShareConsumer[Any, Any]) -> None:
        async for _ in consumer:
            received[number] += 1
            if number == 0:
                await anyio.sleep_forever()

    async with AsyncExitStack() as stack:
        joined = await join(stack, queue, 2, 2)
        async with anyio.create_task_group() as tasks:
            for number, consumer in enumerate(joined):
                tasks.start_soon(read, number, consumer)
            for partition in (0, 1):
                queue.produce([b"x"] * 20, partition=partition)
            await until(lambda: received[0] == 1 and received[1] == 20, within=30)
            before = joined[1].metrics()["fetch-total"]
            # Each of these fetches has waited for half a second, and returned nothing.
            await until(lambda: joined[1].metrics()["fetch-total"] >= before + 4)
            tasks.cancel_scope.cancel()

        assert {0: 1, 1: 20} == received
