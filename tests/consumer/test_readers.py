"""Several tasks that read one consumer.

Each record goes to one of them, each acknowledges its own, none starves, all end when
the consumer closes, and a task that leaves does not affect the others.
"""

import asyncio
from collections import Counter

import anyio
import pytest
from anyio.lowlevel import checkpoint

from sharecons.errors import (
    ClosedError,
    ConsumerStateError,
    DeserializationError,
    Error,
)
from sharecons.testing import EmbeddedBroker, OffsetState, virtual_time
from sharecons.testing.pytest_plugin import SETTINGS
from tests.consumer.consuming import consuming
from tests.net.waits import other_tasks_have_run
from tests.waiting import until

pytestmark = pytest.mark.anyio


GROUP = "billing"
TASKS = 5

asyncio_only = pytest.mark.parametrize(
    "virtual_clock", [virtual_time.backend("asyncio")], ids=["asyncio"]
)


@pytest.fixture
async def broker():
    async with EmbeddedBroker(settings=SETTINGS, listen=False) as broker:
        broker.create_topic("orders")
        broker.set_group_config(GROUP, {"share.auto.offset.reset": "earliest"})
        yield broker


def produce(broker, count, topic="orders"):
    broker.produce(topic, [b"%d" % i for i in range(count)])


def states(broker, topic="orders"):
    """Return the state of each offset in the log that is not acknowledged."""
    partition = broker.group(GROUP).partition(topic)
    in_flight = {each.offset: each.state for each in partition.in_flight}
    found = {
        offset: in_flight.get(offset, OffsetState.AVAILABLE)
        for offset in range(partition.start_offset, partition.end_offset)
    }
    return {
        offset: state
        for offset, state in found.items()
        if state != OffsetState.ACKNOWLEDGED
    }


class Reading:
    """Tasks that read one consumer until `total` records were read.

    Args:
        verb: each task's acknowledgement of a record; None in implicit mode.
        seconds: how long a task processes each record.
    """

    def __init__(self, consumer, total, *, verb=None, seconds=0.0):
        self.consumer = consumer
        self.total = total
        self.verb = verb
        self.seconds = seconds
        self.read = Counter()
        self.by_task = Counter()
        self.ended = 0
        self.done = anyio.Event()

    async def process(self, name, record):
        if self.seconds:
            await anyio.sleep(self.seconds)
        if self.verb is not None:
            getattr(record, self.verb)()
        self.read[record.offset] += 1
        self.by_task[name] += 1
        if len(self.read) == self.total:
            self.done.set()

    async def loop(self, name="loop"):
        async for record in self.consumer:
            await self.process(name, record)
        self.ended += 1

    async def batches(self, name="batches"):
        async for batch in self.consumer.batches():
            for record in batch:
                await self.process(name, record)
        self.ended += 1

    async def poll(self, name="poll"):
        try:
            while True:
                for record in await self.consumer.poll(timeout=0.5, max_records=3):
                    await self.process(name, record)
        except ClosedError:
            self.ended += 1


async def read_all(consumer, tasks, reading):
    """Run the tasks until all records are read; then close the consumer."""
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for index, task in enumerate(tasks):
                group.start_soon(task, index)
            await reading.done.wait()
            await checkpoint()
            # Processed records are accepted when the loops read again.
            await anyio.sleep(reading.seconds + 0.1)
            await consumer.aclose()


@pytest.mark.parametrize("verb", [None, "accept"], ids=["implicit", "explicit"])
async def test_five_loops_share_the_records_and_all_end_on_close(broker, verb):
    produce(broker, 300)
    mode = "implicit" if verb is None else "explicit"
    async with consuming(broker, acknowledgement=mode) as consumer:
        reading = Reading(consumer, 300, verb=verb, seconds=0.002)
        await read_all(consumer, [reading.loop] * TASKS, reading)

    assert {1} == set(reading.read.values())
    assert TASKS == len(reading.by_task)
    assert min(reading.by_task.values()) > 300 / TASKS / 2
    assert TASKS == reading.ended
    assert {} == states(broker)


@pytest.mark.parametrize("verb", [None, "accept"], ids=["implicit", "explicit"])
async def test_loops_batches_and_polls_share_one_consumer(broker, verb):
    produce(broker, 400)
    mode = "implicit" if verb is None else "explicit"
    async with consuming(broker, acknowledgement=mode, max_records=20) as consumer:
        reading = Reading(consumer, 400, verb=verb, seconds=0.001)
        tasks = [
            reading.loop,
            reading.batches,
            reading.poll,
            reading.loop,
            reading.batches,
            reading.poll,
        ]
        await read_all(consumer, tasks, reading)

    assert {1} == set(reading.read.values())
    assert len(tasks) == len(reading.by_task)
    assert len(tasks) == reading.ended
    assert {} == states(broker)


