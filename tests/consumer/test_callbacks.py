"""Exceptions of callbacks: the library raises its own errors for them.

Each exception here would mean something else to a coroutine, a loop or a task that it
passes through.
"""

import asyncio
from functools import partial

import anyio
import pytest
from anyio.lowlevel import checkpoint

from sharecons import Record, Security
from sharecons.admin import ShareGroupAdmin
from sharecons.errors import (
    AuthenticationError,
    CallbackError,
    ConnectionFailedError,
    DeserializationError,
)
from sharecons.testing import EmbeddedBroker, virtual_time
from sharecons.testing.pytest_plugin import SETTINGS
from tests.consumer.consuming import consuming
from tests.waiting import until

pytestmark = pytest.mark.anyio


EXCEPTIONS = [
    ValueError("v"),
    StopIteration("s"),
    StopAsyncIteration("a"),
    GeneratorExit("g"),
    asyncio.CancelledError("c"),
    BaseExceptionGroup("b", [GeneratorExit(), ValueError()]),
]
EXITS = [
    KeyboardInterrupt("k"),
    SystemExit("e"),
    BaseExceptionGroup("b", [ValueError(), BaseExceptionGroup("k", [SystemExit(1)])]),
]

raised = pytest.mark.parametrize("error", EXCEPTIONS, ids=lambda e: type(e).__name__)
exits = pytest.mark.parametrize("error", EXITS, ids=lambda e: type(e).__name__)


class Raising:
    """A callback that raises an exception the first `times`, then returns."""

    def __init__(self, error, times=1):
        self.error, self.times = error, times

    def __call__(self, *args):
        if self.times:
            self.times -= 1
            raise self.error
        return args[0] if args else "token"


def produce(broker):
    broker.create_topic("orders")
    broker.produce("orders", [b"%d" % i for i in range(10)])


@pytest.fixture
async def empty_broker():
    async with EmbeddedBroker(settings=SETTINGS, listen=False) as broker:
        yield broker


@pytest.fixture
def broker(empty_broker):
    produce(empty_broker)
    return empty_broker


async def read_records(consumer, got):
    async for record in consumer:
        got.append(record)
        await checkpoint()


async def read_next(consumer, got):
    records = aiter(consumer)
    while True:
        got.append(await anext(records))
        await checkpoint()


async def read_next_in_tasks(consumer, got):
    """On asyncio, each `anext` is a task."""
    records = aiter(consumer)
    while True:
        if _on_asyncio():
            got.append(await asyncio.create_task(anext(records)))
        else:
            got.append(await anext(records))
        await checkpoint()


async def read_batches(consumer, got):
    async for batch in consumer.batches():
        got += batch
        await checkpoint()


