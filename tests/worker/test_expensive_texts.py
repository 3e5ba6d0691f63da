"""Texts that code of the application makes: once for each attempt, not in the loop."""

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest

from sharecons import BatchHandler, DeadLetter, Record, RetryPolicy
from sharecons.copies.dead_letter_headers import Origin, read_origin
from tests.otel.recorded import Recorded
from tests.waiting import until
from tests.worker.memory import MemoryBroker
from tests.worker.working import on_real_clock, settled, working

pytestmark = pytest.mark.anyio

ATTEMPTS = 3
POLICY = RetryPolicy(max_attempts=ATTEMPTS, initial=0.05, maximum=0.05)
ONCE = RetryPolicy(max_attempts=1)
TEXT = "no such customer"


class Conversions:
    """The threads in which each object was converted to a text."""

    def __init__(self) -> None:
        self.threads: dict[str, list[threading.Thread]] = {}

    def add(self, name: str) -> None:
        self.threads.setdefault(name, []).append(threading.current_thread())

    def counts(self) -> dict[str, int]:
        return {name: len(threads) for name, threads in self.threads.items()}

    def in_loop(self) -> list[str]:
        loop = threading.current_thread()
        return [name for name, each in self.threads.items() if loop in each]


conversions = Conversions()


@pytest.fixture(autouse=True)
def no_conversions() -> None:
    conversions.threads.clear()


class Order:
    """A value with a text of its own."""

    def __init__(self, value: bytes) -> None:
        self.value = value

    def __repr__(self) -> str:
        conversions.add(f"order {self.value.decode()}")
        return f"<order {self.value.decode()}>"


class OwnText(Exception):
    def __str__(self) -> str:
        conversions.add("error")
        return TEXT


class OwnTexts(OwnText):
    def __repr__(self) -> str:
        conversions.add("error")
        return TEXT


class OwnDecision(DeadLetter):
    """Without `super().__init__()`: its text is the reason."""

    def __init__(self) -> None:
        pass

    def __str__(self) -> str:
        conversions.add("error")
        return TEXT


class Customer:
    def __repr__(self) -> str:
        conversions.add("error")
        return TEXT


def with_argument() -> Exception:
    return ValueError(Customer())


def with_arguments() -> Exception:
    return ValueError(1, Customer())


def with_deep_argument() -> Exception:
    return KeyError({"customer": [Customer()]})


def with_cause() -> Exception:
    error = ValueError("outer")
    error.__cause__ = OwnText()
    return error


def with_context() -> Exception:
    error = ValueError("outer")
    error.__context__ = OwnText()
    return error


def group() -> Exception:
    return ExceptionGroup("several", [KeyError("first"), OwnText()])


def with_note() -> Exception:
    error = ValueError("outer")
    error.__notes__ = [Customer()]  # type: ignore[list-item]  # add_note refuses it
    return error


FAILURES = [
    OwnText,
    OwnTexts,
    with_argument,
    with_arguments,
    with_deep_argument,
    with_cause,
    with_context,
    group,
    with_note,
]


def raising(make: Callable[[], Exception]) -> Any:
    async def handle(record: Record[Any, Any]) -> None:
        raise make()

    return handle


def raising_in_thread(make: Callable[[], Exception]) -> Any:
    def handle(record: Record[Any, Any]) -> None:
        raise make()

    return handle


def marking(make: Callable[[], Exception]) -> Any:
    async def handle(batch: Any) -> None:
        for record in batch:
            batch.fail(record, make())

    return BatchHandler(handle, max_records=1)


def raising_for_batch(make: Callable[[], Exception]) -> Any:
    return BatchHandler(raising(make), max_records=1)


@pytest.fixture
def lines() -> Iterator[list[str]]:
    """The lines of two handlers of the application's logging."""
    written: list[str] = []

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            written.append(logging.Formatter().format(record))
            record.exc_text = None  # as formatters do that do not cache it

    logger, handlers = logging.getLogger("sharecons"), [Lines(), Lines()]
    for handler in handlers:
        logger.addHandler(handler)
    yield written
    for handler in handlers:
        logger.removeHandler(handler)


def letters(broker: MemoryBroker) -> list[Origin]:
    origins = [read_origin(each.headers) for each in broker.records("orders.dead")]
    return [each for each in origins if each is not None]