async def test_a_loop_that_never_awaits_does_not_starve_the_others(broker):
    produce(broker, 20_000)
    read = Counter()
    async with consuming(broker) as consumer:

        async def spin(name):
            async for _ in consumer:
                read[name] += 1
                if sum(read.values()) == 20_000:
                    await consumer.aclose()

        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                for name in range(3):
                    group.start_soon(spin, name)

    assert 3 == len(read)
    assert min(read.values()) > 500


@pytest.mark.parametrize("way", ["cancel", "break", "error"])
async def test_a_loop_that_is_left_releases_its_record_and_others_go_on(broker, way):
    produce(broker, 10)
    async with consuming(broker) as consumer:
        reading = Reading(consumer, 10)
        left = anyio.Event()
        scope = anyio.CancelScope()

        async def leave():
            with scope:
                async for record in consumer:
                    if way == "break":
                        break
                    if way == "error":
                        raise ValueError(record)
                    left.set()
                    await anyio.sleep_forever()

        async def leaving():
            try:
                await leave()
            except ValueError:
                pass
            left.set()

        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                group.start_soon(leaving)
                await left.wait()
                group.start_soon(reading.loop, "a")
                group.start_soon(reading.loop, "b")
                # A cancelled loop still has its record; the others have released it.
                expected = 9 if way == "cancel" else 10
                await until(lambda: len(reading.read) >= expected)
                scope.cancel()
                await reading.done.wait()
                await anyio.sleep(0.1)
                await consumer.aclose()

    assert {1} == set(reading.read.values())
    assert 2 == reading.ended
    assert {} == states(broker)


async def test_a_record_left_while_others_wait_is_released_immediately(broker):
    produce(broker, 1)
    async with consuming(broker) as consumer:
        first = anyio.CancelScope()
        got, again = anyio.Event(), anyio.Event()

        async def hold():
            with first:
                async for _ in consumer:
                    got.set()
                    await anyio.sleep_forever()

        async def wait():
            async for record in consumer:
                assert 2 == record.delivery_count
                again.set()

        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                group.start_soon(hold)
                await got.wait()
                group.start_soon(wait)
                await anyio.sleep(0.2)
                first.cancel()
                with anyio.fail_after(5):  # the lock lasts 30 s
                    await again.wait()
                group.cancel_scope.cancel()


async def test_a_record_can_be_acknowledged_after_its_loop_was_left(broker):
    produce(broker, 2)
    async with consuming(broker) as consumer:
        with anyio.fail_after(20):
            async for first in consumer:  # noqa: B007
                break
            first.accept()
            other = await anext(aiter(consumer))
            other.accept()
            await consumer.commit()

    assert [0, 1] == [first.offset, other.offset]
    assert {} == states(broker)


async def test_cancelling_waiting_loops_loses_no_record(broker):
    async with consuming(broker) as consumer:
        reading = Reading(consumer, 100)
        scopes = [anyio.CancelScope() for _ in range(20)]

        async def wait(scope):
            with scope:
                await reading.loop("cancelled")

        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                for scope in scopes:
                    group.start_soon(wait, scope)
                group.start_soon(reading.loop, "stays")
                for index, scope in enumerate(scopes):
                    broker.produce("orders", [b"x"] * 5)
                    await anyio.sleep(0.002 * index)
                    scope.cancel()
                await reading.done.wait()
                await anyio.sleep(0.1)
                await consumer.aclose()

    assert {1} == set(reading.read.values())
    assert {} == states(broker)


async def test_fatal_error_is_raised_in_each_loop(broker):
    errors = []
    broker.faults.on("ShareGroupHeartbeat", times=None).refuse(
        "GROUP_AUTHORIZATION_FAILED"
    )
    async with consuming(broker) as consumer:

        async def read():
            try:
                async for _ in consumer:
                    pass
            except Error as error:
                errors.append(error)

        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                for _ in range(TASKS):
                    group.start_soon(read)

    assert TASKS == len(errors)


async def test_loops_end_when_the_consumer_closes_as_they_start(broker):
    """They have passed their check for a closed consumer, and wait only afterwards."""
    async with consuming(broker) as consumer:
        ended = []

        async def read(loop):
            async for _ in loop:
                pass
            ended.append(loop)

        loops = [aiter(consumer) for _ in range(TASKS)]
        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                for loop in loops:
                    group.start_soon(read, loop)
                group.start_soon(consumer.aclose)

    assert TASKS == len(ended)