async def read_rest(read, consumer, got, count):
    """Read until `count` offsets were returned."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read, consumer, got)
        await until(lambda: len({each.offset for each in got}) >= count)
        tasks.cancel_scope.cancel()


async def poll(consumer, got):
    while True:
        got += await consumer.poll(timeout=10, max_records=2)
        await checkpoint()


def _on_asyncio():
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


reads = pytest.mark.parametrize(
    "read", [read_records, read_next, read_next_in_tasks, read_batches, poll]
)


def settled(broker):
    return broker.group("billing").partition("orders").start_offset


@reads
@raised
async def test_on_acknowledged_raises_next_read_raises_callback_error_once(
    broker, read, error
):
    got = []
    with anyio.fail_after(20):
        async with consuming(broker, on_acknowledged=Raising(error)) as consumer:
            with pytest.raises(CallbackError) as caught:
                await read(consumer, got)
            await read_rest(read, consumer, got, 10)
            await consumer.commit()

    assert caught.value.__cause__ is error
    assert caught.value.callback == "on_acknowledged"
    assert all(isinstance(each, Record) for each in got)
    assert {each.offset for each in got} == set(range(10))


@raised
async def test_on_acknowledged_raises_commit_returns_results(broker, error):
    with anyio.fail_after(20):
        async with consuming(
            broker, acknowledgement="explicit", on_acknowledged=Raising(error)
        ) as consumer:
            async for record in consumer:
                record.accept()
                results = await consumer.commit()
                break
            with pytest.raises(CallbackError) as caught:
                await consumer.poll()

    assert [(each.first_offset, each.error) for each in results] == [(0, None)]
    assert caught.value.__cause__ is error


@raised
async def test_on_acknowledged_raises_while_closing_is_logged(broker, error, caplog):
    with anyio.fail_after(20):
        async with consuming(
            broker, acknowledgement="explicit", on_acknowledged=Raising(error)
        ) as consumer:
            for record in await consumer.poll(timeout=10):
                record.accept()
            await consumer.aclose()

    [entry] = [each for each in caplog.records if "on_acknowledged" in each.message]
    assert entry.exc_info[1].__cause__ is error


@reads
@raised
@pytest.mark.parametrize("part", ["key", "value"])
async def test_deserializer_raises_deserialization_error(
    empty_broker, read, error, part
):
    empty_broker.create_topic("orders")
    empty_broker.produce("orders", [b"0", b"1", b"2"], keys=[b"k"] * 3)
    got = []
    options = {f"{part}_deserializer": Raising(error)}
    with anyio.fail_after(20):
        async with consuming(empty_broker, **options) as consumer:
            with pytest.raises(DeserializationError) as caught:
                await read(consumer, got)
            await read_rest(read, consumer, got, 3)

    assert caught.value.__cause__ is error
    assert caught.value.part == part
    assert all(isinstance(each, Record) for each in got)
    counts = {each.offset: each.delivery_count for each in got}
    assert counts == {0: 2, 1: 1, 2: 1}


async def test_poll_whose_second_lease_cannot_be_deserialized_returns_the_first(
    empty_broker,
):
    """Records that were not returned would be accepted by the next poll."""
    empty_broker.create_topic("orders", partitions=2)
    empty_broker.produce("orders", [b"%d" % i for i in range(4)], partition=0)
    empty_broker.produce("orders", [b"bad"], partition=1)
    empty_broker.produce("orders", [b"%d" % i for i in range(4, 8)], partition=1)
    got, errors = [], []

    def number(value):
        return int(value)

    with anyio.fail_after(20):
        async with consuming(empty_broker, value_deserializer=number) as consumer:
            while len(got) < 8:
                try:
                    got += await consumer.poll(timeout=10)
                except DeserializationError as error:
                    errors.append(error.record.value)
                    error.record.reject()
                await anyio.sleep(0.05)

    assert sorted(record.value for record in got) == list(range(8))
    assert errors == [b"bad"]


async def no_token(source):
    """Return the token of a function, awaited."""
    return source()


async def start_consumer(broker, security):
    async with consuming(broker, security=security, connect_timeout=0.5):
        pytest.fail("started")


async def start_admin(broker, security):
    async with ShareGroupAdmin(
        bootstrap_servers=broker.bootstrap_servers,
        security=security,
        connect_timeout=0.5,
        network=broker.network,
    ) as admin:
        await admin.list_groups()


def awaited(source):
    return partial(no_token, source)


def plain(source):
    return source


starts = pytest.mark.parametrize("start", [start_consumer, start_admin])
# A GeneratorExit that a coroutine raises looks like the end of its awaiting coroutine.
sources = pytest.mark.parametrize(
    ("wrap", "error"),
    [
        *[(plain, each) for each in EXCEPTIONS],
        *[(awaited, each) for each in EXCEPTIONS if type(each) is not GeneratorExit],
    ],
    ids=lambda e: e.__name__ if callable(e) else type(e).__name__,
)


@starts
@sources
async def test_token_source_raises_connection_failed_error(broker, start, wrap, error):
    source = wrap(Raising(error, times=-1))
    security = Security.oauthbearer(source, tls=False)
    with anyio.fail_after(20), pytest.raises(ConnectionFailedError) as caught:
        await start(broker, security)

    text = str(caught.value)
    assert "the token function in `security` (" in text
    assert ") raised " in text


@starts
@pytest.mark.parametrize("wrap", [plain, awaited])
@pytest.mark.parametrize("token", [None, b"token", "", "a b", ("token", 3600)])
async def test_token_source_returns_no_token_raises_one_error(
    broker, start, wrap, token
):
    def fetch_token():
        return token

    security = Security.oauthbearer(wrap(fetch_token), tls=False)
    with anyio.fail_after(20), pytest.raises(AuthenticationError) as caught:
        await start(broker, security)

    assert ") returned " in str(caught.value)
    assert "it must return the token as a str" in str(caught.value)


@starts
async def test_token_source_that_hangs_is_named(broker, start):
    security = Security.oauthbearer(anyio.sleep_forever, tls=False)
    with anyio.fail_after(20), pytest.raises(ConnectionFailedError) as caught:
        await start(broker, security)

    assert "(sleep_forever) did not return within " in str(caught.value)


async def test_token_source_that_is_cancelled_ends_its_task(broker):
    async def wait_forever():
        await anyio.sleep_forever()

    security = Security.oauthbearer(wait_forever, tls=False)
    with anyio.fail_after(10), anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(start_consumer, broker, security)
            await anyio.wait_all_tasks_blocked()
            scope.cancel()

    assert scope.cancelled_caught


# KeyboardInterrupt and SystemExit end an event loop, so each test runs its own.

backends = pytest.mark.parametrize("backend", virtual_time.BACKENDS)


@reads
@exits
@backends
def test_on_acknowledged_raises_an_exit_ends_the_program(
    share_broker, backend, read, error
):
    """The event loop ends, so the broker has its own."""
    produce(share_broker)

    async def main():
        async with consuming(
            share_broker, network=None, on_acknowledged=Raising(error)
        ) as consumer:
            with anyio.fail_after(10):
                await read(consumer, [])

    with pytest.raises((KeyboardInterrupt, SystemExit)):
        anyio.run(main, backend=backend)


@pytest.mark.parametrize("read", [read_records, read_next, read_batches, poll])
@exits
@backends
def test_deserializer_raises_an_exit_releases_the_record(backend, read, error):
    got = []

    async def main():
        async with EmbeddedBroker(settings=SETTINGS, listen=False) as broker:
            produce(broker)
            await read_all(consuming(broker, value_deserializer=Raising(error)))

    async def read_all(unstarted):
        async with unstarted as consumer:
            with anyio.fail_after(10), pytest.raises((KeyboardInterrupt, SystemExit)):
                await read(consumer, got)
            with anyio.fail_after(10):
                await read_rest(read, consumer, got, 10)

    name, options = virtual_time.backend(backend)
    anyio.run(main, backend=name, backend_options=options)
    assert {record.offset for record in got} == set(range(10))