@pytest.mark.parametrize("make", FAILURES)
async def test_failure_is_converted_once_per_attempt_and_not_in_the_loop(
    broker: MemoryBroker, lines: list[str], make: Callable[[], Exception]
) -> None:
    broker.produce("orders", [b"value-1"])

    async with working(broker, raising(make), retry=POLICY, dead_letter="orders.dead"):
        await until(lambda: settled(broker, 1))

    assert [] == conversions.in_loop()
    assert {"error": ATTEMPTS} == conversions.counts()
    (letter,) = letters(broker)
    assert letter.traceback is not None
    assert TEXT in letter.traceback
    (line, _) = (each for each in lines if "record dead-lettered" in each)
    assert TEXT in line
    assert "Traceback" in line


@pytest.mark.parametrize("wrap", [marking, raising_for_batch])
@pytest.mark.parametrize("make", [OwnTexts, group])
async def test_failure_of_a_batch_is_converted_once_per_attempt_and_not_in_the_loop(
    broker: MemoryBroker, wrap: Any, make: Callable[[], Exception]
) -> None:
    broker.produce("orders", [b"value-1"])

    async with working(broker, wrap(make), retry=POLICY, dead_letter="orders.dead"):
        await until(lambda: settled(broker, 1))

    assert [] == conversions.in_loop()
    assert {"error": ATTEMPTS} == conversions.counts()


@on_real_clock
async def test_failure_in_a_thread_is_converted_once_per_attempt(
    broker: MemoryBroker,
) -> None:
    broker.produce("orders", [b"value-1"])

    handler = raising_in_thread(OwnTexts)
    async with working(broker, handler, retry=POLICY, dead_letter="orders.dead"):
        await until(lambda: settled(broker, 1))

    assert [] == conversions.in_loop()
    assert {"error": ATTEMPTS} == conversions.counts()


async def pass_through(attempt: Any, call_next: Any) -> None:
    await call_next()


async def wrap_failure(attempt: Any, call_next: Any) -> None:
    try:
        await call_next()
    except Exception as error:
        raise LookupError("wrapped") from error


@pytest.mark.parametrize("make", [OwnTexts, group])
async def test_failure_within_middleware_and_a_span_is_converted_once_per_attempt(
    broker: MemoryBroker, make: Callable[[], Exception]
) -> None:
    broker.produce("orders", [b"value-1"])
    recorded = Recorded()

    async with working(
        broker,
        raising(make),
        retry=POLICY,
        dead_letter="orders.dead",
        middleware=[wrap_failure, pass_through],
        instrumentation=recorded.instrumentation,
    ):
        await until(lambda: settled(broker, 1))

    assert [] == conversions.in_loop()
    assert {"error": ATTEMPTS} == conversions.counts()
    for span in recorded.named("process orders"):
        (event,) = span.events
        assert event.attributes
        assert "LookupError" == event.attributes["exception.type"]
        assert TEXT in str(event.attributes["exception.stacktrace"])


async def test_failure_of_middleware_is_converted_once_per_attempt(
    broker: MemoryBroker,
) -> None:
    broker.produce("orders", [b"value-1"])
    recorded = Recorded()

    async def fail(attempt: Any, call_next: Any) -> None:
        await call_next()
        raise OwnTexts

    async def accept(record: Record[Any, Any]) -> None:
        pass

    async with working(
        broker,
        accept,
        retry=POLICY,
        middleware=[pass_through, fail],
        instrumentation=recorded.instrumentation,
    ):
        await until(lambda: settled(broker, 1))

    assert [] == conversions.in_loop()
    assert {"error": ATTEMPTS} == conversions.counts()
    span, *_ = recorded.named("process orders")
    assert TEXT == span.status.description


@pytest.mark.parametrize("make", [OwnTexts, group])
async def test_failure_of_a_deserializer_is_converted_once_and_not_in_the_loop(
    broker: MemoryBroker, make: Callable[[], Exception]
) -> None:
    broker.produce("orders", [b"value-1"])

    def read(value: bytes) -> bytes:
        raise make()

    async with working(
        broker,
        raising(OwnTexts),
        value_deserializer=read,
        dead_letter="orders.dead",
        instrumentation=Recorded().instrumentation,
    ):
        await until(lambda: settled(broker, 1))

    assert [] == conversions.in_loop()
    assert {"error": 1} == conversions.counts()
    (letter,) = letters(broker)
    assert TEXT in letter.reason


