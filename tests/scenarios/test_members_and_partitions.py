"""Which member receives records of which partition, as docs/concepts.md says."""

from collections import Counter
from contextlib import AsyncExitStack, suppress
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


Members = list[ShareConsumer[Any, Any]]


def counts(members: Members) -> tuple[list[int], list[int]]:
    """Return the partitions of each member, and the members of each partition."""
    held = Counter(at for member in members for at in member.assignment)
    return sorted(len(member.assignment) for member in members), sorted(held.values())


async def join(
    stack: AsyncExitStack, queue: Queue, expected: tuple[list[int], list[int]]
) -> Members:
    """Start a member for each expected one; wait until they have these partitions."""
    members = [await stack.enter_async_context(queue.consumer()) for _ in expected[0]]
    with suppress(TimeoutError):  # the counts say more
        await until(lambda: counts(members) == expected, within=30)
    assert expected == counts(members)
    return members


@pytest.mark.parametrize(
    ("partitions_of_members", "members_of_partitions"),
    [
        ([3], [1, 1, 1]),
        ([1, 1], [1, 1]),
        ([1, 2], [1, 1, 1]),
        ([1, 1, 1, 1], [2, 2]),
        ([1, 1, 1, 1], [4]),
        ([1, 1, 1, 1, 2], [3, 3]),
    ],
)
async def test_members_are_assigned_partitions_evenly(
    admin: AnyAdmin, partitions_of_members: list[int], members_of_partitions: list[int]
) -> None:
    queue = Queue(admin, partitions=len(members_of_partitions))
    async with AsyncExitStack() as stack:
        await join(stack, queue, (partitions_of_members, members_of_partitions))


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
        joined = await join(stack, queue, ([1, 1, 1, 1], [2, 2]))
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
        joined = await join(stack, queue, ([1, 1], [1, 1]))
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
