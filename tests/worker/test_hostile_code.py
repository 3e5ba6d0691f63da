"""Code of the application that raises where no exception is expected."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import pytest

from sharecons import (
    BatchHandler,
    DeadLetter,
    DeadLetterQueue,
    Record,
    Reject,
    Retry,
    RetryPolicy,
)
from tests.hostile import (
    Invalid,
    NoAttributes,
    NoText,
    Unready,
    Unwanted,
    nested_causes,
    nested_contexts,
    nested_groups,
    no_name,
)
from tests.worker.memory import MemoryBroker
from tests.worker.working import QUICK, Handled, origins, process

pytestmark = pytest.mark.anyio

DEAD = DeadLetterQueue("orders.dead")
TWICE = RetryPolicy(max_attempts=2, initial=0.05, maximum=0.05)
VALUES = [b"%d" % number for number in range(10)]


@pytest.fixture
def orders(broker: MemoryBroker) -> MemoryBroker:
    """Return a broker with ten records."""
    broker.produce("orders", VALUES)
    return broker


def failing_at(
    number: int, make: Callable[[], BaseException]
) -> Callable[[Record[Any, Any]], Awaitable[None]]:
    async def handle(record: Record[Any, Any]) -> None:
        if record.value == b"%d" % number:
            raise make()

    return handle


class Falsy(Exception):
    def __bool__(self) -> bool:
        return False


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (Falsy, "failed after 2 attempts: Falsy"),
        (lambda: DeadLetter(400), "400"),  # type: ignore[arg-type]
        (Invalid, "Invalid: no such customer"),
        (NoText, "failed after 2 attempts: NoText: <NoText: its text raised "),
        (NoAttributes, "failed after 2 attempts: NoAttributes: bad"),
        (no_name, "failed after 2 attempts: NoName: bad"),
        (nested_causes, "failed after 2 attempts: ValueError: 3000"),
        (nested_contexts, "failed after 2 attempts: ValueError: 3000"),
        (nested_groups, "failed after 2 attempts: ExceptionGroup: 3000 ("),
        (lambda: DeadLetter(NoText()), "NoText: <NoText: its text raised "),
        (Unready, "the handler requested another attempt after 2 attempts"),
    ],
)
async def test_hostile_exception_is_one_dead_letter_and_the_worker_goes_on(
    orders: MemoryBroker, make: Callable[[], BaseException], reason: str
) -> None:
    handler = failing_at(3, make)
    worker = await process(orders, handler, 10, retry=TWICE, dead_letter=DEAD)

    (origin,) = origins(orders)
    assert origin.reason.startswith(reason)
    assert (9, 0, 0) == (
        worker.stats.accepted,
        worker.stats.released,
        worker.stats.rejected,
    )


@pytest.mark.parametrize("make", [Unwanted, lambda: Reject(b"bytes")])  # type: ignore[arg-type]
async def test_reject_without_init_or_text_rejects_one_record(
    orders: MemoryBroker, make: Callable[[], BaseException]
) -> None:
    worker = await process(orders, failing_at(3, make), 10, dead_letter=DEAD)

    assert (9, 1) == (worker.stats.accepted, worker.stats.rejected)


async def test_decision_without_init_that_quotes_its_record_is_not_logged(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.produce("orders", [b"planted"])

    async def handle(record: Record[Any, Any]) -> None:
        raise Invalid(f"no {record.value.decode()}")

    worker = await process(broker, handle, 1, dead_letter=DEAD)

    assert 1 == worker.stats.dead_lettered
    assert "record dead-lettered" in caplog.text
    assert "planted" not in caplog.text


@pytest.mark.parametrize("make", [Falsy, NoAttributes, no_name, nested_groups, Invalid])
async def test_hostile_exception_in_a_batch_concerns_one_record(
    orders: MemoryBroker, make: Callable[[], Exception]
) -> None:
    async def write(batch: Any) -> None:
        for record in batch:
            if record.value == b"3":
                batch.fail(record, make())

    handler = BatchHandler(write, max_records=10)
    worker = await process(orders, handler, 10, retry=TWICE, dead_letter=DEAD)

    assert (9, 1) == (worker.stats.accepted, worker.stats.dead_lettered)


@pytest.mark.parametrize(
    "make", [NoAttributes, no_name, nested_groups, Invalid, NoText]
)
async def test_hostile_exception_passes_through_middleware(
    orders: MemoryBroker, make: Callable[[], Exception]
) -> None:
    outcomes: list[Any] = []

    async def watch(attempt: Any, call_next: Any) -> None:
        await call_next()

    worker = await process(
        orders,
        failing_at(3, make),
        10,
        retry=TWICE,
        dead_letter=DEAD,
        middleware=[watch],
        on_outcome=outcomes.append,
    )

    assert (9, 1) == (worker.stats.accepted, worker.stats.dead_lettered)
    assert len(outcomes) >= 10


@pytest.mark.parametrize("make", [NoAttributes, no_name, nested_groups, NoText])
async def test_hostile_exception_of_a_deserializer_is_one_dead_letter(
    orders: MemoryBroker, make: Callable[[], Exception]
) -> None:
    def read(value: bytes) -> bytes:
        if value == b"3":
            raise make()
        return value

    worker = await process(
        orders, Handled(), 10, value_deserializer=read, dead_letter=DEAD
    )

    (origin,) = origins(orders)
    assert make is not NoText or "NoText: its text raised " in origin.reason
    assert (9, 1) == (worker.stats.accepted, worker.stats.dead_lettered)


@pytest.mark.parametrize(
    "make", [asyncio.CancelledError, GeneratorExit, NoAttributes, NoText]
)
async def test_on_outcome_that_raises_does_not_end_the_worker(
    orders: MemoryBroker,
    caplog: pytest.LogCaptureFixture,
    make: Callable[[], BaseException],
) -> None:
    def fail(event: Any) -> None:
        raise make()

    worker = await process(orders, Handled(), 10, on_outcome=fail)

    assert 10 == worker.stats.accepted
    assert "on_outcome failed" in caplog.text


class RaisingHandler(logging.Handler):
    def __init__(self, make: Callable[[], BaseException]) -> None:
        super().__init__()
        self._make = make

    def emit(self, record: logging.LogRecord) -> None:
        raise self._make()


@pytest.fixture
def sharecons_logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger("sharecons")
    before = list(logger.handlers), list(logger.filters)
    yield logger
    logger.handlers, logger.filters = before


@pytest.mark.parametrize(
    "make", [RuntimeError, RecursionError, asyncio.CancelledError, NoAttributes, NoText]
)
async def test_logging_handler_that_raises_does_not_end_the_worker(
    orders: MemoryBroker,
    sharecons_logger: logging.Logger,
    make: Callable[[], BaseException],
) -> None:
    sharecons_logger.addHandler(RaisingHandler(make))

    handler = failing_at(3, lambda: ValueError("bad"))
    worker = await process(orders, handler, 10, retry=TWICE, dead_letter=DEAD)

    assert (9, 1) == (worker.stats.accepted, worker.stats.dead_lettered)


class RaisingPolicy(RetryPolicy):
    def decide(self, error: Exception, **options: Any) -> Any:
        raise ValueError("no policy")


async def test_retry_policy_that_raises_is_replaced_by_the_default_one(
    orders: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    handler = failing_at(3, lambda: ValueError("bad"))
    policy = RaisingPolicy(max_attempts=2)
    worker = await process(orders, handler, 10, retry=policy, dead_letter=DEAD)

    (origin,) = origins(orders)
    assert origin.reason.endswith(
        "ValueError; deciding about it raised ValueError: no policy"
    )
    assert 9 == worker.stats.accepted


RAISED = [RuntimeError, asyncio.CancelledError, GeneratorExit]


def uninspectable(kind: type[BaseException]) -> object:
    class Result:
        def __getattribute__(self, name: str) -> Any:
            raise kind(name)

    return Result()


@pytest.mark.parametrize("in_thread", [False, True])
@pytest.mark.parametrize("kind", RAISED)
async def test_result_that_cannot_be_inspected_fails_one_record(
    orders: MemoryBroker, kind: type[BaseException], in_thread: bool
) -> None:
    def handle(record: Record[Any, Any]) -> Any:
        return uninspectable(kind) if record.value == b"3" else None

    async def handle_async(record: Record[Any, Any]) -> Any:
        return handle(record)

    handler = handle if in_thread else handle_async
    worker = await process(orders, handler, 10, dead_letter=DEAD, retry=QUICK)

    assert (9, 1) == (worker.stats.accepted, worker.stats.dead_lettered)
    (origin,) = origins(orders)
    assert f"inspecting it raised {kind.__name__}" in origin.reason


class Results(Sequence[Any]):
    """Results of a batch that raise where `kind` says so."""

    def __init__(self, count: int, place: str, kind: type[BaseException]) -> None:
        self._count = count
        self._read = 0
        self._place = place
        self._kind = kind

    def __len__(self) -> int:
        if self._place == "length":
            raise self._kind("length")
        return self._count

    def __getitem__(self, index: Any) -> Any:
        self._read += index == 0
        if self._place == "item" or self._read > 1:
            raise self._kind("item")
        if self._place != "endless" and index == self._count:
            raise IndexError
        return None


@pytest.mark.parametrize("kind", RAISED)
@pytest.mark.parametrize("place", ["length", "item", "endless"])
async def test_results_of_a_batch_that_cannot_be_read_fail_its_records(
    broker: MemoryBroker, kind: type[BaseException], place: str
) -> None:
    broker.produce("orders", [b"1"])
    broker.produce("orders", [b"2"])

    async def write(batch: Any) -> Any:
        return Results(len(batch), place, kind) if batch[0].value == b"1" else None

    handler = BatchHandler(write, max_records=1)
    worker = await process(broker, handler, 2, retry=QUICK, dead_letter=DEAD)

    assert (1, 1) == (worker.stats.accepted, worker.stats.dead_lettered)


async def test_results_of_a_batch_are_read_once(orders: MemoryBroker) -> None:
    async def write(batch: Any) -> Any:
        return Results(len(batch), "second reading", ValueError)

    handler = BatchHandler(write, max_records=10)
    worker = await process(orders, handler, 10, retry=QUICK, dead_letter=DEAD)

    assert 10 == worker.stats.accepted


@pytest.mark.parametrize("kind", RAISED)
async def test_result_of_middleware_that_cannot_be_inspected_is_ignored(
    orders: MemoryBroker, kind: type[BaseException]
) -> None:
    async def watch(attempt: Any, call_next: Any) -> Any:
        await call_next()
        return uninspectable(kind)

    worker = await process(orders, Handled(), 10, middleware=[watch])

    assert (10, 0) == (worker.stats.accepted, worker.stats.released)


class Nameless:
    """A callable whose name raises."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self._called = call

    def __getattribute__(self, name: str) -> Any:
        if name == "__qualname__":
            raise RuntimeError(name)
        return super().__getattribute__(name)

    def __call__(self, event: Any) -> Any:
        return self._called(event)


