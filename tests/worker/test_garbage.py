"""No reference cycle keeps a record, or an exception: frames refer to both."""

import gc
import logging
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from sharecons import BatchHandler, DeadLetter, DeadLetterQueue, Record, RetryPolicy
from sharecons.testing import EmbeddedBroker
from tests.waiting import until
from tests.worker.working import on_real_clock, settled, working

pytestmark = [pytest.mark.anyio, pytest.mark.slow("collects garbage")]

BROKERS = ("embedded",)

DEAD = DeadLetterQueue("orders.dead")
ONCE = RetryPolicy(max_attempts=1)
TWICE = RetryPolicy(max_attempts=2, initial=0.05, maximum=0.05)


class Traced:
    """An object that the tests find while it is alive."""

    alive = weakref.WeakSet["Traced"]()

    def __init__(self, value: object = None) -> None:
        self.alive.add(self)


class Failure(Exception, Traced):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.alive.add(self)


@pytest.fixture(autouse=True)
def without_collector(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.CRITICAL, "sharecons")  # pytest keeps tracebacks
    gc.collect()
    Traced.alive.clear()
    gc.disable()
    yield
    gc.enable()


def raise_failure(record: Record[Any, Any]) -> None:
    local = Traced()  # lives as long as the frame
    raise Failure(f"failed: {id(local)}")


async def fail(record: Record[Any, Any]) -> None:
    raise_failure(record)


async def fail_batch(batch: Any) -> None:
    raise_failure(batch[0])


async def mark_batch(batch: Any) -> None:
    for record in batch:
        try:
            raise_failure(record)
        except Failure as error:
            batch.fail(record, error)


async def hang(record: Record[Any, Any]) -> None:
    local = Traced()
    await anyio.sleep(60)
    del local


async def decide(record: Record[Any, Any]) -> None:
    local = Traced()
    raise DeadLetter(f"bad: {id(local)}")


async def give_coroutine(record: Record[Any, Any]) -> Any:
    return fail(record)


async def give_coroutine_of_batch(batch: Any) -> Any:
    return fail(batch[0])


async def pass_through(attempt: Any, call_next: Callable[[], Awaitable[None]]) -> None:
    await call_next()


async def look_at_outcome(
    attempt: Any, call_next: Callable[[], Awaitable[None]]
) -> None:
    local = Traced()
    try:
        await call_next()
    finally:
        assert attempt.attempts[0].outcome is not None or local


def batch_of(handler: Any) -> Any:
    return BatchHandler(handler, max_records=3, max_wait=0.1)


HANDLERS = {
    "async": fail,
    "batch": batch_of(fail_batch),
    "marked-batch": batch_of(mark_batch),
    "decision": decide,
    "coroutine": give_coroutine,
    "coroutine-of-batch": batch_of(give_coroutine_of_batch),
}


@asynccontextmanager
async def at_work(
    broker: EmbeddedBroker, handler: Any, **options: Any
) -> AsyncIterator[Any]:
    broker.produce("orders", [b"%d" % number for number in range(3)])
    async with working(
        broker, handler, value_deserializer=Traced, dead_letter=DEAD, **options
    ) as worker:
        yield worker


async def all_are_freed(wait: float = 2.5) -> bool:
    await anyio.sleep(wait)  # the log forgets exceptions once a second
    return not Traced.alive


@pytest.mark.parametrize("middleware", [(), (pass_through, look_at_outcome)])
@pytest.mark.parametrize("handler", HANDLERS.values(), ids=HANDLERS)
async def test_dead_lettered_record_and_its_exceptions_are_freed(
    broker: EmbeddedBroker, handler: Any, middleware: Any
) -> None:
    async with at_work(broker, handler, retry=TWICE, middleware=middleware) as worker:
        await until(lambda: worker.stats.dead_lettered == 3)
        assert await all_are_freed(), list(Traced.alive)


@pytest.mark.parametrize("middleware", [(), (pass_through, look_at_outcome)])
@pytest.mark.parametrize("handler", [hang, batch_of(hang)])
async def test_record_whose_handler_has_timed_out_is_freed(
    broker: EmbeddedBroker, handler: Any, middleware: Any
) -> None:
    async with at_work(
        broker, handler, retry=TWICE, timeout=0.5, middleware=middleware
    ) as worker:
        await until(lambda: worker.stats.dead_lettered == 3)
        assert await all_are_freed(), list(Traced.alive)


async def test_accepted_records_are_freed(broker: EmbeddedBroker) -> None:
    async def handle(record: Record[Any, Any]) -> None:
        Traced()

    async with at_work(broker, handle):
        await until(lambda: settled(broker, 3))
        assert await all_are_freed(0.1), list(Traced.alive)


@pytest.mark.parametrize("middleware", [(), (pass_through, look_at_outcome)])
async def test_record_released_at_the_end_is_freed(
    broker: EmbeddedBroker, middleware: Any
) -> None:
    async with at_work(broker, hang, shutdown_grace=0.1, middleware=middleware):
        await until(lambda: bool(Traced.alive))

    assert await all_are_freed(0.1), list(Traced.alive)


@on_real_clock
@pytest.mark.parametrize("is_batch", [False, True])
async def test_record_whose_handler_fails_in_a_thread_is_freed(
    broker: EmbeddedBroker, is_batch: bool
) -> None:
    def fail_in_thread(argument: Any) -> None:
        raise_failure(argument)

    handler = batch_of(fail_in_thread) if is_batch else fail_in_thread
    async with at_work(broker, handler, retry=ONCE) as worker:
        await until(lambda: worker.stats.dead_lettered == 3, within=10)
        await until(lambda: not Traced.alive, within=5)


async def test_record_that_cannot_be_deserialized_is_freed(
    broker: EmbeddedBroker,
) -> None:
    def refuse(value: bytes) -> Any:
        raise Failure(f"refused: {id(Traced())}")

    async with at_work(broker, fail, key_deserializer=bytes) as worker:
        worker.stop()
    async with working(
        broker, fail, value_deserializer=refuse, dead_letter=DEAD
    ) as worker:
        await until(lambda: worker.stats.dead_lettered == 3)
        assert await all_are_freed(), list(Traced.alive)


async def test_error_that_stops_the_worker_is_freed_once_it_is_handled(
    broker: EmbeddedBroker,
) -> None:
    try:
        async with at_work(broker, fail, stop_on_error=True) as worker:
            await worker.wait_stopped()
    except* Failure:
        assert Traced.alive
    del worker

    assert await all_are_freed(0.1), list(Traced.alive)
