"""Texts that code of the application makes: once for each attempt, not in the loop."""

import itertools
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest

from sharecons import BatchHandler, DeadLetter, Record, RetryPolicy
from tests.otel.recorded import Recorded
from tests.waiting import until
from tests.worker.memory import MemoryBroker
from tests.worker.working import on_real_clock, origins, process, settled, working

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

    def check(self, counts: dict[str, int]) -> None:
        """Check how often each was converted, and that none was in the loop."""
        loop = threading.current_thread()
        assert [] == [name for name, each in self.threads.items() if loop in each]
        assert counts == {name: len(each) for name, each in self.threads.items()}


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


@pytest.mark.parametrize(
    ("wrap", "make"),
    [
        *itertools.product([raising], FAILURES),
        *itertools.product([marking, raising_for_batch], [OwnTexts, group]),
    ],
)
async def test_failure_is_converted_once_per_attempt_and_not_in_the_loop(
    broker: MemoryBroker, lines: list[str], wrap: Any, make: Callable[[], Exception]
) -> None:
    broker.produce("orders", [b"value-1"])

    await process(broker, wrap(make), 1, retry=POLICY, dead_letter="orders.dead")

    conversions.check({"error": ATTEMPTS})
    (letter,) = origins(broker)
    assert letter.traceback is not None
    assert TEXT in letter.traceback
    (line, _) = (each for each in lines if "record dead-lettered" in each)
    assert TEXT in line
    assert wrap is marking or "Traceback" in line  # a marked one was not raised


@on_real_clock
async def test_failure_in_a_thread_is_converted_once_per_attempt(
    broker: MemoryBroker,
) -> None:
    broker.produce("orders", [b"value-1"])

    handler = raising_in_thread(OwnTexts)
    await process(broker, handler, 1, retry=POLICY, dead_letter="orders.dead")

    conversions.check({"error": ATTEMPTS})


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

    await process(
        broker,
        raising(make),
        1,
        retry=POLICY,
        dead_letter="orders.dead",
        middleware=[wrap_failure, pass_through],
        instrumentation=recorded.instrumentation,
    )

    conversions.check({"error": ATTEMPTS})
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

    await process(
        broker,
        accept,
        1,
        retry=POLICY,
        middleware=[pass_through, fail],
        instrumentation=recorded.instrumentation,
    )

    conversions.check({"error": ATTEMPTS})
    span, *_ = recorded.named("process orders")
    assert TEXT == span.status.description


@pytest.mark.parametrize("make", [OwnTexts, group])
async def test_failure_of_a_deserializer_is_converted_once_and_not_in_the_loop(
    broker: MemoryBroker, make: Callable[[], Exception]
) -> None:
    broker.produce("orders", [b"value-1"])

    def read(value: bytes) -> bytes:
        raise make()

    await process(
        broker,
        raising(OwnTexts),
        1,
        value_deserializer=read,
        dead_letter="orders.dead",
        instrumentation=Recorded().instrumentation,
    )

    conversions.check({"error": 1})
    (letter,) = origins(broker)
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

    await process(broker, handle, 1, retry=POLICY, dead_letter="orders.dead")

    (letter,) = origins(broker)
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

    await process(
        broker,
        hang,
        1,
        retry=ONCE,
        timeout=1.0,
        middleware=[pass_through, refuse],
        dead_letter="orders.dead",
    )

    conversions.check({"error": 1})
    (letter,) = origins(broker)
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

    await process(broker, accept, 3, middleware=middleware, **DESERIALIZED)

    conversions.check({})


@pytest.mark.parametrize("middleware", [[], [pass_through, wrap_failure]])
async def test_values_of_a_failed_call_are_converted_once_and_not_in_the_loop(
    broker: MemoryBroker, lines: list[str], middleware: Any
) -> None:
    parts = produce(broker)

    async def handle(record: Record[Any, Any]) -> None:
        value: Any = record.value
        raise ValueError(f"refused: <order {value.value.decode()}>")

    await process(
        broker,
        handle,
        1,
        retry=ONCE,
        middleware=middleware,
        instrumentation=Recorded().instrumentation,
        **DESERIALIZED,
    )

    conversions.check(parts)
    assert any("the text quotes a record" in line for line in lines)
    assert not [line for line in lines if "<order value-0>" in line]


async def test_values_of_a_failed_batch_are_converted_once_and_not_in_the_loop(
    broker: MemoryBroker,
) -> None:
    parts = produce(broker, 3)

    async def write(batch: Any) -> list[Exception | None]:
        return [ValueError("refused"), None, OwnTexts()]

    handler = BatchHandler(write, max_records=3)
    await process(broker, handler, 3, retry=ONCE, **DESERIALIZED)

    conversions.check({**parts, "error": 1})


async def test_on_outcome_that_fails_is_logged_without_a_conversion_in_the_loop(
    broker: MemoryBroker, lines: list[str]
) -> None:
    parts = produce(broker)

    def fail(event: Any) -> None:
        raise OwnTexts

    async def accept(record: Record[Any, Any]) -> None:
        pass

    await process(broker, accept, 1, on_outcome=fail, **DESERIALIZED)

    conversions.check({**parts, "error": 1})
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
    await process(broker, handler, 1, retry=policy)

    conversions.check({"error": 1})
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

    await process(broker, handle, 2, retry=ONCE, dead_letter="orders.dead")

    (letter,) = origins(broker)
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

    for letter in origins(broker):
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
    await process(
        broker,
        handler,
        1,
        within=60.0,
        retry=ONCE,
        dead_letter="orders.dead",
        value_deserializer=SlowOrder,
    )

    (letter,) = origins(broker)
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