async def test_on_outcome_whose_name_and_call_raise_does_not_end_the_worker(
    orders: MemoryBroker,
) -> None:
    def fail(event: Any) -> None:
        raise ValueError("bad")

    worker = await process(orders, Handled(), 10, on_outcome=Nameless(fail))

    assert 10 == worker.stats.accepted


@pytest.mark.parametrize("kind", RAISED)
async def test_on_outcome_whose_result_cannot_be_inspected_does_not_end_the_worker(
    orders: MemoryBroker, kind: type[BaseException]
) -> None:
    def observe(event: Any) -> Any:
        return uninspectable(kind)

    worker = await process(orders, Handled(), 10, on_outcome=observe)

    assert 10 == worker.stats.accepted


class StrangePolicy(RetryPolicy):
    def decide(self, error: Exception, **options: Any) -> Any:
        return None


async def test_retry_policy_that_returns_no_outcome_is_replaced_by_the_default_one(
    orders: MemoryBroker,
) -> None:
    handler = failing_at(3, lambda: ValueError("bad"))
    policy = StrangePolicy(max_attempts=2)
    worker = await process(orders, handler, 10, retry=policy, dead_letter=DEAD)

    assert (9, 1) == (worker.stats.accepted, worker.stats.dead_lettered)


async def test_decisions_of_subclasses_keep_their_arguments() -> None:
    assert 3.0 == Retry(3.0).after
    assert "why" == Reject("why").reason
