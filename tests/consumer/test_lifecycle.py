"""Consumers that different tasks of an application start, use and stop.

The embedded broker runs in a thread of its own, so that every test here has sockets,
real time and an event loop that only the consumer uses.
"""

import asyncio
import gc
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing

import anyio
import pytest
import pytest_asyncio

from sharecons import ShareGroupAdmin
from sharecons.errors import ClosedError, ConsumerStateError, Error
from sharecons.testing import EmbeddedBroker
from sharecons.testing.pytest_plugin import SETTINGS
from tests.consumer.consuming import connecting, new_tasks, next_record
from tests.waiting import until

GROUP = "billing"


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param


@pytest.fixture
def broker(share_broker):
    share_broker.create_topic("orders")
    share_broker.set_group_config(GROUP, {"share.auto.offset.reset": "earliest"})
    share_broker.produce("orders", [b"%d" % i for i in range(10)])
    return share_broker


def members(broker, group=GROUP):
    """Return the ids of the members that the coordinator knows."""
    known = broker.cluster.groups.get(group)
    return set() if known is None else set(known.members)


# Fixtures of pytest-asyncio are set up, used and torn down in three tasks.


@pytest_asyncio.fixture
async def consumer_in_block(broker):
    async with connecting(broker) as consumer:
        yield consumer
    assert "closed" in repr(consumer)


@pytest_asyncio.fixture
async def started_consumer(broker):
    consumer = connecting(broker)
    await consumer.start()
    yield consumer
    await consumer.stop()
    assert "closed" in repr(consumer)


@pytest_asyncio.fixture
async def two_consumers(broker):
    async with (
        connecting(broker) as first,
        connecting(broker, group_id="other") as second,
    ):
        yield first, second


@pytest_asyncio.fixture
async def broker_in_block():
    async with EmbeddedBroker(topics={"orders": 1}, settings=SETTINGS) as broker:
        yield broker


@pytest_asyncio.fixture
async def consumer_of_broker_in_block(broker_in_block):
    broker_in_block.produce("orders", [b"x"])
    async with connecting(broker_in_block) as consumer:
        yield consumer


@pytest.mark.asyncio
async def test_fixture_with_a_block_serves_its_test(consumer_in_block):
    record = await next_record(consumer_in_block)
    record.accept()
    assert [None] == [result.error for result in await consumer_in_block.commit()]


@pytest.mark.asyncio
async def test_fixture_with_start_and_stop_serves_its_test(started_consumer):
    assert b"0" == (await next_record(started_consumer)).value


@pytest.mark.asyncio
async def test_fixture_with_two_consumers_serves_its_test(two_consumers):
    for consumer in two_consumers:
        assert b"0" == (await next_record(consumer)).value


@pytest.mark.asyncio
async def test_fixture_with_a_broker_on_the_same_loop_serves_its_test(
    consumer_of_broker_in_block,
):
    assert b"x" == (await next_record(consumer_of_broker_in_block)).value


@pytest.mark.asyncio
async def test_fixture_can_be_closed_by_its_test(consumer_in_block):
    await next_record(consumer_in_block)
    await consumer_in_block.aclose()
    with pytest.raises(ClosedError):
        await consumer_in_block.poll()


# Blocks that another task leaves, on asyncio.


async def values(broker) -> AsyncIterator[bytes | None]:
    async with connecting(broker) as consumer:
        async for record in consumer:
            yield record.value


@pytest.mark.asyncio
@pytest.mark.slow("the garbage collector finalizes a generator")
async def test_async_generator_left_by_break_leaves_the_group(broker):
    before = asyncio.all_tasks()
    async for value in values(broker):
        assert b"0" == value
        break
    gc.collect()  # asyncio closes the generator in a task of its own

    await until(lambda: not new_tasks(before), within=20)
    assert set() == members(broker)


@pytest.mark.asyncio
async def test_async_generator_left_by_break_and_closed_leaves_the_group(broker):
    async with aclosing(values(broker)) as generator:
        async for _ in generator:
            break

    assert set() == members(broker)


@pytest.mark.asyncio
async def test_exit_stack_closed_by_another_task_closes(broker):
    before = asyncio.all_tasks()
    stack = AsyncExitStack()
    consumer = await stack.enter_async_context(connecting(broker))
    kafka = await stack.enter_async_context(EmbeddedBroker())
    record = await next_record(consumer)
    record.accept()
    await asyncio.create_task(stack.aclose())

    assert set() == new_tasks(before)
    assert "closed" in repr(consumer)
    assert set() == members(broker)
    with pytest.raises(RuntimeError, match="is not running"):
        kafka.create_topic("more")


