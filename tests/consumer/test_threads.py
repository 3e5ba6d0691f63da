"""Calls from threads and event loops other than the consumer's.

They raise WrongThreadError and change nothing: the same call then works in the
consumer's own event loop, and the consumer continues and closes.
"""

import asyncio
import threading
from functools import partial

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest

from sharecons.admin import ShareGroupAdmin
from sharecons.errors import WrongThreadError
from sharecons.testing import OffsetState
from tests.consumer.consuming import connecting

VERBS = ["accept", "release", "reject", "renew"]

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "asyncio in debug mode", "trio"])
def anyio_backend(request):
    name, _, debug = request.param.partition(" ")
    return (name, {"debug": True}) if debug else name


@pytest.fixture
def broker(share_broker):
    share_broker.create_topic("orders")
    share_broker.produce("orders", [b"%d" % i for i in range(20)])
    return share_broker


def consuming(broker, **options):
    return connecting(broker, **{"acknowledgement": "explicit", **options})


async def in_thread(call):
    """Run a call in a worker thread; return the exception that it raises, or None."""
    try:
        await anyio.to_thread.run_sync(call)
    except Exception as error:
        return error
    return None


async def take(consumer, count):
    taken = []
    with anyio.fail_after(20):
        async for record in consumer:
            taken.append(record)
            if len(taken) == count:
                return taken


def unsettled(broker):
    """Return the offsets that are not acknowledged; none of them is acquired."""
    orders = broker.group("billing").partition("orders")
    states = {each.offset: each.state for each in orders.in_flight}
    assert OffsetState.ACQUIRED not in states.values()
    offsets = range(orders.start_offset, orders.end_offset)
    return [each for each in offsets if states.get(each) != OffsetState.ACKNOWLEDGED]


@pytest.mark.parametrize("verb", VERBS)
async def test_verb_in_a_worker_thread_is_rejected_and_changes_nothing(broker, verb):
    async with consuming(broker) as consumer:
        # Only the first call finds a batch without acknowledgements.
        for record in await take(consumer, 4):
            error = await in_thread(getattr(record, verb))
            assert isinstance(error, WrongThreadError), error
            assert f"{verb} orders-0@{record.offset}" in str(error)
            assert "call_soon_threadsafe" in str(error)
            record.accept()
        with anyio.fail_after(10):
            results = await consumer.commit()
        assert [None] * len(results) == [result.error for result in results]
        assert len(await take(consumer, 4)) == 4
        before = anyio.current_time()
    assert anyio.current_time() - before < 5

    assert list(range(4, 20)) == unsettled(broker)


@pytest.mark.parametrize("verb", VERBS)
async def test_verb_of_a_batch_in_a_worker_thread_is_rejected(broker, verb):
    async with consuming(broker) as consumer:
        batch = await anext(consumer.batches())
        error = await in_thread(getattr(batch, verb))
        assert isinstance(error, WrongThreadError), error
        batch.accept()
        with anyio.fail_after(10):
            await consumer.commit()

    assert list(range(len(batch), 20)) == unsettled(broker)


async def test_verb_sent_to_the_event_loop_by_a_thread_is_applied(broker):
    async with consuming(broker) as consumer:
        for record in await take(consumer, 3):
            send = partial(anyio.from_thread.run_sync, record.accept)
            assert await in_thread(send) is None
        with anyio.fail_after(10):
            await consumer.commit()

    assert list(range(3, 20)) == unsettled(broker)


@pytest.mark.parametrize("anyio_backend", ["asyncio", ("asyncio", {"debug": True})])
async def test_verb_sent_by_call_soon_threadsafe_is_applied(broker):
    loop = asyncio.get_running_loop()
    async with consuming(broker) as consumer:
        for record in await take(consumer, 3):
            await asyncio.to_thread(loop.call_soon_threadsafe, record.accept)
        with anyio.fail_after(10):
            await consumer.commit()

    assert list(range(3, 20)) == unsettled(broker)


async def test_many_simultaneous_threads_change_nothing(broker):
    async with consuming(broker) as consumer:
        records = await take(consumer, 10)
        errors = []

        def storm():
            for _ in range(20):
                for record in records:
                    try:
                        record.release()
                    except WrongThreadError as error:
                        errors.append(error)

        threads = [threading.Thread(target=storm) for _ in range(4)]
        for thread in threads:
            thread.start()
        for record in records:
            record.accept()
            await anyio.sleep(0.01)  # real time: the threads run meanwhile
        for thread in threads:
            await anyio.to_thread.run_sync(thread.join)
        with anyio.fail_after(10):
            await consumer.commit()

    assert len(errors) == 4 * 20 * 10
    assert list(range(10, 20)) == unsettled(broker)