async def test_a_record_that_cannot_be_deserialized_ends_its_own_loop_only(broker):
    def even(value):
        if int(value) % 2:
            raise ValueError("odd")
        return int(value)

    produce(broker, 10)
    odd, good = [], []
    async with consuming(broker, value_deserializer=even) as consumer:

        async def read():
            while True:
                try:
                    async for record in consumer:
                        good.append(record.value)  # noqa: PERF401
                    return
                except DeserializationError as error:
                    await anyio.sleep(0.01)  # the other loops read meanwhile
                    error.record.reject()
                    odd.append(error.record.offset)

        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                for _ in range(3):
                    group.start_soon(read)
                await until(lambda: len(odd) + len(good) >= 10)
                await anyio.sleep(0.1)
                await consumer.aclose()

    assert [1, 3, 5, 7, 9] == sorted(odd)
    assert [0, 2, 4, 6, 8] == sorted(good)
    assert set() == set(states(broker)) - set(odd)
    assert {OffsetState.ARCHIVED} >= set(states(broker).values())


async def test_two_tasks_in_one_loop_raise(broker):
    async with consuming(broker) as consumer:
        loop = aiter(consumer)

        async def wait():
            await anext(loop)

        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                group.start_soon(wait)
                await other_tasks_have_run()
                with pytest.raises(
                    ConsumerStateError, match="a separate `async for` loop in each"
                ):
                    await anext(loop)
                group.cancel_scope.cancel()


# poll(): each task has its own unacknowledged records.


async def test_poll_accepts_records_of_the_previous_poll_in_the_task(broker):
    produce(broker, 2)
    async with consuming(broker, max_records=1) as consumer:
        got, polled = anyio.Event(), anyio.Event()

        async def hold():
            [record] = await consumer.poll(timeout=10, max_records=1)
            assert 0 == record.offset
            got.set()
            await polled.wait()
            assert record.held, (
                "the polls of the other task accept only its own records"
            )
            record.reject()

        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                group.start_soon(hold)
                await got.wait()
                [record] = await consumer.poll(timeout=10, max_records=1)
                assert 1 == record.offset
                await consumer.poll()
                assert not record.held
                polled.set()
            await consumer.commit()

    assert {0: OffsetState.ARCHIVED} == states(broker) or {} == states(broker)


async def test_polled_records_are_released_when_the_task_ends(broker):
    produce(broker, 1)
    async with consuming(broker) as consumer:
        kept = []

        async def poll_and_end():
            kept.extend(await consumer.poll(timeout=10))

        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                group.start_soon(poll_and_end)
            [record] = await consumer.poll(timeout=10)

    assert 2 == record.delivery_count


@asyncio_only
async def test_poll_in_wait_for_accepts_records_of_the_previous_poll(broker):
    """On Python 3.11, wait_for() runs each poll() in a task of its own."""
    produce(broker, 3)
    async with consuming(broker) as consumer:
        offsets = []
        while len(offsets) < 3:
            poll = consumer.poll(timeout=10, max_records=1)
            [record] = await asyncio.wait_for(poll, 20)
            offsets.append(record.offset)
        await asyncio.wait_for(consumer.poll(), 20)
        await consumer.commit()

    assert [0, 1, 2] == offsets
    assert {} == states(broker)


@asyncio_only
async def test_polls_gathered_as_tasks_all_return_records(broker):
    async with consuming(broker, max_records=1) as consumer:
        polls = [consumer.poll(timeout=10, max_records=1) for _ in range(3)]
        tasks = [asyncio.create_task(poll) for poll in polls]
        await asyncio.sleep(0.1)
        produce(broker, 3)
        async with asyncio.timeout(20):
            records = [record for [record] in await asyncio.gather(*tasks)]
            await asyncio.create_task(consumer.poll())
        await consumer.commit()

    assert [0, 1, 2] == sorted(record.offset for record in records)
    assert {} == states(broker)


@asyncio_only
async def test_reader_of_a_referenced_task_is_removed_when_it_ends(broker):
    """The application still refers to a task that has ended."""
    produce(broker, 1)
    async with consuming(broker) as consumer:

        async def poll():
            await consumer.poll(timeout=10)

        task = asyncio.create_task(poll())
        async with asyncio.timeout(20):
            await task
            [record] = await consumer.poll(timeout=10)
        assert task.done()

    assert 2 == record.delivery_count