@pytest.mark.asyncio
async def test_consumer_continues_after_the_entering_task_ended(broker):
    stack = AsyncExitStack()
    consumer = await asyncio.create_task(stack.enter_async_context(connecting(broker)))

    assert b"0" == (await next_record(consumer)).value
    await stack.aclose()
    assert set() == members(broker)


@pytest.mark.asyncio
async def test_time_limit_around_another_task_ends_no_consumer(broker):
    """The tasks of a consumer are in no cancel scope of the application's."""
    stack = AsyncExitStack()
    with anyio.CancelScope() as scope:
        consumer = await stack.enter_async_context(connecting(broker))
        scope.cancel()
        await asyncio.sleep(0)

    assert b"0" == (await next_record(consumer)).value
    await stack.aclose()


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["consumers", "brokers"])
async def test_first_entered_can_be_left_first(broker, kind):
    def made():
        return connecting(broker) if kind == "consumers" else EmbeddedBroker()

    first, second = made(), made()
    async with AsyncExitStack() as rest:
        await first.__aenter__()
        await rest.enter_async_context(second)
        with anyio.CancelScope() as scope:
            await first.__aexit__(None, None, None)
        assert not scope.cancelled_caught
        if kind == "consumers":
            await next_record(second)
        else:
            second.create_topic("orders")

    assert set() == members(broker)


@pytest.mark.anyio
async def test_admin_can_be_started_and_stopped_by_any_task(broker):
    first = ShareGroupAdmin(bootstrap_servers=broker.bootstrap_servers)
    second = ShareGroupAdmin(bootstrap_servers=broker.bootstrap_servers)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(first.start)
    await second.__aenter__()
    for admin in (first, second):
        assert {1} == set((await admin.describe_cluster()).brokers)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(first.stop)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(second.__aexit__, None, None, None)

    for admin in (first, second):
        with pytest.raises(ClosedError):
            await admin.start()
        with pytest.raises(ClosedError):
            await admin.describe_cluster()


@pytest.mark.anyio
async def test_broker_can_be_started_and_stopped_by_any_task():
    kafka = EmbeddedBroker(topics={"orders": 1}, settings=SETTINGS)
    await kafka.stop()
    for _ in range(2):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(kafka.start)
        with pytest.raises(RuntimeError, match="is running already"):
            await kafka.start()
        kafka.produce("orders", [b"x"])
        async with connecting(kafka) as consumer:
            await next_record(consumer)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(kafka.stop)
        with pytest.raises(RuntimeError, match="is not running"):
            kafka.produce("orders", [b"x"])
        kafka = EmbeddedBroker(topics={"orders": 1}, settings=SETTINGS)


# start and stop.


@pytest.mark.asyncio
async def test_start_and_stop_in_different_tasks(broker):
    before = asyncio.all_tasks()
    consumer = connecting(broker)
    await asyncio.create_task(consumer.start())
    assert b"0" == (await next_record(consumer)).value
    await asyncio.create_task(consumer.stop())

    assert set() == members(broker)
    assert set() == new_tasks(before)


@pytest.mark.asyncio
async def test_start_of_a_started_consumer_is_rejected(broker):
    consumer = connecting(broker)
    await consumer.start()
    with pytest.raises(ConsumerStateError, match="is open"):
        await consumer.start()

    assert b"0" == (await next_record(consumer)).value
    await consumer.stop()
    with pytest.raises(ConsumerStateError, match="is closed"):
        await consumer.start()


@pytest.mark.asyncio
async def test_start_while_starting_is_rejected(broker):
    consumer = connecting(broker)
    starting = asyncio.create_task(consumer.start())
    await asyncio.sleep(0)
    with pytest.raises(ConsumerStateError, match="is starting"):
        await consumer.start()

    await starting
    await consumer.stop()


@pytest.mark.anyio
async def test_stop_twice_is_stop_once(broker):
    async with connecting(broker) as consumer:
        await next_record(consumer)
        await consumer.stop()
        await consumer.stop()

    assert set() == members(broker)


@pytest.mark.anyio
async def test_stopped_before_it_started_never_starts(broker):
    consumer = connecting(broker)
    await consumer.stop()

    assert frozenset() == consumer.assignment
    with pytest.raises(ConsumerStateError, match="is closed"):
        await consumer.__aenter__()


@pytest.mark.anyio
async def test_stop_while_starting_ends_the_start(broker):
    broker.faults.on("ApiVersions", times=None).stall()
    consumer = connecting(broker)
    errors = []

    async def enter():
        try:
            await consumer.__aenter__()
        except Error as error:
            errors.append(error)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(enter)
            await until(lambda: broker.requests)
            await consumer.stop()

    assert [ClosedError] == [type(error) for error in errors]
    assert "closed" in repr(consumer)