async def test_exception_that_is_raised_again_has_its_new_text(
    broker: MemoryBroker,
) -> None:
    broker.produce("orders", [b"value-1"])

    class Changing(Exception):
        raised = 0

        def __str__(self) -> str:
            return f"raised {self.raised} times"

    error = Changing()

    async def handle(record: Record[Any, Any]) -> None:
        error.raised += 1
        raise error

    async with working(broker, handle, retry=POLICY, dead_letter="orders.dead"):
        await until(lambda: settled(broker, 1))

    (letter,) = letters(broker)
    assert letter.reason.endswith(f"Changing: raised {ATTEMPTS} times")


async def test_decision_of_middleware_after_the_timeout_has_its_text(
    broker: MemoryBroker,
) -> None:
    broker.produce("orders", [b"value-1"])

    async def hang(record: Record[Any, Any]) -> None:
        await anyio.sleep_forever()

    async def refuse(attempt: Any, call_next: Any) -> None:
        try:
            await call_next()
        finally:
            raise OwnDecision

    async with working(
        broker,
        hang,
        retry=ONCE,
        timeout=1.0,
        middleware=[pass_through, refuse],
        dead_letter="orders.dead",
    ):
        await until(lambda: settled(broker, 1))

    assert [] == conversions.in_loop()
    assert {"error": 1} == conversions.counts()
    (letter,) = letters(broker)
    assert f"OwnDecision: {TEXT}" == letter.reason


# Deserialized keys and values.

DESERIALIZED: Any = {"key_deserializer": Order, "value_deserializer": Order}


def produce(broker: MemoryBroker, count: int = 1) -> dict[str, int]:
    """Write records; return their parts, each converted once."""
    numbers = [b"-%d" % number for number in range(count)]
    values = [b"value" + number for number in numbers]
    keys = [b"key" + number for number in numbers]
    broker.produce("orders", values, keys=keys)
    return {f"order {part.decode()}": 1 for part in (*values, *keys)}


@pytest.mark.parametrize("middleware", [[], [pass_through]])
async def test_values_of_a_successful_call_are_not_converted(
    broker: MemoryBroker, middleware: Any
) -> None:
    produce(broker, 3)

    async def accept(record: Record[Any, Any]) -> None:
        pass

    async with working(broker, accept, middleware=middleware, **DESERIALIZED):
        await until(lambda: settled(broker, 3))

    assert {} == conversions.counts()


@pytest.mark.parametrize("middleware", [[], [pass_through, wrap_failure]])
async def test_values_of_a_failed_call_are_converted_once_and_not_in_the_loop(
    broker: MemoryBroker, lines: list[str], middleware: Any
) -> None:
    parts = produce(broker)

    async def handle(record: Record[Any, Any]) -> None:
        value: Any = record.value
        raise ValueError(f"refused: <order {value.value.decode()}>")

    async with working(
        broker,
        handle,
        retry=ONCE,
        middleware=middleware,
        instrumentation=Recorded().instrumentation,
        **DESERIALIZED,
    ):
        await until(lambda: settled(broker, 1))

    assert [] == conversions.in_loop()
    assert parts == conversions.counts()
    assert any("the text quotes a record" in line for line in lines)
    assert not [line for line in lines if "<order value-0>" in line]


async def test_values_of_a_failed_batch_are_converted_once_and_not_in_the_loop(
    broker: MemoryBroker,
) -> None:
    parts = produce(broker, 3)

    async def write(batch: Any) -> list[Exception | None]:
        return [ValueError("refused"), None, OwnTexts()]

    handler = BatchHandler(write, max_records=3)
    async with working(broker, handler, retry=ONCE, **DESERIALIZED):
        await until(lambda: settled(broker, 3))

    assert [] == conversions.in_loop()
    assert {**parts, "error": 1} == conversions.counts()


async def test_on_outcome_that_fails_is_logged_without_a_conversion_in_the_loop(
    broker: MemoryBroker, lines: list[str]
) -> None:
    parts = produce(broker)

    def fail(event: Any) -> None:
        raise OwnTexts

    async def accept(record: Record[Any, Any]) -> None:
        pass

    async with working(broker, accept, on_outcome=fail, **DESERIALIZED):
        await until(lambda: settled(broker, 1))

    assert [] == conversions.in_loop()
    assert {**parts, "error": 1} == conversions.counts()
    assert any("on_outcome failed" in line and TEXT in line for line in lines)


