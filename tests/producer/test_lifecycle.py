"""A producer that tasks of an application start, use and stop, over sockets."""

import asyncio
import threading

import pytest
import pytest_asyncio

from sharecons import Producer
from sharecons.errors import ConsumerStateError, WrongThreadError


@pytest.fixture
def broker(share_broker):
    share_broker.create_topic("orders")
    return share_broker


# Fixtures of pytest-asyncio are set up, used and torn down in three tasks.


@pytest_asyncio.fixture
async def producer_in_block(broker):
    async with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        yield producer
    assert "closed" in repr(producer)


@pytest_asyncio.fixture
async def started_producer(broker):
    producer = Producer(bootstrap_servers=broker.bootstrap_servers)
    await producer.start()
    yield producer
    await producer.stop()
    assert "closed" in repr(producer)


@pytest.mark.asyncio
async def test_fixtures_can_start_and_stop_producers(
    broker, producer_in_block, started_producer
) -> None:
    await producer_in_block.send("orders", b"a")
    await asyncio.create_task(started_producer.send("orders", b"b"))

    assert [b"a", b"b"] == [record.value for record in broker.records("orders")]


@pytest.mark.asyncio
async def test_no_task_is_left_after_the_block(broker) -> None:
    before = asyncio.all_tasks()

    async with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        await producer.send("orders", b"a")

    assert before == {task for task in asyncio.all_tasks() if not task.done()}


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_start_on_trio_is_rejected(broker) -> None:
    with pytest.raises(ConsumerStateError, match="start.. is for asyncio"):
        await Producer(bootstrap_servers=broker.bootstrap_servers).start()


@pytest.mark.asyncio
async def test_call_from_another_thread_is_rejected(broker) -> None:
    errors: list[Exception] = []

    async with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:

        def call() -> None:
            try:
                asyncio.run(producer.send("orders", b"a"))
            except WrongThreadError as error:
                errors.append(error)

        thread = threading.Thread(target=call)
        thread.start()
        await asyncio.to_thread(thread.join)

    assert "the producer was called outside of the event loop" in str(errors[0])
    assert () == tuple(broker.records("orders"))