@pytest.mark.anyio
async def test_failed_start_can_be_repeated(broker):
    broker.stop_broker(1)
    consumer = connecting(broker, connect_timeout=0.1)
    with pytest.raises(Error):
        await consumer.__aenter__()
    broker.start_broker(1)

    async with consumer:
        assert b"0" == (await next_record(consumer)).value


@pytest.mark.asyncio
async def test_cancelled_start_leaves_no_task(broker):
    before = asyncio.all_tasks()
    broker.faults.on("DescribeConfigs", times=None).stall()
    consumer = connecting(broker)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(consumer.start(), 0.1)

    assert set() == new_tasks(before)
    assert "new" in repr(consumer)


@pytest.mark.asyncio
async def test_cancelled_stop_leaves_no_task(broker):
    before = asyncio.all_tasks()
    consumer = connecting(broker)
    await consumer.start()
    await next_record(consumer)
    broker.faults.on("ShareFetch", times=None).stall()
    broker.faults.on("ShareAcknowledge", times=None).stall()
    broker.faults.on("ShareGroupHeartbeat", times=None).stall()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(consumer.stop(), 0.1)

    assert set() == new_tasks(before)
    assert "closed" in repr(consumer)


@pytest.mark.anyio
async def test_second_close_waits_for_the_first(broker):
    order = []
    async with connecting(broker) as consumer:
        await next_record(consumer)
        broker.faults.on("ShareGroupHeartbeat").delay(0.1)

        async def close(name):
            await consumer.aclose()
            order.append((name, members(broker)))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(close, "first")
            await anyio.lowlevel.checkpoint()
            tasks.start_soon(close, "second")

    assert {"first", "second"} == {name for name, _ in order}
    assert [set(), set()] == [left for _, left in order]


@pytest.mark.anyio
async def test_second_close_has_its_own_time_limit(broker):
    async with connecting(broker) as consumer:
        await next_record(consumer)
        broker.faults.on("ShareAcknowledge", times=None).stall()
        broker.faults.on("ShareFetch", times=None).stall()
        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(consumer.aclose)
                await anyio.lowlevel.checkpoint()
                await consumer.aclose(timeout=0.1)

        assert "closed" in repr(consumer)


# Programs that end without a stop.


def test_loop_that_ends_with_an_open_consumer_ends_it(broker):
    async def main():
        consumer = connecting(broker)
        await consumer.start()
        await next_record(consumer)

    asyncio.run(asyncio.wait_for(main(), 20))


@pytest.mark.slow("starts a process")
def test_program_that_forgets_to_stop_ends_silently(broker):
    program = (
        "import asyncio\n"
        "from sharecons import ShareConsumer\n"
        "async def main():\n"
        f"    consumer = ShareConsumer('orders', group_id={GROUP!r},\n"
        f"        bootstrap_servers={broker.bootstrap_servers!r})\n"
        "    await consumer.start()\n"
        "    await anext(aiter(consumer))\n"
        "asyncio.run(main(), debug=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert (0, "") == (done.returncode, done.stdout)
    assert "never" not in done.stderr
    assert "destroyed" not in done.stderr
    assert "Traceback" not in done.stderr


# Calls that structured concurrency does not allow, on trio.


@pytest.mark.parametrize("anyio_backend", ["trio"])
@pytest.mark.anyio
async def test_start_on_trio_names_the_block(broker, anyio_backend):
    consumer = connecting(broker)
    with pytest.raises(ConsumerStateError, match="async with"):
        await consumer.start()
    async with consumer:
        assert b"0" == (await next_record(consumer)).value


@pytest.mark.parametrize("anyio_backend", ["trio"])
@pytest.mark.anyio
async def test_left_by_another_task_on_trio_is_closed_and_raises(broker, anyio_backend):
    stack = AsyncExitStack()
    consumer = await stack.enter_async_context(connecting(broker))
    await next_record(consumer)
    errors = []

    async def leave():
        try:
            await stack.aclose()
        except Error as error:
            errors.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(leave)

    assert [ConsumerStateError] == [type(error) for error in errors]
    assert "another" in str(errors[0])
    assert set() == members(broker)
    async with connecting(broker) as consumer:
        await next_record(consumer)


@pytest.mark.slow("the garbage collector finalizes a generator")
def test_generator_left_by_break_on_trio_leaves_the_group(broker):
    trio = pytest.importorskip("trio")

    async def main():
        async for _ in values(broker):
            break
        gc.collect()
        await until(lambda: not members(broker))

    with pytest.warns(ResourceWarning, match="aclosing"):
        trio.run(main)


def test_consumer_that_is_never_left_does_not_keep_trio_from_ending(broker):
    trio = pytest.importorskip("trio")

    async def main():
        await next_record(await connecting(broker).__aenter__())

    trio.run(main)