PLAIN = {
    "subscribe": lambda consumer: consumer.subscribe("other"),
    "unsubscribe": lambda consumer: consumer.unsubscribe(),
    "aiter": aiter,
    "batches": lambda consumer: consumer.batches(),
}
AWAITED = {
    "poll": lambda consumer: consumer.poll(timeout=1),
    "commit": lambda consumer: consumer.commit(),
    "aclose": lambda consumer: consumer.aclose(),
    "stop": lambda consumer: consumer.stop(),
    "leave": lambda consumer: consumer.__aexit__(None, None, None),
    "next of a loop": lambda consumer: anext(consumer.kept_loop),
    "next of batches": lambda consumer: anext(consumer.kept_batches),
}


@pytest.mark.parametrize("call", [*PLAIN, *AWAITED])
@pytest.mark.parametrize("other", ["asyncio", "trio"])
async def test_call_in_another_event_loop_is_rejected(broker, call, other):
    async with consuming(broker) as consumer:
        (record,) = await take(consumer, 1)
        if call == "next of batches":
            consumer.kept_batches = consumer.batches()
        elif call == "next of a loop":
            consumer.kept_loop = aiter(consumer)

        async def main():
            if call in PLAIN:
                PLAIN[call](consumer)
            else:
                await AWAITED[call](consumer)

        with anyio.fail_after(10):
            error = await in_thread(partial(anyio.run, main, backend=other))
        assert isinstance(error, WrongThreadError), error
        assert "event loop" in str(error)
        await check_consumer_continues(consumer, record)

    assert list(range(2, 20)) == unsettled(broker)


@pytest.mark.parametrize("call", PLAIN)
async def test_call_in_a_worker_thread_is_rejected(broker, call):
    async with consuming(broker) as consumer:
        (record,) = await take(consumer, 1)
        error = await in_thread(partial(PLAIN[call], consumer))
        assert isinstance(error, WrongThreadError), error
        await check_consumer_continues(consumer, record)

    assert list(range(2, 20)) == unsettled(broker)


async def check_consumer_continues(consumer, record):
    assert ("orders",) == consumer.subscription
    record.accept()
    (record,) = await take(consumer, 1)
    record.accept()
    with anyio.fail_after(10):
        results = await consumer.commit()
    assert {None} == {result.error for result in results}


async def test_metrics_and_properties_are_read_from_any_thread(broker):
    async with consuming(broker) as consumer:
        (record,) = await take(consumer, 1)

        def read():
            assert consumer.metrics()["fetch-total"] > 0
            assert ("orders",) == consumer.subscription
            assert consumer.assignment
            assert record.lock_deadline > 0
            assert "open" in repr(consumer)

        assert await in_thread(read) is None


async def test_consumer_started_in_one_loop_is_not_closed_in_another(broker):
    consumer = consuming(broker)
    async with consumer:
        error = await in_thread(partial(anyio.run, consumer.aclose))
        assert isinstance(error, WrongThreadError)
        assert "open" in repr(consumer)
    assert "closed" in repr(consumer)


# Closing takes no longer than its time limit.


async def test_close_from_a_task_that_a_callback_started(broker):
    closed = anyio.Event()
    async with anyio.create_task_group() as tasks:

        async def close():
            await consumer.aclose()
            closed.set()

        def on_acknowledged(results):
            tasks.start_soon(close)

        async with consuming(broker, on_acknowledged=on_acknowledged) as consumer:
            (record,) = await take(consumer, 1)
            record.accept()
            with anyio.fail_after(10):
                async for _ in consumer:
                    pass
                await closed.wait()


async def test_admin_used_in_another_event_loop_is_rejected(broker):
    async with ShareGroupAdmin(bootstrap_servers=broker.bootstrap_servers) as admin:
        await admin.describe_topics()
        for call in (admin.describe_topics, admin.aclose):
            error = await in_thread(partial(anyio.run, call))
            assert isinstance(error, WrongThreadError), error
            assert "another admin" in str(error)
        assert "orders" in await admin.describe_topics()