class RaisingPolicy(RetryPolicy):
    def decide(self, error: Exception, **options: Any) -> Any:
        raise OwnTexts


async def test_failure_of_a_retry_policy_is_converted_once_and_not_in_the_loop(
    broker: MemoryBroker, lines: list[str]
) -> None:
    broker.produce("orders", [b"value-1"])

    policy = RaisingPolicy(max_attempts=1)
    handler = raising(lambda: ValueError("bad"))
    async with working(broker, handler, retry=policy):
        await until(lambda: settled(broker, 1))

    assert [] == conversions.in_loop()
    assert {"error": 1} == conversions.counts()
    assert any(f"deciding about it raised OwnTexts: {TEXT}" in line for line in lines)


# Conversions that take long.


class Slow(Exception):
    """An exception whose text is there once `ready` is set."""

    began: threading.Event
    ready: threading.Event

    def __str__(self) -> str:
        self.began.set()
        self.ready.wait(60)
        return TEXT


@pytest.fixture
def slow() -> Iterator[type[Slow]]:
    Slow.began, Slow.ready = threading.Event(), threading.Event()
    yield Slow
    Slow.ready.set()


@on_real_clock
async def test_other_records_are_processed_while_a_slow_text_is_made(
    broker: MemoryBroker, slow: type[Slow]
) -> None:
    broker.produce("orders", [b"value-1", b"value-2"])

    async def handle(record: Record[Any, Any]) -> None:
        if record.value == b"value-1":
            raise slow
        await until(slow.began.is_set)
        slow.ready.set()

    async with working(broker, handle, retry=ONCE, dead_letter="orders.dead"):
        await until(lambda: settled(broker, 2))

    (letter,) = letters(broker)
    assert f"failed after 1 attempt: Slow: {TEXT}" == letter.reason


async def test_text_that_is_never_made_is_replaced_after_the_limit(
    broker: MemoryBroker, lines: list[str], slow: type[Slow]
) -> None:
    values = [b"value-%d" % number for number in range(6)]
    broker.produce("orders", values)

    async with working(
        broker, raising(slow), retry=ONCE, dead_letter="orders.dead"
    ) as worker:
        await until(lambda: settled(broker, 6), within=60.0)
        assert 6 == worker.stats.dead_lettered

    for letter in letters(broker):
        assert letter.reason.startswith("failed after 1 attempt: Slow: <Slow: ")
        assert TEXT not in f"{letter}"
    (line, _) = (
        each for each in lines if "record dead-lettered" in each and "offset=0" in each
    )
    assert "<Slow: its text was not made within 5 s>" in line
    assert "Traceback" in line


class SlowOrder:
    def __init__(self, value: bytes) -> None:
        self.value = value

    def __repr__(self) -> str:
        Slow.ready.wait(60)
        return f"<order {self.value.decode()}>"


async def test_text_is_not_logged_if_its_record_has_no_text_after_the_limit(
    broker: MemoryBroker, lines: list[str], slow: type[Slow]
) -> None:
    broker.produce("orders", [b"value-1"])

    handler = raising(lambda: ValueError(TEXT))
    async with working(
        broker,
        handler,
        retry=ONCE,
        dead_letter="orders.dead",
        value_deserializer=SlowOrder,
    ):
        await until(lambda: settled(broker, 1), within=60.0)

    (letter,) = letters(broker)
    assert f"failed after 1 attempt: ValueError: {TEXT}" == letter.reason
    assert any("record dead-lettered" in line for line in lines)
    assert not [line for line in lines if TEXT in line]


@on_real_clock
@pytest.mark.parametrize("middleware", [[], [pass_through]])
async def test_stop_now_does_not_wait_for_a_text_and_the_record_is_released(
    broker: MemoryBroker, slow: type[Slow], middleware: Any
) -> None:
    broker.produce("orders", [b"value-1"])

    async with working(broker, raising(slow), middleware=middleware) as worker:
        await until(slow.began.is_set)
        began = anyio.current_time()
        worker.stop_now()
        await until(lambda: worker.stats.released == 1)
        assert anyio.current_time() - began < 4

    assert 0 == worker.stats.failed
