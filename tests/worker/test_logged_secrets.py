"""Keys and values of records, passwords and tokens are in no log line at any level."""

import json
import logging
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest
import structlog

from sharecons import (
    BatchHandler,
    DeadLetter,
    Record,
    Reject,
    Retry,
    RetryPolicy,
    Security,
    ShareWorker,
    load_properties,
)
from sharecons.errors import ConfigurationError, Error
from sharecons.testing import EmbeddedBroker
from tests.waiting import until
from tests.worker.working import on_real_clock, process, working

pytestmark = pytest.mark.anyio

BROKERS = ("embedded",)

KEY = b"key-pl4nted-8431"
VALUE = b"4929-pl4nted-0017"
SECRETS = ("pl4nted", "706c346e746564")
PASSWORD = "pass-pl4nted"
ONCE = RetryPolicy(max_attempts=1)


class Output(logging.Handler):
    """All that any logger writes, with every attribute of its records."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith("sharecons.testing"):
            return
        parts = [record.levelname, record.getMessage(), repr(vars(record))]
        if record.exc_info and record.exc_info[1] is not None:
            lines = traceback.format_exception(record.exc_info[1])
            # The source of this file is in tracebacks; its text is no secret.
            parts += [line for line in lines if "  File " not in line]
        self.texts.append("\n".join(parts))

    def quoting(self) -> list[str]:
        return [text for text in self.texts if any(s in text for s in SECRETS)]


@pytest.fixture
def output() -> Iterator[Output]:
    root = logging.getLogger()
    handler, before = Output(), root.level
    root.setLevel(logging.DEBUG)
    root.addHandler(handler)
    yield handler
    root.removeHandler(handler)
    root.setLevel(before)


class Unreadable(Exception):
    """An exception that quotes in its cause only."""


async def parse_number(record: Record[Any, Any]) -> None:
    int(record.value)


async def look_up(record: Record[Any, Any]) -> None:
    {}[record.key]


async def raise_with_text(record: Record[Any, Any]) -> None:
    raise ValueError(f"unknown card {record.value.decode()}")


async def raise_with_cause(record: Record[Any, Any]) -> None:
    try:
        int(record.value)
    except ValueError as error:
        raise Unreadable("unreadable") from error


async def raise_while_handling(record: Record[Any, Any]) -> None:
    try:
        int(record.value)
    except ValueError:
        raise Unreadable("unreadable")  # noqa: B904 (the context is what is tested)


async def raise_with_note(record: Record[Any, Any]) -> None:
    error = ValueError("unknown card")
    error.add_note(f"while charging {record.value.decode()}")
    raise error


async def raise_long_text(record: Record[Any, Any]) -> None:
    raise ValueError(f"{'unknown ' * 1000} {record.value.decode()}")


async def raise_group(record: Record[Any, Any]) -> None:
    raise ExceptionGroup("several", [ValueError(record.key), OSError("disk")])


async def reject(record: Record[Any, Any]) -> None:
    raise Reject(f"unknown card {record.value!r}")


async def dead_letter(record: Record[Any, Any]) -> None:
    raise DeadLetter(f"unknown card {record.value!r}")


async def retry(record: Record[Any, Any]) -> None:
    raise Retry(0.01)


def parse_in_thread(record: Record[Any, Any]) -> None:
    int(record.value)


async def parse_batch(batch: Any) -> None:
    for record in batch:
        int(record.value)


async def mark_in_batch(batch: Any) -> None:
    for record in batch:
        batch.fail(record, ValueError(record.value))


async def parse_view(record: Record[Any, Any]) -> None:
    assert isinstance(record.value, memoryview)
    raise ValueError(f"invalid number {str(record.value, 'ascii')}")


HANDLERS = [
    parse_number,
    look_up,
    raise_with_text,
    raise_with_cause,
    raise_while_handling,
    raise_with_note,
    raise_long_text,
    raise_group,
    reject,
    dead_letter,
    retry,
    BatchHandler(parse_batch, max_records=3, max_wait=0.01),
    BatchHandler(mark_in_batch, max_records=3, max_wait=0.01),
]


def produce(broker: EmbeddedBroker) -> None:
    numbers = [b"-%d" % number for number in range(3)]
    broker.produce(
        "orders",
        [VALUE + each for each in numbers],
        keys=[KEY + each for each in numbers],
    )


def name_of(handler: Any) -> str:
    return str(getattr(handler, "__name__", type(handler).__name__))


@pytest.mark.parametrize("queue", [None, "orders.dead"])
@pytest.mark.parametrize("handler", HANDLERS, ids=name_of)
async def test_handler_that_quotes_a_record_is_logged_without_its_text(
    broker: EmbeddedBroker, output: Output, handler: Any, queue: str | None
) -> None:
    produce(broker)

    await process(broker, handler, 3, retry=ONCE, dead_letter=queue)

    given_up = [text for text in output.texts if "record dead-lettered" in text]
    rejected = [text for text in output.texts if "record rejected" in text]
    assert 3 == len(given_up) + len(rejected)
    assert [] == output.quoting()


async def test_handler_that_quotes_a_value_view_is_logged_without_its_text(
    broker: EmbeddedBroker, output: Output
) -> None:
    produce(broker)

    await process(broker, parse_view, 3, retry=ONCE, values="memoryview")

    assert 3 == len([text for text in output.texts if "record rejected" in text])
    assert [] == output.quoting()


@on_real_clock
async def test_thread_that_quotes_a_record_is_logged_without_its_text(
    broker: EmbeddedBroker, output: Output
) -> None:
    produce(broker)

    await process(broker, parse_in_thread, 3, retry=ONCE)

    assert 3 == len([text for text in output.texts if "attempt failed" in text])
    assert [] == output.quoting()


class Counted:
    """A deserialized value that counts its conversions to text."""

    conversions = 0

    def __init__(self, value: bytes) -> None:
        self._value = value

    def __repr__(self) -> str:
        Counted.conversions += 1
        return f"<order {self._value.decode()}>"


@pytest.mark.parametrize("dead_letter", [None, "orders.dead"])
async def test_each_record_of_a_batch_that_fails_is_converted_to_text_once(
    broker: EmbeddedBroker, output: Output, dead_letter: str | None
) -> None:
    values = [VALUE + b"%03d" % number for number in range(100)]
    broker.produce("orders", values)
    Counted.conversions = 0

    async def write(batch: Any) -> list[Exception]:
        return [ValueError(f"{number} in {batch[99].value}") for number in range(100)]

    handler = BatchHandler(write, max_records=100)
    await process(
        broker,
        handler,
        100,
        value_deserializer=Counted,
        retry=ONCE,
        dead_letter=dead_letter,
    )

    lines = [each for each in output.texts if "the text quotes a record" in each]
    assert len(lines) >= 100
    assert [] == output.quoting()
    assert Counted.conversions == 2 * len(values)  # one by the handler


def explode(value: bytes) -> object:
    raise ValueError(f"bad part {value.decode()[3:15]}")


def parse_or_none(value: bytes) -> dict[str, str]:
    return {"card": value.decode()}


@pytest.mark.parametrize("choice", ["dead_letter", "reject"])
@pytest.mark.parametrize("deserializer", [int, json.loads, explode], ids=name_of)
@pytest.mark.parametrize("part", ["key", "value"])
async def test_undecodable_record_is_logged_without_the_text_of_the_deserializer(
    broker: EmbeddedBroker,
    output: Output,
    part: str,
    deserializer: Callable[[bytes], object],
    choice: str,
) -> None:
    produce(broker)
    options = {f"{part}_deserializer": deserializer, "on_deserialization_error": choice}

    await process(broker, parse_number, 3, dead_letter="orders.dead", **options)

    lines = [text for text in output.texts if f"{part} not deserialized: " in text]
    assert 3 == len(lines)
    assert [] == output.quoting()


async def test_deserialized_value_that_a_handler_quotes_is_not_logged(
    broker: EmbeddedBroker, output: Output
) -> None:
    produce(broker)

    async def refuse(record: Record[Any, Any]) -> None:
        raise ValueError(f"refused: {record.value}")

    await process(broker, refuse, 3, retry=ONCE, value_deserializer=parse_or_none)

    assert 3 == len([text for text in output.texts if "attempt failed" in text])
    assert [] == output.quoting()


async def test_text_that_quotes_no_record_is_logged_with_its_traceback(
    broker: EmbeddedBroker, output: Output
) -> None:
    produce(broker)

    async def refuse(record: Record[Any, Any]) -> None:
        raise ValueError("no such customer")

    await process(broker, refuse, 3, retry=ONCE)

    failed, *_ = (text for text in output.texts if "attempt failed" in text)
    assert "error='ValueError: no such customer'" in failed
    rejected, *_ = (text for text in output.texts if "record rejected" in text)
    assert "Traceback" in rejected


async def test_middleware_and_on_outcome_that_quote_a_record_are_not_logged(
    broker: EmbeddedBroker, output: Output
) -> None:
    produce(broker)

    async def wrap(attempt: Any, call_next: Any) -> None:
        await call_next()
        raise ValueError(attempt.record.value)

    def on_outcome(event: Any) -> None:
        raise KeyError(event.record.key)

    async def accept(record: Record[Any, Any]) -> None:
        await anyio.lowlevel.checkpoint()

    await process(
        broker, accept, 3, retry=ONCE, middleware=[wrap], on_outcome=on_outcome
    )

    assert 3 <= len([text for text in output.texts if "on_outcome failed" in text])
    assert [] == output.quoting()


async def test_structlog_prints_no_local_variables_of_a_handler(
    broker: EmbeddedBroker, output: Output
) -> None:
    produce(broker)

    async def fail(record: Record[Any, Any]) -> None:
        card = record.value
        raise ValueError("no such customer" if card else "empty")

    structlog.configure()
    try:
        await process(broker, fail, 3, retry=ONCE)
    finally:
        structlog.reset_defaults()

    assert any("no such customer" in text for text in output.texts)
    assert [] == output.quoting()


async def test_lost_locks_and_a_cancelled_handler_name_positions_only(
    broker: EmbeddedBroker, output: Output
) -> None:
    produce(broker)
    running = 0

    async def hang(record: Record[Any, Any]) -> None:
        nonlocal running
        running += 1
        await anyio.sleep_forever()

    async with working(broker, hang, shutdown_grace=0.0):
        await until(lambda: running == 3)
        broker.expire_locks("billing")
        await until(lambda: running == 6, within=60.0, pause=0.5)

    assert any("locks lost" in text for text in output.texts)
    assert any("handlers cancelled" in text for text in output.texts)
    assert [] == output.quoting()


# Passwords and tokens.


def fetch_token() -> str:
    return f"{PASSWORD}.token"


@pytest.mark.parametrize(
    "security",
    [
        Security.sasl("PLAIN", "alice", PASSWORD, tls=False),
        Security.sasl("SCRAM-SHA-256", "alice", PASSWORD, tls=False),
        Security.oauthbearer(fetch_token, tls=False),
    ],
    ids=["plain", "scram", "token"],
)
async def test_failed_authentication_is_logged_without_the_password(
    broker: EmbeddedBroker, output: Output, security: Security
) -> None:
    worker: ShareWorker[bytes, bytes] = ShareWorker(
        "orders",
        parse_number,
        group_id="billing",
        bootstrap_servers=broker.bootstrap_servers,
        network=broker.network,
        security=security,
        connect_timeout=3.0,
    )
    with pytest.raises(Error) as caught:
        await worker.run()

    assert any("worker ended" in text for text in output.texts)
    assert [] == output.quoting()
    assert "pl4nted" not in f"{caught.value!r} {security!r} {vars(worker)!r}"


@pytest.mark.parametrize("name", ["sasl.jaas.config", "ssl.key.password"])
def test_properties_with_passwords_are_not_quoted(output: Output, name: str) -> None:
    properties = {
        "bootstrap.servers": "b:1",
        "group.id": "billing",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "NONE",
        "enable.auto.commit": "true",
        name: f"{PASSWORD} required;",
    }
    with pytest.raises(ConfigurationError) as caught:
        load_properties(properties)

    assert "pl4nted" not in str(caught.value)
    assert [] == output.quoting()
